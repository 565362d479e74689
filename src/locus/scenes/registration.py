"""Depth of one camera as another one, beside it, would have seen it."""

import numpy as np
from jaxtyping import Float, Float32, Num
from numpy import ndarray

from locus.geometry import Camera, transform

# A pixel of depth covers this much more than its own square on each side: neighbours on a slanted surface move apart.
MARGIN = 0.25
LARGEST = 16  # pixels that one of depth may cover in a row; more is a point just before the lens


def register(
    depth: Num[ndarray, "h w"], camera: Camera, other: Camera, other_from_camera: Float[ndarray, "4 4"]
) -> Float32[ndarray, "a b"]:
    """A depth map carried to another camera; 0 where nothing is known there. The transform is in the depth's unit.

    Each pixel covers in the other image what its four corners enclose, so that a finer image gets no holes; of two
    surfaces the nearer one counts.
    """
    camera = camera.resized(depth.shape[1], depth.shape[0])
    known = np.isfinite(depth) & (depth > 0)
    pixels, z = camera.pixel_grid()[known], depth[known].astype(np.float64)
    new_z = transform(other_from_camera, camera.unproject(pixels, z))[:, 2]
    corners = []
    for corner in ((-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5), (0.5, 0.5)):
        placed, corner_z = other.project(transform(other_from_camera, camera.unproject(pixels + corner, z)))
        corners.append(np.where(corner_z[:, None] > 0, placed, np.nan))
    low, high = np.min(corners, axis=0) - MARGIN, np.max(corners, axis=0) + MARGIN
    size = np.array([other.width, other.height])
    seen = (new_z > 0) & (low < size).all(axis=1) & (high > 0).all(axis=1)  # never where a corner is behind
    # The pixels whose centres lie between the corners.
    first = np.ceil(low[seen] - 0.5).clip(0, size).astype(int)
    last = (np.ceil(high[seen] - 0.5).clip(0, size).astype(int) - 1).clip(max=first + LARGEST - 1)
    new_z = new_z[seen]
    buffer = np.full(other.height * other.width, np.inf)
    across, down = (last - first).max(axis=0, initial=-1) + 1
    for offset in np.ndindex(down, across):
        x, y = first[:, 0] + offset[1], first[:, 1] + offset[0]
        covered = (x <= last[:, 0]) & (y <= last[:, 1])
        np.minimum.at(buffer, y[covered] * other.width + x[covered], new_z[covered])
    buffer[np.isinf(buffer)] = 0
    return buffer.reshape(other.height, other.width).astype(np.float32)
