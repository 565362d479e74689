"""Frames read, augmented and put through the backbone as they are drawn."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from locus import backbones, load_scene
from locus.features.augmentation import augmented
from locus.model import LoCUS
from locus.training import TrainingError, train
from locus.training.batches import Sampler
from locus.training.checkpoints import METRICS, read_metrics
from locus.training.loop import Trainer
from locus.training.places import environments
from locus.training.validation import fixed_batches
from tests.scenes import layouts, room
from tests.training.launching import SETTINGS, weights
from tests.training.test_run import stop_after

LIVE = replace(SETTINGS, live=True)


@pytest.fixture(scope="module")
def backbone(tiny):
    return backbones.load(tiny, 2)


@pytest.fixture(scope="module")
def places(rooms, backbone, tmp_path_factory):
    """The same rooms, cached and live."""
    scenes = [load_scene(rooms / name) for name in ("first", "second")]
    folder = tmp_path_factory.mktemp("cache")
    return [environments(scenes, backbone, how, folder, augment=True, progress=False) for how in (SETTINGS, LIVE)]


def test_frames_as_they_are_give_the_same_batches_as_the_cache(places, backbone):
    for cached, live in zip(*(fixed_batches(each, SETTINGS) for each in places), strict=True):
        torch.testing.assert_close(live.positions, cached.positions, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(live.landmarks, cached.landmarks)
        (tokens, grid), (expected, same_grid) = live.through(backbone).sequences[0], cached.sequences[0]
        assert grid == same_grid
        torch.testing.assert_close(tokens, expected, rtol=1e-3, atol=1e-3)  # the cache has half precision


def test_every_frame_drawn_is_another_picture_with_its_own_points(places, backbone):
    place = places[1][0]
    frame = np.array([3, 3])
    pixels, points = place.read(frame, np.random.default_rng(5))
    assert not torch.equal(pixels[0], pixels[1])
    frame = place.scenes[0].scene[3]
    for number, seed in enumerate(np.random.default_rng(5).integers(2**63, size=2)):
        image, depth, camera = augmented(frame.image, frame.depth, frame.camera, np.random.default_rng(int(seed)))
        assert torch.equal(pixels[number], backbone.prepare(image))
        known = np.isfinite(points[number]).all(axis=-1)
        assert known.any()
        seen, z = camera.project(points[number][known] @ frame.world_from_camera[:3, :3] + _shift(frame))
        # A patch's point lies in the patch, at the depth the augmented picture has there.
        rows, columns = np.nonzero(known)
        cell = np.array(depth.shape[::-1]) / known.shape[::-1]
        inside = np.floor(seen / cell).astype(int)
        assert (inside == np.stack([columns, rows], axis=1)).all()
        assert np.abs(depth[seen[:, 1].astype(int), seen[:, 0].astype(int)] - z).max() < 0.05


def _shift(frame):
    return -frame.world_from_camera[:3, :3].T @ frame.world_from_camera[:3, 3]


def test_a_live_batch_follows_from_seed_and_step_alone(places):
    first, again = Sampler(places[1], LIVE), Sampler(places[1], LIVE)
    first.batch(0)
    assert torch.equal(first.batch(7).sequences[0][0], again.batch(7).sequences[0][0])
    assert torch.equal(first.batch(7).landmarks, again.batch(7).landmarks)
    assert not torch.equal(first.batch(7).sequences[0][0], first.batch(8).sequences[0][0])


def test_a_live_run_caches_nothing_and_goes_on_bit_for_bit(rooms, tiny, tmp_path, monkeypatch):
    settings = replace(LIVE, backbone=str(tiny), layer=2, head="blocks", blocks=1)

    def run(out):
        paths = [rooms / "first", rooms / "second"]
        return train(paths, tmp_path / out, settings, val=[rooms / "unseen"], cache=tmp_path / "cache")

    assert run("whole").finished
    assert not (tmp_path / "cache").exists()
    stop_after(monkeypatch, 2)
    assert not run("parts").finished
    monkeypatch.undo()
    assert run("parts").finished
    for name, weight in weights(tmp_path / "whole").items():
        assert torch.equal(weight, weights(tmp_path / "parts")[name])
    assert read_metrics(tmp_path / "whole" / METRICS) == read_metrics(tmp_path / "parts" / METRICS)
    LoCUS.from_pretrained(tmp_path / "whole")


def test_a_frame_that_cannot_be_read_is_left_out_and_named(backbone, tmp_path):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(6))
    scene = load_scene(tmp_path / "room")
    scene.sources[2].image_path.write_bytes(b"broken")
    with pytest.warns(UserWarning, match=f"left out.*{scene.sources[2].name}"):
        (place,) = environments([scene], backbone, LIVE, None, augment=True, progress=False)
    assert place.usable.tolist() == [0, 1, 3, 4, 5]


def test_live_and_cached_copies_exclude_each_other():
    with pytest.raises(TrainingError, match=r"--copies.*--live"):
        replace(LIVE, copies=1)


@pytest.mark.parametrize("live", [False, True])
def test_trying_a_step_changes_nothing(places, backbone, tmp_path, live):
    model = LoCUS(backbone, dimension=16, head="blocks", blocks=1, radii=SETTINGS.radii)
    trainer = Trainer(model, places[live], places[live], replace(SETTINGS, head="blocks", live=live), tmp_path)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    random = torch.get_rng_state()
    assert trainer.seconds_a_step() > 0
    assert torch.equal(random, torch.get_rng_state())
    assert trainer.step == 0
    assert not trainer.optimizer.state
    assert all(weight.grad is None for weight in model.head.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
