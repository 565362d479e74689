"""Intrinsics as most data sets store them, with the centre of the top-left pixel at (0, 0) as OpenCV has it."""

from pathlib import Path

from jaxtyping import Num
from numpy import ndarray

from locus.errors import LocusError
from locus.geometry import Camera


def camera_from_opencv(matrix: Num[ndarray, "3 3"], size: tuple[int, int], file: Path) -> Camera:
    """A camera from a matrix K whose pixel centres are whole numbers; `size` is (width, height)."""
    width, height = size
    cx, cy = matrix[0, 2] + 0.5, matrix[1, 2] + 0.5
    if cx > width or cy > height:
        raise LocusError(
            f"{file} puts the principal point at ({cx:.0f}, {cy:.0f}), outside the {width}×{height} image; "
            "was the image resized after the calibration?"
        )
    return Camera(width, height, float(matrix[0, 0]), float(matrix[1, 1]), float(cx), float(cy))
