import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.errors import LocusError
from locus.viewer.cloud import gather, one_per_voxel, thinned
from tests.scenes.room import BOXES


@given(st.integers(1, 300), st.floats(0.05, 2.0), st.integers(0, 100))
def test_one_point_stays_of_each_voxel(count, voxel, seed):
    points = np.random.default_rng(seed).uniform(-3, 3, (count, 3))
    kept = one_per_voxel(points, voxel)
    cells = [tuple(cell) for cell in np.floor((points - points.min(axis=0)) / voxel).astype(int)]
    assert kept.tolist() == sorted(cells.index(cell) for cell in set(cells))


def test_one_stray_point_far_away_does_not_break_the_voxels():
    points = np.random.default_rng(0).uniform(0, 1, (1000, 3))
    points[0] = 1e12
    assert 2 <= len(one_per_voxel(points, 0.01)) <= 1000


@given(st.integers(1, 2000), st.integers(1, 500))
def test_no_more_points_stay_than_allowed(count, most):
    points = np.random.default_rng(count).uniform(0, 1, (count, 3))
    assert 1 <= len(thinned(points, most)) <= most


def test_points_lie_on_the_rooms_surfaces_and_know_their_pixel(viewed):
    points = viewed.cloud.points.astype(float)
    distance = []
    for low, high, *_ in BOXES:
        centre, half = (np.array(low) + high) / 2, (np.array(high) - low) / 2
        beyond = np.abs(points - centre) - half
        outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
        distance.append(np.abs(outside + np.minimum(beyond.max(axis=1), 0)))
    assert np.min(distance, axis=0).max() < 0.01
    width, height = viewed.size
    frame, camera = viewed.seen.frame(3), viewed.seen.frame(3).camera
    own = viewed.cloud.frame == 3
    camera_from_world = np.linalg.inv(frame.world_from_camera)
    seen, _ = camera.project(points[own] @ camera_from_world[:3, :3].T + camera_from_world[:3, 3])
    y, x = np.divmod(viewed.cloud.pixel[own], width)
    assert np.allclose(seen / [camera.width / width, camera.height / height], np.stack([x, y], axis=1) + 0.5, atol=0.05)
    assert np.array_equal(viewed.cloud.colours[own], viewed.pictures[3, y, x])


def test_at_most_so_many_points_are_gathered(viewed):
    assert len(gather(viewed.seen, 500)[1]) <= 500


def test_a_scene_without_any_depth_is_named(viewed, monkeypatch):
    monkeypatch.setattr("locus.scenes.scene.Frame.depth", np.zeros((60, 80), np.float32))
    with pytest.raises(LocusError, match="no depth in any frame"):
        gather(viewed.seen)
