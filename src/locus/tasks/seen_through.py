"""Which frames see a point of the world, and which see through it, by their coarse depth.

A frame sees through a point if all rays around it go clearly farther: then nothing was there when it was taken. At the
edge of a nearer thing some do not, so a hidden point is not seen through, nor is one where depth is unknown.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.ndimage import minimum_filter
from scipy.sparse import csr_matrix

from locus.geometry import invert, transform
from locus.landmarks.arrays import Frames
from locus.landmarks.coarse_depth import COLUMNS, ROWS, UNIT, grid_camera
from locus.scenes.visibility import hidden_beyond

FAR = 6.0  # metres: farther away, cells of the grid are larger than small things
VOXEL = 0.08  # metres
FLAT = 0.1  # of the inverse depth: a cell that is off the line through its neighbours by more is on an edge


@dataclass(frozen=True, eq=False)
class Votes:
    """What frames say of points: (frames, points), 1 where they say it."""

    seen: csr_matrix
    """The frame's own surface is there."""
    through: csr_matrix
    """The frame's rays go through it."""


def surface_points(frames: Frames) -> Float[ndarray, "n 3"]:
    """Points of the world that lie on the surfaces which frames see, one a voxel, the mean of those in it."""
    kept = [np.zeros((0, 3))]
    for pose, surface, lens in zip(frames.world_from_camera, frames.surface, frames.lens, strict=True):
        if not surface.any():
            continue
        depth, camera = surface * UNIT, grid_camera(lens)
        good = smooth(depth) & (depth <= FAR)
        kept.append(transform(pose, camera.unproject(camera.pixel_grid()[good], depth[good])))
    points = np.concatenate(kept)
    voxel, count = np.unique(
        np.floor(points / VOXEL).astype(np.int64), axis=0, return_inverse=True, return_counts=True
    )[1:]
    sums = [np.bincount(voxel.ravel(), points[:, axis], len(count)) for axis in range(3)]
    return np.stack(sums, axis=-1) / count[:, None]


def smooth(depth: Float[ndarray, "60 80"]) -> Bool[ndarray, "60 80"]:
    """Cells whose depth, like that of the cells around them, is known and on one plane: no edge is near."""
    known = minimum_filter(depth > 0, 3, mode="constant", cval=0)
    inverse = np.divide(1.0, depth, out=np.zeros_like(depth), where=depth > 0)
    # The inverse depth of a plane is affine in the pixel.
    bend = np.zeros_like(depth)
    bend[1:-1] = np.abs(inverse[2:] + inverse[:-2] - 2 * inverse[1:-1])
    bend[:, 1:-1] = np.maximum(bend[:, 1:-1], np.abs(inverse[:, 2:] + inverse[:, :-2] - 2 * inverse[:, 1:-1]))
    return known & (bend <= FLAT * inverse)


def votes(points: Float[ndarray, "n 3"], frames: Frames) -> Votes:
    """What frames say of points in their world."""
    said: dict[str, list[ndarray]] = {"seen": [], "through": []}
    rows: dict[str, list[ndarray]] = {"seen": [], "through": []}
    for number in np.flatnonzero(frames.surface.any(axis=(1, 2))):
        depth = frames.surface[number].astype(np.float32) * np.float32(UNIT)
        pixels, z = grid_camera(frames.lens[number]).project(
            transform(invert(frames.world_from_camera[number]), points)
        )
        inside = np.flatnonzero((z > 0) & (z <= FAR) & ((pixels >= 0) & (pixels < (COLUMNS, ROWS))).all(axis=1))
        x, y = pixels[inside].astype(int).T
        # Beyond the border and where it is unknown, depth is taken for 0, which nothing is seen through.
        nearest = minimum_filter(depth, 3, mode="constant", cval=0)[y, x]
        at, z = depth[y, x], z[inside]
        for what, where in (
            ("through", nearest > hidden_beyond(z)),
            ("seen", (at > 0) & (at <= hidden_beyond(z)) & (z <= hidden_beyond(at))),
        ):
            said[what].append(inside[where])
            rows[what].append(np.full(int(where.sum()), number))
    shape = (len(frames), len(points))
    return Votes(**{what: _marked(rows[what], said[what], shape) for what in said})


def _marked(rows: list[ndarray], columns: list[ndarray], shape: tuple[int, int]) -> csr_matrix:
    row, column = (np.concatenate([np.zeros(0, int), *parts]) for parts in (rows, columns))
    return csr_matrix((np.ones(len(row), np.int32), (row, column)), shape)
