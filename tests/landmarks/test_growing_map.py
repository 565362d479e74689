"""Maps that grow frame by frame, beside the map of all frames at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree

from locus.geometry import pose_error, transform
from locus.landmarks import GrowingMap, LandmarkMap, MapError, search
from locus.landmarks.cells import Cells
from locus.landmarks.correction import corrected
from locus.landmarks.search import GrowingIndex
from locus.scenes import Frame
from locus.tasks.localize import localize_features
from tests.landmarks import places
from tests.landmarks.test_search import clustered
from tests.scenes import room


@pytest.fixture(scope="module")
def grown(model, seen):
    """The room by its frames one by one, with points."""
    growing = GrowingMap(LandmarkMap.empty(model, "room"), model, places.Scattered())
    for row in range(len(seen)):
        growing.update(seen.take([row]))
    return growing.map()


def test_a_grown_map_is_the_map_of_all_frames_within_a_tenth(world, grown):
    assert len(grown) == pytest.approx(len(world), rel=0.1)
    assert grown.sightings.nnz == pytest.approx(world.sightings.nnz, rel=0.1)
    for one, other in ((world, grown), (grown, world)):
        assert (KDTree(one.landmarks.position).query(other.landmarks.position)[0] < places.RADIUS).mean() > 0.95
    assert (grown.landmarks.views == np.diff(grown.sightings.tocsc().indptr)).all()
    assert np.allclose(grown.frames.chance, world.frames.chance.mean(), atol=0.05)
    assert grown.frame_names == world.frame_names
    assert grown.classes == world.classes


def test_images_are_localized_in_it_as_well(world, grown):
    for shot in places.wanderer(4):
        for each in (world, grown):
            found = localize_features(each, places.features(shot), places.CAMERA, shot.depth.astype(np.float32))
            metres, degrees = pose_error(found.world_from_camera, shot.world_from_camera)
            assert (metres, degrees) < (0.1, 5)


def test_what_a_landmark_has_seen_is_the_mean_over_its_patches(model, seen):
    """Twice the same frames, under other names: every mean stays, every count doubles."""
    first = LandmarkMap.empty(model, "room").update(model, seen)
    again = replace(seen.scene, sources=[replace(each, name=f"{each.name}-again") for each in seen.scene.sources])
    both = first.update(model, replace(seen, scene=again))
    assert (both.landmarks.views[: len(first)] >= 2 * first.landmarks.views - 2).mean() > 0.9
    assert np.abs(both.landmarks.position[: len(first)] - first.landmarks.position).max() < places.RADIUS
    assert len(both) < 1.1 * len(first)


def test_a_map_that_was_saved_grows_on(model, seen, grown, tmp_path):
    half = LandmarkMap.empty(model, "room").update(model, seen.take(range(8)), detector=places.Scattered())
    half.save(tmp_path)
    whole = LandmarkMap.load(tmp_path).update(model, seen.take(range(8, 16)), detector=places.Scattered())
    assert whole.frame_names == grown.frame_names
    assert [part["frames"] for part in whole.provenance["scenes"]] == [8, 8]
    assert (whole.points.count == grown.points.count).all()
    assert len(whole) == pytest.approx(len(grown), rel=0.1)


def test_frames_that_a_robot_sends(model):
    robot = places.model()
    frames = [
        Frame.of(shot.name, shot.image, shot.depth.astype(np.float32), places.CAMERA, shot.world_from_camera)
        for shot in room.shots(12)
    ]
    world = LandmarkMap.empty(robot, "room").update(robot, iter(frames))
    assert world.frame_names == tuple(frame.name for frame in frames)
    assert np.array_equal(world.frames.world_from_camera, [frame.world_from_camera for frame in frames])
    assert len(world)


def test_what_cannot_grow_is_refused(model, seen, world):
    with pytest.raises(MapError, match="is in the map already"):
        world.update(model, seen.take([3]))
    with pytest.raises(MapError, match="one environment grows at a time"):
        GrowingMap(replace(world, environments=("a", "b")), model)
    with pytest.raises(MapError, match="their features mean different things"):
        world.update(places.model(seed=1), seen)
    assert world.update(model, []) is world


def test_frames_without_depth_add_nothing(model, seen):
    blind = replace(seen, points=np.full_like(seen.points, np.nan)).take(range(3))
    assert len(LandmarkMap.empty(model, "room").update(model, blind)) == 0


def test_landmarks_go_with_the_frames_that_show_them(grown):
    motion = room.look((3.0, 1.0, 2.0), (0.0, 0.0, 0.0))
    moved = corrected(grown, motion @ grown.frames.world_from_camera)
    assert np.allclose(moved.landmarks.position, transform(motion, grown.landmarks.position), atol=1e-4)
    assert np.allclose(moved.points.position, transform(motion, grown.points.position), atol=1e-4)
    assert np.allclose(np.abs(moved.landmarks.cone - grown.landmarks.cone), 0, atol=0.5)
    with pytest.raises(MapError, match="not 3"):
        corrected(grown, grown.frames.world_from_camera[:3])


def test_landmarks_that_drift_had_doubled_become_one(model, seen):
    """The second round is 0.5 m off: its landmarks stand beside those of the first, until poses are put right."""
    poses = np.stack([frame.world_from_camera for frame in seen.scene])
    away = poses.copy()
    away[8:, 0, 3] += 0.5
    points = seen.points.copy()
    points[8:, ..., 0] += 0.5
    drifted = replace(seen, scene=seen.scene.moved(away), points=points)
    doubled, right = (LandmarkMap.empty(model, "room").update(model, each) for each in (drifted, seen))
    put_right = corrected(doubled, poses)
    assert len(doubled) > 1.15 * len(right)
    assert len(put_right) == pytest.approx(len(right), rel=0.15)


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.floats(0.05, 2.0))
def test_cells_find_all_within_their_size_and_none_far_away(seed, size):
    random = np.random.default_rng(seed)
    old, points, asked = random.uniform(-3, 3, (60, 3)), random.uniform(-3, 3, (60, 3)), random.uniform(-3, 3, (5, 3))
    cells, rows = Cells(size), np.arange(60)
    cells.add(rows, old)
    cells.move(rows, old, points)
    distance = KDTree(asked).query(points)[0]
    found = cells.near(asked)
    assert set(np.flatnonzero(distance <= size)) <= set(found.tolist())
    assert (distance[found] <= 2 * np.sqrt(3) * size).all()
    assert np.array_equal(found, np.unique(found))


@pytest.mark.parametrize("installed", [True, False], ids=["faiss", "no faiss"])
def test_a_growing_index_finds_what_comparing_finds(monkeypatch, installed):
    if installed:
        pytest.importorskip("faiss")
    else:
        monkeypatch.setattr(search, "find_spec", lambda _: None)
    table, asked = clustered(0, 1500), clustered(1, 100)
    index = GrowingIndex(table.shape[1])
    assert [len(each) for each in index.search(asked)] == [0, 0]
    for part in np.array_split(np.arange(1500), 40):
        index.add(part + 7, table[part])
    similarity, rows = index.search(asked)
    best = (asked @ table.T).argmax(axis=1)
    assert (rows == best + 7).mean() >= (0.9 if installed else 1)
    assert np.allclose(similarity, (asked * table[rows - 7]).sum(axis=1), atol=1e-5)
