"""The feature cache: the same numbers as without it, each computed once for as long as what it is made from stays."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from locus import backbones, load_scene
from locus.backbones.classic import Classic
from locus.checksums import BEHIND
from locus.errors import LocusError
from locus.features import cache
from locus.features.augmentation import augmented
from locus.features.cache import cache_bytes, cache_frames, cache_scene
from locus.features.frame_arrays import HEADER
from locus.geometry import transform
from locus.scenes import overlap, patch_points
from tests.scenes import layouts, room

FRAMES = 9


@pytest.fixture
def scene(tmp_path):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(FRAMES))
    return load_scene(tmp_path / "room")


@pytest.fixture
def backbone():
    return backbones.load("classic")


@pytest.fixture
def through(monkeypatch):
    """How many frames went through the backbone in each of its calls."""
    calls, sequence = [], Classic.sequence

    def counted(self, images):
        calls.append(len(images))
        return sequence(self, images)

    monkeypatch.setattr(Classic, "sequence", counted)
    return calls


def check(cached, scene, backbone):
    """Tokens, points and overlap are those of the scene's frames."""
    assert cached.tokens.shape == (len(scene), 4 * 6, backbone.dimension)
    assert cached.frames == [source.name for source in scene.sources]
    assert cached.grid == (4, 6)
    for index, frame in enumerate(scene):
        direct = backbone.tokens(backbone.prepare(frame.image)[None])[0].flatten(0, 1)
        np.testing.assert_allclose(cached.tokens[index], direct, atol=1e-3)
        np.testing.assert_allclose(cached.points[index], patch_points(frame, (4, 6))[0], atol=1e-5)
    np.testing.assert_array_equal(cached.overlap.toarray(), overlap(scene).toarray())


def test_holds_the_tokens_points_and_overlap_of_every_frame(scene, backbone, tmp_path):
    cached = cache_scene(scene, backbone, folder=tmp_path / "cache")
    check(cached, scene, backbone)
    np.testing.assert_array_equal(cached.tokens[2:7:2], np.stack([cached.tokens[index] for index in (2, 4, 6)]))
    assert cached.tokens[3:3].shape == (0, 24, backbone.dimension)


def test_another_selection_of_frames_computes_nothing_again(scene, backbone, tmp_path, through):
    cache_scene(scene, backbone, folder=tmp_path / "cache")
    through.clear()
    half = cache_scene(scene[::2], backbone, folder=tmp_path / "cache")
    assert not through
    check(half, scene[::2], backbone)


def test_a_selection_without_its_overlap_reads_no_pixel(scene, backbone, tmp_path, through, monkeypatch):
    cache_scene(scene, backbone, folder=tmp_path / "cache")
    monkeypatch.setattr(type(scene.sources[0]), "image", lambda _: pytest.fail("an image is read"))
    monkeypatch.setattr(type(scene.sources[0]), "depth", lambda _: pytest.fail("a depth map is read"))
    through.clear()
    assert len(cache_frames(scene[1::3], backbone, folder=tmp_path / "cache").tokens) == 3
    assert not through


@pytest.mark.parametrize("change", ["renamed", "copied", "file beside", "labels beside"])
def test_what_is_no_part_of_a_frame_computes_nothing_again(scene, backbone, tmp_path, through, change):
    before = cache_scene(scene, backbone, folder=tmp_path / "cache")
    folder = tmp_path / "moved" if change in ("renamed", "copied") else scene.folder
    if change == "renamed":
        scene.folder.rename(folder)
    elif change == "copied":  # with other times of change
        shutil.copytree(scene.folder, folder, copy_function=shutil.copyfile)
    elif change == "file beside":
        (folder / "notes.txt").write_text("seen in April")
    else:
        layouts.save(folder / "semantic.png", np.ones((room.HEIGHT, room.WIDTH), np.uint16))
        layouts.edit(folder, lambda content: content["frames"][0].update(semantic_file_path="semantic.png"))
        layouts.edit(folder, lambda content: content.update(classes=[{"id": 1, "name": "wall", "kind": "stuff"}]))
    through.clear()
    again = cache_scene(load_scene(folder), backbone, folder=tmp_path / "cache")
    assert not through
    assert again.fingerprint == before.fingerprint
    check(again, load_scene(folder), backbone)


def test_a_changed_image_alone_goes_through_the_backbone(scene, backbone, tmp_path, through):
    before = cache_scene(scene, backbone, folder=tmp_path / "cache")
    image = scene.sources[3].image_path
    Image.fromarray(255 - np.asarray(Image.open(image))).save(image)
    through.clear()
    again = cache_scene(load_scene(scene.folder), backbone, folder=tmp_path / "cache")
    assert sum(through) == 1
    assert np.abs(again.tokens[3] - before.tokens[3]).max() > 0.01
    assert again.fingerprint != before.fingerprint
    check(again, load_scene(scene.folder), backbone)


@pytest.mark.parametrize("change", ["depth", "pose", "convention"])
def test_changed_geometry_is_noticed_and_tokens_stay(scene, backbone, tmp_path, through, change):
    before = cache_scene(scene, backbone, folder=tmp_path / "cache")
    options = {}
    if change == "depth":
        depth = scene.sources[3].depth_path
        Image.fromarray(np.asarray(Image.open(depth)) // 2 + 1).save(depth)
    elif change == "pose":
        layouts.edit(scene.folder, lambda content: content["frames"][3]["transform_matrix"][1].__setitem__(3, 0.5))
    else:
        options = {"depth_scale": 1100.0}
    through.clear()
    changed = load_scene(scene.folder, **options)
    again = cache_scene(changed, backbone, folder=tmp_path / "cache")
    assert not through
    assert not np.array_equal(again.points[3], before.points[3], equal_nan=True)
    assert again.fingerprint != before.fingerprint
    check(again, changed, backbone)


def test_a_scene_that_grew_computes_its_new_frames(scene, backbone, tmp_path, through):
    cache_scene(scene[:6], backbone, folder=tmp_path / "cache")
    assert cache_bytes(scene, backbone, None, 0, tmp_path / "cache")[1] == 3 * 24 * (backbone.dimension * 2 + 12)
    through.clear()
    check(cache_scene(scene, backbone, folder=tmp_path / "cache"), scene, backbone)
    assert through[0] == 3
    assert cache_bytes(scene, backbone, None, 0, tmp_path / "cache")[1] == 0


def test_other_weights_resolutions_and_copies_are_other_tokens(scene, backbone, tmp_path):
    other = Classic()
    other.register_parameter("weight", torch.nn.Parameter(torch.ones(1)))
    found = {
        cache_scene(scene, backbone, folder=tmp_path / "cache").fingerprint,
        cache_scene(scene, other, folder=tmp_path / "cache").fingerprint,
        cache_scene(scene, backbone, 84, folder=tmp_path / "cache").fingerprint,
        cache_scene(scene, backbone, copy=1, folder=tmp_path / "cache").fingerprint,
        cache_scene(scene, backbone, copy=2, folder=tmp_path / "cache").fingerprint,
    }
    assert len(found) == 5


def test_frames_that_cannot_be_read_are_named_and_left_out(scene, backbone, tmp_path):
    broken = scene.sources[3].depth_path
    broken.write_bytes(broken.read_bytes()[:40])
    for _ in range(2):  # also when the others are there
        with pytest.warns(UserWarning, match=f"1 of 9 frames are left out.*{broken.stem}"):
            cached = cache_scene(scene, backbone, folder=tmp_path / "cache")
        assert len(cached.frames) == len(cached.tokens) == len(cached.points) == cached.overlap.shape[0] == 8
        rest = replace(scene, sources=[source for source in scene.sources if source.depth_path != broken])
        check(cached, rest, backbone)
    scene.sources[5].image_path.unlink()
    with pytest.warns(UserWarning, match="is missing"):
        assert len(cache_scene(scene, backbone, folder=tmp_path / "cache").frames) == 7


def test_interrupted_it_keeps_what_is_whole(scene, backbone, tmp_path, through, monkeypatch):
    monkeypatch.setattr(cache, "BATCH", 4)
    write, written = np.save, []

    def stop(file, values):
        written.append(values.shape)
        if written.count((24, backbone.dimension)) == 6:
            file.write(b"half")
            raise KeyboardInterrupt
        write(file, values)

    monkeypatch.setattr(cache.np, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        cache_scene(scene, backbone, folder=tmp_path / "cache")
    monkeypatch.setattr(cache.np, "save", write)
    assert all(file.suffix in (".npy", ".npz") for file in (tmp_path / "cache").rglob("*") if file.is_file())
    through.clear()
    check(cache_scene(scene, backbone, folder=tmp_path / "cache"), scene, backbone)
    assert sum(through[:-FRAMES]) == FRAMES - 5  # `check` runs each frame once


def test_two_at_once_make_the_same(scene, backbone, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(cache_scene, scene, backbone, folder=tmp_path / "cache") for _ in range(2)]
    for job in jobs:
        check(job.result(), scene, backbone)
    assert len(list((tmp_path / "cache").rglob("*.*"))) == 2 * FRAMES + 1


def test_refuses_with_numbers_what_the_disk_would_not_hold(scene, backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    with pytest.raises(LocusError, match=r"needs 0\.0 GB, but .* has 0\.0 GB free"):
        cache_scene(scene, backbone, folder=tmp_path / "cache")


def test_the_estimate_is_what_is_written(scene, backbone, tmp_path):
    cache_scene(scene, backbone, folder=tmp_path / "cache")
    written = [file.stat().st_size for file in (tmp_path / "cache").rglob("*.npy")]
    all_pairs = 8 * len(scene) ** 2  # of the overlap, if every frame sees some of every other
    assert sum(written) - (HEADER + BEHIND) * len(written) == cache_bytes(scene, backbone, None, 0, None)[0] - all_pairs
    (overlap_file,) = (tmp_path / "cache").rglob("*.npz")
    assert overlap_file.stat().st_size <= all_pairs + 2000


def test_damaged_or_missing_files_are_errors_that_say_what_to_do(scene, backbone, tmp_path):
    cached = cache_scene(scene, backbone, folder=tmp_path / "cache")
    cached.tokens.files[2].write_bytes(b"nothing")
    with pytest.raises(LocusError, match="is damaged; delete it"):
        cached.tokens[2]
    cached.tokens.files[2].unlink()
    with pytest.raises(LocusError, match=r"No such file.*run the same again"):
        cached.tokens[:]
    check(cache_scene(scene, backbone, folder=tmp_path / "cache"), scene, backbone)
    for file in (tmp_path / "cache" / "points").iterdir():
        os.truncate(file, 300)
    with pytest.raises(LocusError, match="is damaged; delete it"):
        cache_scene(scene, backbone, folder=tmp_path / "cache")


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
