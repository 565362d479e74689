"""A scene's dense features: those of each image, in the order of the scene, beside the patches' points."""

import numpy as np
import pytest
import torch

from locus import LoCUS, load_scene
from locus.features import dense
from locus.features.dense import scene_features, streamed_features
from locus.landmarks import LandmarkMap
from locus.scenes import patch_points
from tests.scenes import layouts, room


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(9))
    return tmp_path / "room"


@pytest.fixture
def model():
    torch.manual_seed(0)
    return LoCUS("classic", dimension=16, radii=(0.3, 0.8), head="linear")


def test_features_are_those_of_each_image(folder, model, tmp_path, monkeypatch):
    monkeypatch.setattr(dense, "FRAMES_AT_ONCE", 4)
    scene = load_scene(folder)
    seen = scene_features(model, scene, tmp_path / "cache")
    assert len(seen) == 9
    assert seen.grid == (4, 6)
    assert seen.features.shape == (2, 9, 4, 6, 16)
    for row in range(9):
        frame = seen.frame(row)
        assert frame.name == scene[row].name
        assert torch.allclose(seen.features[:, row], model.features(frame.image), atol=5e-3)
        np.testing.assert_allclose(seen.points[row], patch_points(frame, (4, 6))[0], atol=1e-5)
    assert torch.allclose(seen.features.norm(dim=-1), torch.ones(()), atol=1e-5)


def test_a_frame_that_cannot_be_read_is_left_out(folder, model, tmp_path):
    scene = load_scene(folder)
    broken = scene[4].name
    next(folder.rglob(f"*{broken}*.png")).write_bytes(b"nothing")
    with pytest.warns(UserWarning, match=broken):
        seen = scene_features(model, scene, tmp_path / "cache")
    assert len(seen) == 8
    assert seen.indices == [0, 1, 2, 3, 5, 6, 7, 8]
    assert [seen.frame(row).name for row in range(8)] == [scene[k].name for k in seen.indices]


def test_a_map_is_made_from_a_folder(folder, model, tmp_path):
    """From files to a map, as a user does it; the features of a random head need not be good."""
    scene = load_scene(folder)
    world = LandmarkMap.build(model, scene, cache=tmp_path / "cache")
    assert len(world.frames) == 9
    assert set(world.landmarks.scale.tolist()) == {0, 1}
    assert world.classes == ()  # the folder has no labels
    assert (LandmarkMap.load(world.save(tmp_path / "map")).landmarks.label == -1).all()
    location = world.localize(model, scene[0].image, scene[0].camera, scene[0].depth)
    assert location.here or location.reason.startswith("not here: ")


def test_windows_are_the_features_of_their_frames(folder, model, tmp_path, monkeypatch):
    scene = load_scene(folder)
    whole = scene_features(model, scene, tmp_path / "cache")
    monkeypatch.setattr("locus.features.dense.WINDOW", 4)
    windows = list(streamed_features(model, scene, tmp_path / "cache").windows())
    assert [window.indices for window in windows] == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    np.testing.assert_array_equal(np.concatenate([window.points for window in windows]), whole.points)
    np.testing.assert_allclose(torch.cat([window.features for window in windows], dim=1), whole.features, atol=1e-6)
    world = LandmarkMap.build(model, scene, cache=tmp_path / "cache")
    assert len(world.frames) == 9
    assert world.provenance["scenes"] == [{"scene": scene.name, "format": scene.format, "frames": 9, "points": 0}]


def test_features_can_be_trained_on(folder, model, tmp_path):
    """A layer of the user's own on a scene's features, and on an image's, has gradients."""
    scene = load_scene(folder)
    for features in (scene_features(model, scene, tmp_path / "cache").features, model.features(scene[0].image)):
        layer = torch.nn.Linear(16, 3)
        (layer(features) ** 2).sum().backward()
        assert layer.weight.grad.abs().sum() > 0
