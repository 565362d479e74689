"""Lens distortion, undone: against OpenCV's projection through the same lens."""

import cv2
import numpy as np
import pytest

from locus.geometry import Camera
from locus.scenes.lens import Lens

CAMERA = Camera(160, 120, 110.0, 112.0, 82.0, 58.5)
MATRIX = np.array([[110.0, 0, 81.5], [0, 112.0, 58.0], [0, 0, 1]])
LENSES = {
    "plumb_bob": (Lens(-0.21, 0.05, 0.002, -0.001, 0.01), [-0.21, 0.05, 0.002, -0.001, 0.01]),
    "rational": (
        Lens(0.3, -0.1, 0.001, 0.002, 0.02, 0.45, -0.05, 0.01),
        [0.3, -0.1, 0.001, 0.002, 0.02, 0.45, -0.05, 0.01],
    ),
    "fisheye": (Lens(0.03, -0.01, k3=0.004, k4=-0.001, fisheye=True), [0.03, -0.01, 0.004, -0.001]),
    "fisheye without coefficients": (Lens(fisheye=True), [0.0, 0.0, 0.0, 0.0]),
}


def projected(rays: np.ndarray, name: str) -> np.ndarray:
    """Where OpenCV puts points, in its pixels."""
    lens, coefficients = LENSES[name]
    still, numbers = np.zeros(3), np.array(coefficients)
    if lens.fisheye:
        return cv2.fisheye.projectPoints(rays[:, None], still, still, MATRIX, numbers)[0][:, 0]
    return cv2.projectPoints(rays, still, still, MATRIX, numbers)[0][:, 0]


@pytest.mark.parametrize("name", LENSES)
def test_a_picture_of_coordinates_comes_out_where_opencv_projects_it(name):
    """The distorted picture holds its own pixel coordinates, so what comes out says where it was taken from."""
    lens = LENSES[name][0]
    assert lens.distorts
    x, y = np.meshgrid(np.arange(160, dtype=np.float32), np.arange(120, dtype=np.float32))
    straight = lens.straighten(np.stack([x, y, np.ones_like(x)], axis=-1), CAMERA)
    u, v = np.meshgrid(np.arange(160), np.arange(120))
    rays = np.column_stack([(u.ravel() - 81.5) / 110.0, (v.ravel() - 58.0) / 112.0, np.ones(u.size)])
    expected = projected(rays, name).reshape(120, 160, 2)
    inside = (expected >= 0).all(-1) & (expected[..., 0] <= 159) & (expected[..., 1] <= 119)
    assert inside.mean() > 0.6
    np.testing.assert_allclose(straight[inside][:, :2], expected[inside], atol=0.04)  # OpenCV looks up in 1/32 pixels
    nearest = lens.straighten(x, CAMERA)
    sharp = inside & (np.abs(expected[..., 0] % 1 - 0.5) > 0.01)
    np.testing.assert_array_equal(nearest[sharp], np.rint(expected[..., 0])[sharp])


def test_beyond_the_border_a_map_is_unknown():
    straight = Lens(0.5).straighten(np.ones((120, 160), np.float32), CAMERA)
    assert straight[60, 80] == 1
    assert straight[0, 0] == 0
