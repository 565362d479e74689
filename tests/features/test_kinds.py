"""Kinds: directions in which things differ, and how frames and maps carry them."""

import numpy as np
import pytest
import torch

from locus import LandmarkMap
from locus.features import kinds
from locus.features.dense import frame_features, scene_features
from locus.features.kinds import DIMENSION, fit_kinds
from locus.model.pca import Components
from tests.landmarks import places
from tests.scenes import room


@pytest.fixture
def known(monkeypatch):
    """Directions for any backbone: the first of its tokens' numbers."""
    monkeypatch.setattr(
        "locus.features.kinds.fitted_kinds",
        lambda backbone: Components(torch.zeros(length(backbone)), torch.eye(DIMENSION, length(backbone))),
    )


def length(backbone):
    model = places.model()
    assert backbone == model.backbone.fingerprint
    return model.backbone.dimension


def test_what_tells_things_apart_is_kept_and_what_differs_between_views_is_not():
    random = np.random.default_rng(0)
    thing = np.repeat(np.arange(200), 5)
    own, view = random.normal(size=(200, 3))[thing], random.normal(size=(1000, 3)) * 5
    noise = random.normal(size=(1000, 80)) * 0.1
    noise[:, :3] += own
    noise[:, 3:6] += view
    found = fit_kinds(noise, thing)
    assert found.directions.shape == (DIMENSION, 80)
    best = found.directions[:3].abs()
    assert best[:, :3].amax() > 5 * best[:, 3:6].amax()

    def known_again(rows):
        return (thing[(torch.cdist(rows, rows) + 1e9 * torch.eye(len(rows))).argmin(dim=1)] == thing).mean()

    tokens = torch.from_numpy(noise).float()
    assert known_again(found(tokens)[:, :3]) > 0.8 > 0.2 > known_again(tokens)


def test_kinds_come_with_features_frame_by_frame_and_in_a_map(known, tmp_path):
    model, scene = places.model(), places.scene(room.shots(4))
    seen = scene_features(model, scene, tmp_path)
    assert seen.kinds.shape == (*seen.features.shape[1:4], DIMENSION)
    torch.testing.assert_close(seen.kinds.norm(dim=-1), torch.ones(seen.kinds.shape[:3]))
    alone = frame_features(model, scene[2], scene.name)
    torch.testing.assert_close(alone.kinds[0], seen.take([2]).kinds[0], atol=2e-3, rtol=0)
    world = LandmarkMap.build(model, seen)
    grown = LandmarkMap.empty(model, scene.name).update(model, seen)
    np.testing.assert_array_equal(world.frames.kind, grown.frames.kind)
    lengths = np.linalg.norm(world.frames.kind.astype(float), axis=-1)
    np.testing.assert_allclose(lengths, 127, atol=4)
    np.testing.assert_array_equal(LandmarkMap.load(world.save(tmp_path / "map")).frames.kind, world.frames.kind)


def test_a_backbone_without_kinds_has_none(tmp_path):
    seen = scene_features(places.model(), places.scene(room.shots(2)), tmp_path)
    assert seen.kinds is None
    assert seen.take([1]).kinds is None


def test_the_shipped_backbone_has_kinds(small_weights):
    from locus.model import LoCUS

    model = LoCUS.from_pretrained("locus-small")
    assert kinds.fitted_kinds(model.backbone.fingerprint).directions.shape == (DIMENSION, model.backbone.dimension)
