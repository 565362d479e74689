"""How far the rays of a frame go, on a coarse grid: all that a later visit needs to be compared with.

Depth is kept in millimetres, 0 where it is unknown: 9.6 kB a frame.
"""

import numpy as np
from jaxtyping import Float32, UInt16
from numpy import ndarray

from locus.geometry import Camera
from locus.scenes import Frame

ROWS, COLUMNS = 60, 80
UNIT = 0.001  # metres
FARTHEST = 2**16 - 1  # units: what is farther is kept as if it were here

Surface = UInt16[ndarray, "60 80"]


def coarse_depth(frame: Frame) -> tuple[Surface, Float32[ndarray, "4"]]:
    """The depth at the middle of each cell of the grid, and the grid's fx, fy, cx, cy."""
    depth, (height, width) = frame.depth, frame.depth.shape
    rows = ((np.arange(ROWS) + 0.5) * height / ROWS).astype(int)
    columns = ((np.arange(COLUMNS) + 0.5) * width / COLUMNS).astype(int)
    units = (depth[np.ix_(rows, columns)] / UNIT).round().clip(0, FARTHEST).astype(np.uint16)
    small = frame.camera.resized(COLUMNS, ROWS)
    return units, np.array([small.fx, small.fy, small.cx, small.cy], np.float32)


def grid_camera(lens: Float32[ndarray, "4"]) -> Camera:
    """The camera of a frame's grid."""
    return Camera(COLUMNS, ROWS, *map(float, lens))
