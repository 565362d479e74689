"""The points of maps: which keypoints are kept, how exactly, and their file."""

import json
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors import safe_open
from safetensors.numpy import save_file

from locus.errors import LocusError
from locus.geometry import transform
from locus.keypoints.fusion import PlacedKeypoints
from locus.landmarks import LandmarkMap, MapError, merge
from locus.landmarks.points import BY_POINT, FRAME, MapPoints, in_8_bits
from tests.landmarks import places
from tests.landmarks.places import Scattered
from tests.scenes import room


@pytest.fixture(scope="module")
def seen():
    return places.seen(places.scene(room.shots(12)[:4]), scales=2)


@pytest.fixture(scope="module")
def model():
    return places.model((0.15, 0.3))


@pytest.fixture(scope="module")
def world(model, seen):
    return LandmarkMap.build(model, seen, detector=Scattered())


@pytest.fixture
def saved(world, tmp_path):
    (file,) = world.save(tmp_path / "map").glob("points-*.safetensors")
    return file


def same(a, b):
    return a.detector == b.detector and all(
        np.array_equal(getattr(a, field.name), getattr(b, field.name))
        for field in fields(MapPoints)
        if field.name != "detector"
    )


def test_the_best_keypoints_that_have_depth_are_kept(model):
    shot = room.shots(12)[0]
    depth = shot.depth.copy()
    depth[:, :40] = 0
    half = places.seen(places.scene([replace(shot, depth=depth), *room.shots(12)[1:3]]))
    points = LandmarkMap.build(places.model(), half, detector=Scattered(100)).points
    found = Scattered(100).detect(shot.image)
    kept = found.pixels[found.pixels[:, 0].astype(int) >= 40]
    assert points.count[0] == len(kept)
    of_frame = points.frame(0)
    assert np.abs(of_frame.placed.keypoints.pixels - kept).max() < 1 / 16
    x, y = kept.astype(int).T
    expected = transform(shot.world_from_camera, places.CAMERA.unproject(kept, depth[y, x].astype(np.float64)))
    assert np.allclose(of_frame.position, expected, atol=1e-5)


def test_a_frame_takes_no_more_than_it_may(world):
    taken = sum(getattr(world.points, name).nbytes for name in BY_POINT) / len(world.points)
    assert FRAME - 500 < taken <= FRAME


def test_eight_bits_keep_directions(seen, world):
    """Cosines are off by thousandths, and so mutual neighbours are nearly the same."""
    exact = PlacedKeypoints.of(Scattered().detect(seen.frame(0).image), seen.features[:, 0])
    kept = world.points.frame(0).placed
    rows = [int(np.abs(exact.keypoints.pixels - pixel).sum(axis=1).argmin()) for pixel in kept.keypoints.pixels]
    exact = exact[np.array(rows)]
    for a, b in ((exact.keypoints.descriptors, kept.keypoints.descriptors), (exact.places, kept.places)):
        assert torch.allclose(b.norm(dim=-1), torch.ones(()), atol=1e-5)
        assert (1 - (a * b).sum(dim=-1)).max() < 2e-4
    noisy = F.normalize(exact.keypoints.descriptors + 0.1 * torch.randn(len(rows), 64), dim=-1)
    best = [(noisy @ each.keypoints.descriptors.T).argmax(dim=1) for each in (exact, kept)]
    assert (best[0] == best[1]).float().mean() > 0.99


@given(arrays(np.float64, (5, 8), elements=st.floats(-1, 1, allow_subnormal=False)))
def test_no_number_is_off_by_more_than_half_a_step(vectors):
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    off = np.abs(in_8_bits(vectors) * largest / 127 - vectors)
    assert (off <= np.maximum(largest / 127, 1e-12) * 0.5001).all()


def test_points_come_back_as_they_were_and_are_read_only_when_used(world, saved):
    again = LandmarkMap.load(saved.parent)
    assert same(again.points, world.points)
    assert isinstance(again.points.descriptor, np.memmap)
    stated = json.loads((saved.parent / "map.json").read_text())
    assert stated["provenance"]["scenes"][0]["points"] == world.points.count.sum()
    again.save(saved.parent)  # over the file that it reads from
    assert same(LandmarkMap.load(saved.parent).points, world.points)


def test_opening_a_map_needs_no_kornia(saved):
    code = (
        "import sys; from locus.landmarks import LandmarkMap; "
        f"world = LandmarkMap.load({str(saved.parent)!r}); world.points.frame(0); assert 'kornia' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_adding_merging_and_choosing_keep_points_with_their_frames(model, seen, world):
    first = LandmarkMap.build(model, seen.take([0, 1]), detector=Scattered())
    assert same(first.add(model, seen.take([2, 3]), detector=Scattered()).points, world.points)
    bare = LandmarkMap.build(model, seen.take([0, 1]))
    assert bare.points is None
    later = bare.add(model, seen.take([2, 3]), detector=Scattered()).points
    assert later.count.tolist() == [0, 0, *world.points.count[2:]]
    assert np.array_equal(later.frame(3).position, world.points.frame(3).position)
    hall = places.seen(places.scene(room.shots(8)[4:7], "hall"), scales=2, world=1)
    both = merge([LandmarkMap.build(model, hall, detector=Scattered()), world])
    alone = both.environment(both.environment_number("room"))
    assert np.array_equal(alone.points.frame(2).position, world.points.frame(2).position)


def test_a_part_of_the_points_is_saved_as_such(world, tmp_path):
    part = replace(world, points=world.points.take(np.array([2, 0, 1, 3])))
    again = LandmarkMap.load(part.save(tmp_path)).points
    assert np.array_equal(again.frame(0).position, world.points.frame(2).position)


def test_a_map_saved_without_points_has_no_file_of_them(world, saved):
    replace(world, points=None).save(saved.parent)
    assert not saved.exists()
    assert LandmarkMap.load(saved.parent).points is None


def test_a_map_whose_points_are_missing_or_anothers_says_so(world, saved, tmp_path):
    content = saved.read_bytes()
    saved.unlink()
    with pytest.warns(UserWarning, match="missing or belongs to another map"):
        assert LandmarkMap.load(saved.parent).points is None
    moved = replace(world.points, position=world.points.position + 1)
    other = replace(world, points=moved).save(tmp_path / "other")
    next(other.glob("points-*")).write_bytes(content)
    with pytest.warns(UserWarning, match="missing or belongs to another map"):
        assert LandmarkMap.load(other).points is None


def test_a_truncated_file_is_refused(saved):
    content = saved.read_bytes()
    for length in (0, 5, 100, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:length])
        with pytest.raises(MapError, match=r"does not hold the points of a map|is damaged"):
            LandmarkMap.load(saved.parent)


WRONG = {
    "more than there are": {"count": np.array([480, 0, 0, 9], np.int32)},
    "negative": {"count": np.array([-1, 0, 0, 1], np.int32)},
    "of fewer frames": {"count": np.zeros(3, np.int32)},
    "of another type": {"count": np.zeros(4, np.float32)},
    "without a size": {"size": np.zeros((4, 2), np.int32)},
    "of one scale": {"places": np.zeros((7, 1, places.DIMENSION), np.int8)},
    "missing": {"pixel": None},
}


@pytest.mark.parametrize("values", WRONG.values(), ids=WRONG.keys())
def test_arrays_that_are_no_points_are_refused(saved, values):
    changed(saved, values)
    with pytest.raises(MapError, match="does not hold the points of a map"):
        LandmarkMap.load(saved.parent)


def changed(saved, values):
    with safe_open(saved, "numpy") as file:
        stated = {name: text for name, text in file.metadata().items() if name != "checksum"}
        held = {name: file.get_tensor(name) for name in file.keys()} | values  # noqa: SIM118
    save_file({name: value for name, value in held.items() if value is not None}, saved, stated)


def test_points_that_are_not_finite_are_refused_when_they_are_used(world, saved):
    changed(saved, {"position": np.full_like(world.points.position, np.nan)})
    points = LandmarkMap.load(saved.parent).points
    with pytest.raises(LocusError, match="not finite"):
        points.frame(0)


@pytest.mark.filterwarnings("ignore:.*belongs to another map")
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_damaged_file_without_checksum_gives_points_or_an_error(world, saved, data):
    changed(saved, {})
    content = saved.read_bytes()
    damaged = bytearray(content)
    header = int.from_bytes(content[:8], "little") + 8
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, header - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(b'0123,:"[]{}')
        )
    saved.write_bytes(damaged)
    try:
        again = LandmarkMap.load(saved.parent).points
        found = None if again is None else again.frame(3)
    except LocusError:
        found = None  # any other error fails the test
    else:
        assert found is None or len(found.position) == len(found.placed)
    finally:
        saved.write_bytes(content)


def test_images_without_texture_or_of_two_pixels_have_no_points():
    try:
        from locus.tasks.placed_points import placed_points, point_detector

        point_detector()
    except LocusError as error:
        pytest.skip(str(error))
    features = F.normalize(torch.randn(2, 3, 4, 8), dim=-1)
    assert len(placed_points(np.full((48, 64, 3), 90, np.uint8), features)) == 0
    for shape in ((1, 2, 3), (2, 1, 3)):
        few = placed_points(np.arange(6, dtype=np.uint8).reshape(shape), features)
        assert few.places.shape == (2, len(few), 8)
