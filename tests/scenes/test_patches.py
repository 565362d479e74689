"""Patch points against closed forms: planes, steps, holes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus
from locus.errors import LocusError
from locus.geometry import Camera
from locus.scenes import overlap, patch_points
from locus.scenes.patches import patch_points_camera
from tests.scenes import layouts, room

CAMERA = Camera(131, 97, 110.0, 115.0, 60.0, 50.0)


def plane_depth(normal: np.ndarray, distance: float, camera: Camera = CAMERA) -> np.ndarray:
    """Depth of the plane normal · p = distance, by meeting each pixel's ray with it; 0 where it is not ahead."""
    u, v = np.meshgrid(np.arange(camera.width) + 0.5, np.arange(camera.height) + 0.5)
    rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones_like(u)], axis=-1)
    with np.errstate(divide="ignore"):
        depth = distance / (rays @ normal)
    return np.where((depth > 0) & (depth < 100), depth, 0).astype(np.float32)


@given(
    st.floats(-0.8, 0.8),
    st.floats(-0.8, 0.8),
    st.integers(1, 48),
    st.integers(1, 65),
    st.floats(0, 0.4),
    st.integers(0, 1000),
)
def test_points_of_a_slanted_plane_with_holes_lie_on_it_at_the_centre_of_their_patch(a, b, rows, columns, holes, seed):
    normal = np.array([a, b, 1.0])
    depth = plane_depth(normal, 2.0)
    depth[np.random.default_rng(seed).random(depth.shape) < holes] = 0
    points, valid = patch_points_camera(depth, CAMERA, (rows, columns))
    assert np.isnan(points[~valid]).all()
    np.testing.assert_allclose(points[valid] @ normal, 2.0, rtol=2e-5)
    pixels, _ = CAMERA.project(points[valid])
    y, x = np.nonzero(valid)
    expected = np.stack([(x + 0.5) * 131 / columns, (y + 0.5) * 97 / rows], axis=-1)
    np.testing.assert_allclose(pixels, expected, atol=1e-3)


def test_every_patch_of_a_whole_plane_is_valid():
    depth = plane_depth(np.array([0.3, -0.4, 1.0]), 2.0)
    for grid in [(7, 9), (18, 24), (97, 131), (1, 1)]:
        assert patch_points_camera(depth, CAMERA, grid)[1].all()


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("step", [1.15, 1.5, 4.0])
def test_a_patch_that_straddles_a_depth_edge_has_no_point(share, step):
    camera = Camera(40, 40, 40.0, 40.0, 20.0, 20.0)
    depth = np.full((40, 40), 2.0, np.float32)
    depth[:, int(20 * share) : 20] *= step
    _, valid = patch_points_camera(depth, camera, (2, 2))
    assert valid.tolist() == [[False, True], [False, True]]


def test_a_few_stray_pixels_do_not_move_a_point():
    camera = Camera(40, 40, 40.0, 40.0, 20.0, 20.0)
    depth = np.full((40, 40), 2.0, np.float32)
    depth[3:6, 3:6] = 9.0  # 9 of 400 pixels
    points, valid = patch_points_camera(depth, camera, (2, 2))
    assert valid.all()
    np.testing.assert_allclose(points[..., 2], 2.0)


@pytest.mark.parametrize(("known", "expected"), [(0.0, False), (0.4, False), (0.6, True), (1.0, True)])
def test_a_patch_needs_half_its_depth(known, expected):
    camera = Camera(20, 20, 20.0, 20.0, 10.0, 10.0)
    depth = np.zeros((20, 20), np.float32)
    depth[:, : int(20 * known)] = 2.0
    assert patch_points_camera(depth, camera, (1, 1))[1].item() is expected


@pytest.mark.parametrize("grid", [(0, 4), (4, 0), (98, 4), (4, 132)])
def test_impossible_grids_are_refused(grid):
    with pytest.raises(LocusError, match="patches"):
        patch_points_camera(plane_depth(np.array([0.0, 0.0, 1.0]), 1.0), CAMERA, grid)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    root = tmp_path_factory.mktemp("room")
    layouts.nerfstudio(root, room.shots(12))
    return locus.load_scene(root)


def test_world_points_lie_on_the_rooms_boxes(scene):
    """Every valid point is on the surface of some box of the room."""
    for frame in scene:
        points, valid = patch_points(frame, (15, 20))
        assert 0.5 < valid.mean() <= 1
        gaps = []
        for low, high, _, _ in room.BOXES:
            outside = np.maximum(np.array(low) - points[valid], points[valid] - np.array(high)).max(axis=1)
            gaps.append(np.abs(outside))  # 0 on the surface, from either side
        assert np.quantile(np.min(gaps, axis=0), 0.98) < 0.02


def test_overlap_is_the_share_of_points_that_pass_a_ray_test(scene):
    """Referee: a point of frame a is seen by b if a ray from b meets nothing before it."""
    shares = overlap(scene, grid=(15, 20)).toarray()
    assert shares.shape == (12, 12)
    assert (np.diag(shares) > 0.99).all()
    for a in (0, 5):
        points, valid = patch_points(scene[a], (15, 20))
        for b in range(12):
            pose = scene[b].world_from_camera
            local = (points[valid] - pose[:3, 3]) @ pose[:3, :3]
            u, v = local[:, 0] / local[:, 2] * room.FX + room.CX, local[:, 1] / local[:, 2] * room.FY + room.CY
            inside = (local[:, 2] > 0) & (u >= 0) & (u < room.WIDTH) & (v >= 0) & (v < room.HEIGHT)
            seen = [_clear(pose[:3, 3], point) for point in points[valid][inside]]
            assert abs(shares[a, b] - np.sum(seen) / valid.sum()) < 0.05


def _clear(eye: np.ndarray, point: np.ndarray) -> bool:
    """No box between the eye and 10 cm before the point."""
    ray = point - eye
    end = 1 - 0.1 / np.linalg.norm(ray)
    for low, high, _, _ in room.BOXES[1:]:
        a, b = (np.array(low) - eye) / ray, (np.array(high) - eye) / ray
        enter, leave = np.minimum(a, b).max(), np.maximum(a, b).min()
        if enter < leave and 0 < enter < end:
            return False
    return True


def test_a_frame_without_depth_overlaps_nothing(scene, tmp_path):
    layouts.nerfstudio(tmp_path, room.shots(3))
    layouts.save(tmp_path / "depth/000001.png", np.zeros((room.HEIGHT, room.WIDTH), np.uint16))
    shares = overlap(locus.load_scene(tmp_path)).toarray()
    assert (shares[1] == 0).all()
    assert (shares[0] > 0).any()
