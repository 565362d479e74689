"""Maps on disk: whole, or the one before, or one clear sentence."""

import itertools
import json
import multiprocessing
import signal
import time
from dataclasses import fields

import numpy as np
import pytest
import trimesh
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from locus.landmarks import LandmarkMap, MapError
from locus.landmarks import map_files as files
from locus.landmarks.arrays import Frames, Landmarks
from tests.landmarks import places
from tests.scenes import room

FILES = ["landmarks.ply", "map.json", "map.safetensors"]


@pytest.fixture(scope="module")
def small():
    """A map of a few landmarks, so that most bytes of its file matter."""
    seen = places.seen(places.scene(room.shots(12)[:3]))
    return LandmarkMap.build(places.model(), seen, most=6)


@pytest.fixture(scope="module")
def content(small, tmp_path_factory):
    """Of a file without a checksum, as earlier versions wrote it, so that more than that is looked at."""
    saved = small.save(tmp_path_factory.mktemp("map")) / files.ARRAYS
    changed(saved)
    return saved.read_bytes()


@pytest.fixture
def saved(small, tmp_path):
    return small.save(tmp_path / "map") / files.ARRAYS


def assert_equal(a, b):
    for group, kind in (("landmarks", Landmarks), ("frames", Frames)):
        for part in fields(kind):
            one, other = (getattr(getattr(world, group), part.name) for world in (a, b))
            assert one.dtype == other.dtype
            assert np.array_equal(one, other), part.name
    assert np.array_equal(a.sightings.toarray(), b.sightings.toarray())
    for name in ("frame_names", "environments", "classes", "radii", "model", "provenance"):
        assert getattr(a, name) == getattr(b, name), name


def test_a_map_comes_back_as_it_was(world, tmp_path):
    folder = world.save(tmp_path / "deep" / "map")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    again = LandmarkMap.load(folder)
    assert_equal(again, world)
    assert_equal(LandmarkMap.load(folder / files.ARRAYS), world)
    stated = json.loads((folder / files.HEADER).read_text())
    assert stated["landmarks"] == len(world)
    assert stated["environments"] == ["room"]


def test_saving_what_was_loaded_gives_the_same_bytes(small, saved, tmp_path):
    again = LandmarkMap.load(saved).save(tmp_path / "again")
    assert (again / files.ARRAYS).read_bytes() == saved.read_bytes()


def save_for_ever(maps, folder, started):
    for world in itertools.cycle(maps):
        world.save(folder)
        started.set()


def test_a_program_that_is_killed_while_saving_leaves_one_of_the_maps(small, world, tmp_path):
    maps = {len(each): each for each in (small, world)}
    context = multiprocessing.get_context("fork")  # torch is not imported again by each
    random = np.random.default_rng(0)
    for _ in range(20):
        started = context.Event()
        process = context.Process(target=save_for_ever, args=(maps.values(), tmp_path, started), daemon=True)
        process.start()
        assert started.wait(60)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        again = LandmarkMap.load(tmp_path)
        assert_equal(again, maps[len(again)])
    (tmp_path / f".{files.ARRAYS}.a1b2c3d4.locus-partial").touch()  # in case that no kill came at such a moment
    again.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_there_is_no_map(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(MapError, match=r"holds no map.*locus map SCENE"):
            LandmarkMap.load(path)


def test_a_truncated_file_is_not_whole(saved):
    content = saved.read_bytes()
    for length in (0, 5, 100, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:length])
        with pytest.raises(MapError, match="not a whole map file"):
            LandmarkMap.load(saved)


def test_foreign_files_are_named(saved):
    for content in (b"not this at all" * 50, b"PK\x03\x04" + bytes(100)):
        saved.write_bytes(content)
        with pytest.raises(MapError, match="not a whole map file"):
            LandmarkMap.load(saved)
    save_file({"weight": np.zeros(3)}, saved)
    with pytest.raises(MapError, match="not a map of LoCUS"):
        LandmarkMap.load(saved)
    save_file({"weight": np.zeros(3)}, saved, {"header": "[]"})
    with pytest.raises(MapError, match="not a map of LoCUS"):
        LandmarkMap.load(saved)


def changed(saved, arrays=None, header=None):
    """The file with some of what is in it replaced (None takes it out)."""
    with safe_open(saved, "numpy") as file:
        stated = json.loads(file.metadata()["header"]) | (header or {})
        held = {name: file.get_tensor(name) for name in file.keys()} | (arrays or {})  # noqa: SIM118
    stated = {name: value for name, value in stated.items() if value is not None}
    save_file({name: value for name, value in held.items() if value is not None}, saved, {"header": json.dumps(stated)})


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_other_versions_are_refused(saved, version):
    changed(saved, header={"version": version})
    with pytest.raises(MapError, match=r"version.*update LoCUS"):
        LandmarkMap.load(saved)


LENGTH = 6
WRONG = {
    "too short": ("landmarks.score", np.zeros(LENGTH - 1, np.float32)),
    "too wide": ("landmarks.position", np.zeros((LENGTH, 4), np.float32)),
    "of another type": ("landmarks.environment", np.zeros(LENGTH, np.float32)),
    "not finite": ("landmarks.mean", np.full((LENGTH, places.DIMENSION), np.nan, np.float32)),
    "without a dimension": ("landmarks.mean", np.zeros(LENGTH, np.float32)),
    "no such place": ("landmarks.environment", np.ones(LENGTH, np.int32)),
    "no such scale": ("landmarks.scale", np.full(LENGTH, -1, np.int32)),
    "no such place of a frame": ("frames.environment", np.full(3, 7, np.int32)),
    "poses of another shape": ("frames.world_from_camera", np.zeros((3, 3, 4))),
    "more classes than names": ("landmarks.votes", np.zeros((LENGTH, 9), np.int32)),
    "sightings out of range": ("sightings.indices", np.full(10_000, 99, np.int32)),
    "sightings of another type": ("sightings.indptr", np.zeros(4)),
    "missing": ("landmarks.radius", None),
}


@pytest.mark.parametrize(("name", "value"), WRONG.values(), ids=WRONG.keys())
def test_arrays_that_are_no_maps_are_refused(saved, name, value):
    changed(saved, {name: value})
    with pytest.raises(MapError, match="does not hold what a map holds"):
        LandmarkMap.load(saved)


@pytest.mark.parametrize(
    "header",
    [
        {"radii": [0.1, 0.2]},
        {"radii": [-1.0]},
        {"radii": "wide"},
        {"environments": []},
        {"environments": ["room", "nothing of this"]},
        {"frame names": ["one"]},
        {"provenance": {"scenes": 3}},
        {"provenance": "somewhere"},
        {"model": None},
    ],
    ids=str,
)
def test_headers_that_are_no_maps_are_refused(saved, header):
    changed(saved, header=header)
    with pytest.raises(MapError, match="does not hold what a map holds"):
        LandmarkMap.load(saved)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_without_checksum_is_a_map_or_a_map_error(small, content, saved, data):
    damaged = bytearray(content)
    header = int.from_bytes(content[:8], "little") + 8
    for _ in range(data.draw(st.integers(1, 3))):  # half of them in the header, where they hurt
        damaged[data.draw(st.integers(0, header - 1) | st.integers(0, len(content) - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(b'0123456789IFU"{}[],:')
        )
    saved.write_bytes(damaged[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    try:
        again = LandmarkMap.load(saved)
    except MapError:
        return
    assert again.landmarks.position.shape == small.landmarks.position.shape
    assert again.sightings.shape == small.sightings.shape
    again.search(again.landmarks.mean, 2)


def test_any_viewer_reads_the_points(world, tmp_path):
    cloud = trimesh.load(world.save(tmp_path) / files.POINTS)
    assert np.allclose(cloud.vertices, world.landmarks.position)
    assert np.array_equal(cloud.colors[:, :3], world.landmarks.colour.round())
    raw = cloud.metadata["_ply_raw"]["vertex"]["data"]
    assert np.allclose(np.stack([raw[n] for n in ("nx", "ny", "nz")], axis=-1).reshape(-1, 3), world.landmarks.normal)
    assert np.allclose(raw["radius"].ravel(), world.landmarks.radius)
