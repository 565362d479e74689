"""The feature cache: the same numbers as without it, made anew whenever anything changes."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from locus import backbones, load_scene
from locus.backbones.classic import Classic
from locus.errors import LocusError
from locus.features import cache
from locus.features.augmentation import augmented
from locus.features.cache import cache_bytes, cache_scene, scene_fingerprint
from locus.geometry import transform
from locus.scenes import patch_points
from tests.scenes import layouts, room


@pytest.fixture
def scene(tmp_path):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(9))
    return load_scene(tmp_path / "room")


@pytest.fixture
def backbone():
    return backbones.load("classic")


def test_holds_the_tokens_points_and_overlap_of_every_frame(scene, backbone, tmp_path):
    cached = cache_scene(scene, backbone, folder=tmp_path / "cache")
    assert cached.tokens.shape == (9, 4 * 6, backbone.dimension)
    assert cached.grid == (4, 6)
    assert cached.overlap.shape == (9, 9)
    for index, frame in enumerate(scene):
        direct = backbone.tokens(backbone.prepare(frame.image)[None])[0].flatten(0, 1)
        np.testing.assert_allclose(cached.tokens[index], direct, atol=1e-3)
        np.testing.assert_allclose(cached.points[index], patch_points(frame, (4, 6))[0], atol=1e-5)


def test_is_memory_mapped_and_computed_once(scene, backbone, tmp_path, monkeypatch):
    first = cache_scene(scene, backbone, folder=tmp_path / "cache")
    monkeypatch.setattr(Classic, "sequence", lambda *_: pytest.fail("computed again"))
    again = cache_scene(scene, backbone, folder=tmp_path / "cache")
    assert isinstance(again.tokens, np.memmap)
    assert again.fingerprint == first.fingerprint
    np.testing.assert_array_equal(first.tokens, again.tokens)


def test_another_state_of_anything_is_another_cache(scene, backbone, tmp_path):
    seen = {cache_scene(scene, backbone, folder=tmp_path / "cache").fingerprint}
    seen.add(cache_scene(scene, backbone, 84, folder=tmp_path / "cache").fingerprint)
    seen.add(cache_scene(scene, backbone, copy=1, folder=tmp_path / "cache").fingerprint)
    other_axes = load_scene(scene.folder, axes="opencv")
    seen.add(cache_scene(other_axes, backbone, folder=tmp_path / "cache").fingerprint)
    image = next((scene.folder / "images").glob("*.png"))
    os.utime(image, ns=(1, 1))
    seen.add(cache_scene(scene, backbone, folder=tmp_path / "cache").fingerprint)
    image.unlink()
    with pytest.warns(UserWarning, match="left out"):
        seen.add(cache_scene(scene, backbone, folder=tmp_path / "cache").fingerprint)
    assert len(seen) == 6


def test_files_behind_links_count_and_links_to_nothing_or_upwards_do_no_harm(scene, tmp_path):
    shutil.move(scene.folder / "images", tmp_path / "elsewhere")
    (scene.folder / "images").symlink_to(tmp_path / "elsewhere")
    (scene.folder / ".#lock").symlink_to("nothing")
    (scene.folder / "again").symlink_to(scene.folder)
    before = scene_fingerprint(scene)
    assert scene_fingerprint(scene) == before
    os.utime(next((tmp_path / "elsewhere").glob("*.png")), ns=(1, 1))
    assert scene_fingerprint(scene) != before


def test_other_weights_are_another_cache(scene, tmp_path):
    backbone = backbones.load("classic")
    first = cache_scene(scene, backbone, folder=tmp_path / "cache").fingerprint
    other = Classic()
    other.register_parameter("weight", torch.nn.Parameter(torch.ones(1)))
    assert cache_scene(scene, other, folder=tmp_path / "cache").fingerprint != first


def test_frames_that_cannot_be_read_are_named_and_left_out(scene, backbone, tmp_path):
    broken = sorted((scene.folder / "depth").glob("*.png"))[3]
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.warns(UserWarning, match=broken.stem):
        cached = cache_scene(scene, backbone, folder=tmp_path / "cache")
    assert len(cached.frames) == len(cached.tokens) == len(cached.points) == 8
    assert broken.stem not in " ".join(cached.frames)
    rest = [frame for frame in scene if broken.stem not in frame.name]
    np.testing.assert_allclose(cached.points[3], patch_points(rest[3], (4, 6))[0], atol=1e-5)


def test_an_interruption_leaves_nothing_behind(scene, backbone, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Classic, "sequence", stop)
    with pytest.raises(KeyboardInterrupt):
        cache_scene(scene, backbone, folder=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_refuses_with_numbers_what_the_disk_would_not_hold(scene, backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    with pytest.raises(LocusError, match=r"needs 0\.0 GB, but .* has 0\.0 GB free"):
        cache_scene(scene, backbone, folder=tmp_path / "cache")


def test_the_estimate_is_what_is_written(scene, backbone, tmp_path):
    cache_scene(scene, backbone, folder=tmp_path / "cache")
    written = sum(file.stat().st_size for file in (tmp_path / "cache").rglob("*.npy"))
    assert abs(written - cache_bytes(scene, backbone)) < 1000


def test_a_damaged_cache_is_an_error_that_says_what_to_do(scene, backbone, tmp_path):
    cache_scene(scene, backbone, folder=tmp_path / "cache")
    next((tmp_path / "cache").rglob("points.npy")).write_bytes(b"nothing")
    with pytest.raises(LocusError, match="delete it"):
        cache_scene(scene, backbone, folder=tmp_path / "cache")


def test_a_scene_in_memory_cannot_be_cached(scene, backbone, tmp_path):
    with pytest.raises(LocusError, match="in memory alone"):
        cache_scene(replace(scene, folder=None), backbone, folder=tmp_path / "cache")


def test_an_augmented_copy_shows_the_same_points(scene):
    """Points of the crop lie on the room's surfaces: found again in the whole frame, at the same depth."""
    rng = np.random.default_rng(0)
    for frame in scene:
        image, depth, camera = augmented(frame.image, frame.depth, frame.camera, rng)
        assert image.shape == frame.image.shape
        pixels = camera.pixel_grid()
        points = transform(frame.world_from_camera, camera.unproject(pixels, depth))
        back = np.linalg.inv(frame.world_from_camera)
        place, z = frame.camera.project(transform(back, points))
        x, y = (
            np.clip(np.floor(place), 0, [frame.camera.width - 1, frame.camera.height - 1]).astype(int).reshape(-1, 2).T
        )
        near = np.abs(frame.depth[y, x] - z.reshape(-1)) < 0.02 * z.reshape(-1)
        assert near.mean() > 0.95


def test_a_calibration_outside_the_scene_counts(tmp_path):
    (tmp_path / "room").mkdir()
    layouts.sevenscenes_flat(tmp_path / "room", room.shots(4))
    calibration = tmp_path / "camera-intrinsics.txt"
    (tmp_path / "room" / calibration.name).rename(calibration)
    first = cache.scene_fingerprint(load_scene(tmp_path / "room"))
    os.utime(calibration, ns=(1, 1))
    assert cache.scene_fingerprint(load_scene(tmp_path / "room")) != first
