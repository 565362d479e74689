"""Depth carried from one camera to another, against OpenCV's projection and against what the other camera sees."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from locus.geometry import Camera
from locus.scenes.registration import register
from tests.scenes import room

DEPTH_CAMERA = Camera(room.WIDTH, room.HEIGHT, room.FX, room.FY, room.CX, room.CY)


def beside(move=(-0.05, 0.01, 0.0), turn=(0.0, 0.0, 0.0)) -> np.ndarray:
    other_from_camera = np.eye(4)
    other_from_camera[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    other_from_camera[:3, 3] = move
    return other_from_camera


def opencv_matrix(camera: Camera) -> np.ndarray:
    return np.array([[camera.fx, 0, camera.cx - 0.5], [0, camera.fy, camera.cy - 0.5], [0, 0, 1]])


@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.5, 1.0, 2.3]),
    move=st.tuples(*[st.floats(-0.1, 0.1)] * 3),
    turn=st.tuples(*[st.floats(-0.1, 0.1)] * 3),
)
@settings(max_examples=40, deadline=None)
def test_every_point_is_where_opencv_projects_it_or_hidden_by_a_nearer_one(seed, scale, move, turn):
    random = np.random.default_rng(seed)
    depth = random.uniform(1.0, 4.0, (room.HEIGHT, room.WIDTH)) * (random.random((room.HEIGHT, room.WIDTH)) < 0.5)
    other = Camera(int(100 * scale), int(70 * scale), 80 * scale, 78 * scale, 51 * scale, 33 * scale)
    other_from_camera = beside(move, turn)
    registered = register(depth, DEPTH_CAMERA, other, other_from_camera)
    v, u = np.nonzero(depth)
    rays = cv2.undistortPoints(np.stack([u, v], -1)[:, None].astype(float), opencv_matrix(DEPTH_CAMERA), None)[:, 0]
    points = np.column_stack([rays, np.ones(len(rays))]) * depth[v, u][:, None]
    rotation = cv2.Rodrigues(other_from_camera[:3, :3])[0]
    landed = cv2.projectPoints(points, rotation, other_from_camera[:3, 3], opencv_matrix(other), None)[0][:, 0]
    x, y = np.rint(landed).astype(int).T
    z = points @ other_from_camera[2, :3] + other_from_camera[2, 3]
    inside = (x >= 0) & (x < other.width) & (y >= 0) & (y < other.height) & (z > 0)
    found = registered[y[inside], x[inside]]
    assert (found > 0).all()
    assert (found <= z[inside] * (1 + 1e-6)).all()
    known = registered[registered > 0]
    assert cKDTree(z[:, None]).query(known[:, None])[0].max(initial=0) < 1e-5  # nothing but depths of points


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_a_room_looks_as_the_other_camera_sees_it_without_holes(scale, monkeypatch):
    shot = room.shots(1)[0]
    other_from_camera = beside(turn=(0.01, -0.02, 0.03))
    world_from_other = shot.world_from_camera @ np.linalg.inv(other_from_camera)
    depth = shot.depth
    sizes = {"WIDTH": 60, "HEIGHT": 44, "FX": 58.0, "FY": 57.0, "CX": 31.0, "CY": 21.0}
    for name, value in sizes.items():
        monkeypatch.setattr(room, name, int(value * scale) if name in ("WIDTH", "HEIGHT") else value * scale)
    truth = room.shoot("other", world_from_other).depth
    other = Camera(room.WIDTH, room.HEIGHT, room.FX, room.FY, room.CX, room.CY)
    registered = register(depth, DEPTH_CAMERA, other, other_from_camera)
    # Where no edge is near, neither of the surface nor of what one camera sees and the other does not.
    window = np.ones((int(5 * scale) | 1,) * 2)
    even = cv2.dilate(truth, window) - cv2.erode(truth, window) < 0.15 * truth
    inner = np.zeros_like(even)
    border = int(6 * scale)
    inner[border:-border, border:-border] = True
    compared = even & inner
    assert compared.mean() > 0.3
    assert (registered[compared] > 0).all()
    error = np.abs(registered - truth)[compared] / truth[compared]
    assert np.median(error) < 0.01
    assert np.quantile(error, 0.99) < 0.05


def test_unknown_depth_and_points_behind_the_other_camera_are_left_out():
    depth = np.full((room.HEIGHT, room.WIDTH), np.nan, np.float32)
    depth[0, :4] = 0, -1, np.inf, np.nan
    assert not register(depth, DEPTH_CAMERA, DEPTH_CAMERA, np.eye(4)).any()
    near = np.full((room.HEIGHT, room.WIDTH), 0.5, np.float32)
    assert not register(near, DEPTH_CAMERA, DEPTH_CAMERA, beside((0, 0, -0.5))).any()
    np.testing.assert_array_equal(register(near, DEPTH_CAMERA, DEPTH_CAMERA, np.eye(4)), near)
