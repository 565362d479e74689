"""How far the rays of a frame go, on a coarse grid, and of what kind is what they meet, on a coarser one.

That is all that a later visit needs to be compared with. Depth is kept in millimetres, 0 where it is unknown: 9.6 kB a
frame; kinds in 8 bits, 0 where they are unknown: 19.2 kB.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32, Int8, UInt16
from numpy import ndarray

from locus.features.dense import SceneFeatures
from locus.geometry import Camera
from locus.scenes import Frame

ROWS, COLUMNS = 60, 80
COARSER = 4  # cells of depth across one of kinds
KINDS = (ROWS // COARSER, COLUMNS // COARSER, 64)
UNIT = 0.001  # metres
FARTHEST = 2**16 - 1  # units: what is farther is kept as if it were here

Surface = UInt16[ndarray, "60 80"]
FrameKinds = Int8[ndarray, "15 20 64"]


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


def coarse_kinds(seen: SceneFeatures, row: int) -> FrameKinds:
    """The kinds of what a frame shows, unit length 127; zeros if they are not known for its features."""
    if seen.kinds is None:
        return np.zeros(KINDS, np.int8)
    resized = F.interpolate(seen.kinds[row].movedim(-1, 0)[None], KINDS[:2], mode="bilinear", antialias=True)
    return (F.normalize(resized[0].movedim(0, -1), dim=-1) * 127).round().to(torch.int8).numpy()


def coarse_cells(cells: Bool[ndarray, "60 80"]) -> Float[ndarray, "15 20"]:
    """The share of marked cells of depth in each cell of kinds."""
    return cells.reshape(KINDS[0], COARSER, KINDS[1], COARSER).mean(axis=(1, 3))
