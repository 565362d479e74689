"""Undoing lens distortion: images, depth and labels resampled as a pinhole camera would have seen them."""

from dataclasses import dataclass, field
from functools import lru_cache

import cv2
import numpy as np
from jaxtyping import Num, Shaped
from numpy import ndarray

from locus.geometry import Camera


@dataclass(frozen=True)
class Lens:
    """OpenCV's coefficients: radial and tangential, with k4 to k6 rational; or, of a fisheye, k1 to k4 alone."""

    k1: float = 0.0
    k2: float = 0.0
    p1: float = 0.0
    p2: float = 0.0
    k3: float = 0.0
    k4: float = 0.0
    k5: float = 0.0
    k6: float = 0.0
    fisheye: bool = field(default=False, kw_only=True)
    """The equidistant model: also without coefficients it is not a pinhole camera's."""

    @property
    def distorts(self) -> bool:
        return self != Lens()

    def straighten(self, values: Shaped[ndarray, "h w *c"], camera: Camera) -> Shaped[ndarray, "h w *c"]:
        """An image, or a map of depth or labels, as a pinhole camera would have seen it."""
        return self.undistort_image(values, camera) if values.ndim == 3 else self.undistort_map(values, camera)

    def undistort_image(self, image: Num[ndarray, "h w 3"], camera: Camera) -> Num[ndarray, "h w 3"]:
        x, y = _lookup(self, camera.resized(image.shape[1], image.shape[0]))
        return cv2.remap(image, x, y, cv2.INTER_LINEAR)

    def undistort_map(self, values: Shaped[ndarray, "h w"], camera: Camera) -> Shaped[ndarray, "h w"]:
        """For depth and labels: the nearest stored value, never a mixture; 0 beyond the border."""
        height, width = values.shape
        x, y = (np.rint(grid).astype(np.int32) for grid in _lookup(self, camera.resized(width, height)))
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        return np.where(inside, values[y.clip(0, height - 1), x.clip(0, width - 1)], values.dtype.type(0))


@lru_cache(maxsize=8)
def _lookup(lens: Lens, camera: Camera) -> tuple[ndarray, ndarray]:
    """For each pixel of the pinhole image, where in the distorted one to look, in OpenCV's pixels (centre at 0)."""
    matrix = camera.matrix
    matrix[:2, 2] -= 0.5
    size = (camera.width, camera.height)
    if lens.fisheye:
        coefficients = np.array([lens.k1, lens.k2, lens.k3, lens.k4])
        x, y = cv2.fisheye.initUndistortRectifyMap(matrix, coefficients, np.eye(3), matrix, size, cv2.CV_32FC1)
        return x, y
    coefficients = np.array([lens.k1, lens.k2, lens.p1, lens.p2, lens.k3, lens.k4, lens.k5, lens.k6])
    x, y = cv2.initUndistortRectifyMap(matrix, coefficients, np.eye(3), matrix, size, cv2.CV_32FC1)
    return x, y
