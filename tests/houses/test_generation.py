"""Generated scenes: the same bytes for the same seed, geometry that agrees between views, cameras that see things,
and folders that are whole or not there."""

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy import ndimage

from locus.cli import main
from locus.errors import LocusError
from locus.geometry import invert, transform
from locus.houses import CLASSES, HouseSettings, generate, generation, write_houses
from locus.houses.preview import write_preview
from locus.render.surfaces import join
from locus.scenes import load_scene, overlap

from .conftest import built

SEED, SIZE, FRAMES = 3, (64, 48), 12


@pytest.fixture(scope="module")
def scene():
    return generate(SEED, HouseSettings(frames=FRAMES, size=SIZE))


@pytest.fixture(scope="module")
def frames(scene):
    return list(scene)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("houses")
    return write_houses(out, range(SEED, SEED + 1), HouseSettings(frames=FRAMES, size=SIZE))[0]


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_frames_hold_what_a_frame_must(scene, frames):
    assert len(scene) == FRAMES
    assert scene.classes == CLASSES
    for frame in frames:
        assert frame.image.shape == (48, 64, 3)
        assert frame.image.std() > 10
        assert frame.depth.dtype == np.float32
        assert (frame.depth >= 0).all()
        assert (frame.instance > 0).mean() > 0.99
        assert ((frame.semantic > 0) == (frame.instance > 0)).all()


def test_the_same_seed_gives_the_same_bytes_in_memory_and_on_disk(frames, written, tmp_path):
    again = write_houses(tmp_path, range(SEED, SEED + 1), HouseSettings(frames=FRAMES, size=SIZE))[0]
    assert content(again) == content(written)
    loaded = load_scene(written)
    for mine, theirs in zip(frames, loaded, strict=True):
        assert (mine.image == theirs.image).all()
        assert (mine.semantic == theirs.semantic).all()
        assert (mine.instance == theirs.instance).all()
        assert np.abs(mine.depth - theirs.depth).max() <= 0.0005 + 1e-6
        assert np.allclose(mine.world_from_camera, theirs.world_from_camera)


def test_another_seed_gives_another_house():
    a, b = built(SEED), built(5)
    assert a.plan != b.plan
    assert len(a.placed) != len(b.placed)


def test_an_instance_has_one_class(frames):
    pairs = {
        (int(i), int(s)) for frame in frames for i, s in zip(frame.instance.flat, frame.semantic.flat, strict=True)
    }
    assert len({i for i, _ in pairs}) == len(pairs)


def comparable(frame):
    """Pixels inside one thing, since what is thinner than a pixel is seen by chance, and on a flat piece of it, where
    inverse depth is linear in the image and can be read between pixels."""
    nearness = 1 / np.maximum(frame.depth, 1e-3)
    flat = np.abs(ndimage.laplace(nearness)) < 0.004 * nearness
    inside = ndimage.maximum_filter(frame.instance, 3) == ndimage.minimum_filter(frame.instance, 3)
    return (frame.depth > 0) & flat & inside


def test_views_agree_in_depth_and_instance_where_both_see_a_point(reuse):
    """The referee is trimesh: a point of one frame is co-visible if a ray from the other camera meets it first."""
    frames = list(generate(SEED, HouseSettings(frames=12, size=(320, 256))))[::2]
    house = built(SEED)
    mesh = join(house.things)
    caster = trimesh.ray.ray_pyembree.RayMeshIntersector(trimesh.Trimesh(mesh.vertices, mesh.faces, process=False))
    agree = total = 0
    for a in frames:
        camera = a.camera
        rows, columns = np.nonzero(comparable(a))
        rows, columns = rows[::17], columns[::17]
        points = transform(
            a.world_from_camera,
            camera.unproject(camera.pixel_grid()[rows, columns], a.depth[rows, columns].astype(float)),
        )
        for b in frames:
            if a.name == b.name:
                continue
            pixels, z = camera.project(transform(invert(b.world_from_camera), points))
            inside = (
                (z > 0.1)
                & (pixels > 0.5).all(1)
                & (pixels[:, 0] < camera.width - 0.5)
                & (pixels[:, 1] < camera.height - 0.5)
            )
            eye = b.world_from_camera[:3, 3]
            way = points[inside] - eye
            hits, rays, _ = caster.intersects_location(np.broadcast_to(eye, way.shape), way, multiple_hits=False)
            first = np.zeros(len(way))
            first[rays] = np.linalg.norm(hits - eye, axis=1)
            seen = np.abs(first - np.linalg.norm(way, axis=1)) < 1e-3
            x, y = (pixels[inside][seen] - 0.5).T
            x0, y0 = x.astype(int), y.astype(int)
            corners = [(y0, x0), (y0, x0 + 1), (y0 + 1, x0), (y0 + 1, x0 + 1)]
            fx, fy = x - x0, y - y0
            share = np.array([(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy])
            instances = np.array([b.instance[corner] for corner in corners])
            inner = np.array([comparable(b)[corner] for corner in corners]).all(0) & (instances == instances[0]).all(0)
            depth = 1 / (share / np.maximum([b.depth[corner] for corner in corners], 1e-6)).sum(0)
            close = np.abs(depth / z[inside][seen] - 1) < 0.01
            same = instances[0] == a.instance[rows, columns][inside][seen]
            agree += (close & same)[inner].sum()
            total += inner.sum()
    assert total > 1000
    assert agree / total >= 0.995


def test_cameras_see_things_at_different_depths_and_overlap(scene, frames):
    thing = np.array([False, *(label.kind == "thing" for label in CLASSES)])
    good = 0
    for frame in frames:
        things = np.unique(frame.instance[thing[frame.semantic]])
        near, far = np.percentile(frame.depth[frame.depth > 0], (10, 90))
        good += len(things) >= 3 and far - near > 0.3
        assert np.percentile(frame.depth[frame.depth > 0], 30) > 0.2
    assert good / len(frames) >= 0.9
    shared = overlap(scene).toarray()
    np.fill_diagonal(shared, 0)
    assert (shared.max(axis=1) >= 0.2).all()


def test_cameras_stand_clear_of_everything(frames):
    house = built(SEED)
    boxes = np.concatenate([thing.boxes for thing in house.placed])
    for frame in frames:
        eye = frame.world_from_camera[:3, 3]
        away = np.maximum(np.maximum(boxes[:, :3] - eye, eye - boxes[:, 3:]), 0)
        assert np.linalg.norm(away, axis=1).min() > 0.1
        assert 1.3 < eye[2] < 1.7


def test_a_walk_is_smooth_and_passes_doors(reuse):
    scene = generate(SEED, HouseSettings(frames=40, size=SIZE, path="walk"))
    poses = np.array([frame.world_from_camera for frame in scene])
    steps = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1)
    assert steps.max() < 2 * np.median(steps)
    turn = np.degrees(np.arccos(np.clip((poses[1:, :3, 2] * poses[:-1, :3, 2]).sum(1), -1, 1)))
    assert turn.max() < 75
    house = built(SEED)
    rooms = [room.inner for room in house.plan.rooms]
    visited = {
        k for x, y, _ in poses[:, :3, 3] for k, (x0, y0, x1, y1) in enumerate(rooms) if x0 < x < x1 and y0 < y < y1
    }
    assert len(visited) >= 2


@pytest.fixture(scope="module")
def handheld():
    return generate(SEED, HouseSettings(frames=FRAMES, size=SIZE, path="handheld"))


def test_hand_held_cameras_differ_in_lens_height_and_tilt_and_see_the_same_things(handheld):
    thing = np.array([False, *(label.kind == "thing" for label in CLASSES)])
    degrees = [2 * np.degrees(np.arctan(frame.camera.width / 2 / frame.camera.fx)) for frame in handheld]
    poses = np.array([frame.world_from_camera for frame in handheld])
    rotations = poses[:, :3, :3]
    assert np.allclose(rotations @ rotations.transpose(0, 2, 1), np.eye(3), atol=1e-9)
    assert np.allclose(np.linalg.det(rotations), 1)
    assert min(degrees) > 45
    assert max(degrees) < 100
    assert np.ptp(degrees) > 15
    assert (poses[:, 2, 3] >= 0.5).all()
    assert (poses[:, 2, 3] <= 2.0).all()
    assert np.ptp(poses[:, 2, 3]) > 0.5
    roll = np.degrees(np.arcsin(rotations[:, 2, 0]))
    assert np.abs(roll).max() > 4
    good = [len(np.unique(frame.instance[thing[frame.semantic]])) >= 3 for frame in handheld]
    assert np.mean(good) >= 0.75
    shared = overlap(handheld).toarray()
    np.fill_diagonal(shared, 0)
    assert np.median(shared.max(axis=1)) >= 0.2


def test_hand_held_frames_keep_a_camera_each_on_disk(reuse, handheld, tmp_path):
    settings = HouseSettings(frames=FRAMES, size=SIZE, path="handheld")
    folder = write_houses(tmp_path, range(SEED, SEED + 1), settings)[0]
    for made, read in zip(handheld, load_scene(folder), strict=True):
        assert read.camera.fx == pytest.approx(made.camera.fx)
        assert np.array_equal(read.image, made.image)
        assert np.allclose(read.world_from_camera, made.world_from_camera)


def test_depth_noise_makes_holes_and_errors_that_grow_with_distance(reuse, frames):
    noisy = generate(SEED, HouseSettings(frames=FRAMES, size=SIZE, depth_noise=True))
    lost, near, far = [], [], []
    for exact, frame in zip(frames, noisy, strict=True):
        known = frame.depth > 0
        lost.append(1 - known[exact.depth > 0].mean())
        error = np.abs(frame.depth - exact.depth)
        near.append(error[known & (exact.depth < 1.5)])
        far.append(error[known & (exact.depth > 2.5)])
    assert 0.01 < np.mean(lost) < 0.6
    assert np.concatenate(near).mean() < 0.01
    assert np.concatenate(far).mean() > 2 * np.concatenate(near).mean()


def test_an_interruption_leaves_no_half_house_and_a_rerun_continues(reuse, tmp_path, monkeypatch, written):
    take = generation.Shoot.take

    def interrupted(self, number):
        if number == 5:
            raise KeyboardInterrupt
        return take(self, number)

    monkeypatch.setattr(generation.Shoot, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_houses(tmp_path, range(SEED, SEED + 1), HouseSettings(frames=FRAMES, size=SIZE))
    assert [file.name for file in tmp_path.iterdir()] == ["houses.json"]
    monkeypatch.setattr(generation.Shoot, "take", take)
    done = tmp_path / "house-000002"
    done.mkdir()
    folders = write_houses(tmp_path, range(SEED - 1, SEED + 1), HouseSettings(frames=FRAMES, size=SIZE))
    assert list(done.iterdir()) == []  # what was there stayed as it was
    assert content(folders[1]) == content(written)


def test_a_folder_keeps_to_its_settings(tmp_path):
    (tmp_path / "houses.json").write_text(json.dumps({"frames": 3}))
    with pytest.raises(LocusError, match="other settings"):
        write_houses(tmp_path, range(1), HouseSettings(frames=4))


def test_a_preview_shows_many_views(written, tmp_path):
    from PIL import Image

    sheet = write_preview([written], tmp_path)
    assert Image.open(sheet).width > 6 * 64


@pytest.mark.parametrize(
    ("seed", "settings", "message"),
    [
        (-1, {}, "negative"),
        (0, {"frames": 0}, "at least one frame"),
        (0, {"models": Path("/nonexistent")}, "is not a folder"),
        (0, {"textures": Path("/nonexistent")}, "is not a folder"),
    ],
)
def test_bad_arguments_are_told_in_a_sentence(seed, settings, message):
    with pytest.raises(LocusError, match=message):
        generate(seed, HouseSettings(**settings))


def test_an_unwritable_folder_is_told_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LocusError, match="cannot be written"):
        write_houses(tmp_path / "file" / "houses", range(1))


def test_the_command_writes_houses_and_a_sheet_and_says_so(reuse, tmp_path, capsys):
    words = ["houses", str(tmp_path / "out"), "--seed", str(SEED), "--size", "64", "48", "--preview"]
    assert main([*words, "--frames-per-scene", "6"]) == 0
    assert (tmp_path / "out" / f"house-{SEED:06d}" / "transforms.json").exists()
    assert (tmp_path / "out" / "preview.jpg").exists()
    assert "1 house in" in capsys.readouterr().out


def test_two_shards_leave_what_one_process_leaves(reuse, tmp_path):
    words = ["--count", "2", "--seed", str(SEED), "--frames-per-scene", "2", "--size", "32", "24"]
    for shard in ("1/2", "0/2"):
        assert main(["houses", str(tmp_path / "two"), *words, "--shard", shard]) == 0
    assert main(["houses", str(tmp_path / "one"), *words]) == 0
    one, two = content(tmp_path / "one"), content(tmp_path / "two")
    assert len([name for name in one if name.endswith("transforms.json")]) == 2
    assert one == two


@pytest.mark.parametrize("words", [["--count", "0"], ["--frames-per-scene", "0"], ["--models", "/nonexistent"]])
def test_the_command_tells_mistakes_in_a_sentence(tmp_path, capsys, words):
    assert main(["houses", str(tmp_path / "out"), *words]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
