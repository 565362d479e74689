"""Rooms: parts of the free space of a floor plan, parted where it is as narrow as a door.

Looked at from above, walls are where surfaces stand upright just under the ceiling, where there is no furniture and
no door. The rest of what was seen is free. Where it is wide, far from all walls, rooms have their cores; the
watershed of the distance to walls gives every cell to one. Cores whose room-scale features agree are of one room.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy import ndimage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from locus.features.dense import SceneFeatures
from locus.tasks.segments import membership
from locus.tasks.voxels import SIDE, Voxels

CEILING = 98  # percentile of the height of voxels
BAND = 0.9  # metres under the ceiling in which walls are looked for: above doors and most furniture
TALL = 1.3  # metres above the floor, of a wall where no ceiling was seen: most furniture is lower
UPRIGHT = 0.4  # the greatest part of a wall's normal that points up
WIDE = 0.5  # metres from the nearest wall, of a core: no door is so wide
HIDDEN = 1.5  # square metres that nobody saw, at most, in the midst of a room
SMALL = 1.0  # square metres: smaller parts are of the room beside them
ALIKE = 0.6  # similarity of the features of two parts of one room


@dataclass(frozen=True, eq=False)
class Rooms:
    """The rooms of a scene."""

    number: Int[ndarray, " voxels"]
    """Each voxel's room, counted from 0, the largest first."""
    count: int


def rooms(voxels: Voxels, seen: SceneFeatures) -> Rooms:
    """The rooms of a scene; one, if nothing parts it."""
    across = np.linalg.svd(voxels.up[None])[2][1:]  # two axes of the floor
    cells = np.floor(voxels.position @ across.T / SIDE).astype(np.int64)
    cells -= cells.min(axis=0) - 2  # with a margin
    shape = tuple(cells.max(axis=0) + 3)
    height = voxels.height
    under = np.percentile(height, CEILING) - height
    upright = np.abs(voxels.normal @ voxels.up) < UPRIGHT
    wall, covered = np.zeros(shape, bool), np.zeros(shape, bool)
    covered[tuple(cells.T)] = True
    wall[tuple(cells[upright & (under < BAND) & (under > -SIDE) & (height > TALL)].T)] = True
    inside = ndimage.binary_closing(covered, iterations=2)
    holes, _ = ndimage.label(ndimage.binary_fill_holes(inside) & ~inside)
    inside |= (holes > 0) & (np.bincount(holes.ravel()) * SIDE**2 < HIDDEN)[holes]  # behind furniture, not a yard
    free = inside & ~ndimage.binary_closing(wall)
    parts = parted(free)
    if not parts.any():
        return Rooms(np.zeros(len(voxels), np.int64), 1)
    places = np.argwhere(parts)
    nearest = KDTree(places).query(cells)[1]
    number = parts[tuple(places[nearest].T)] - 1
    number = _joined(voxels, seen, parts, number)
    order = np.argsort(-np.bincount(number), kind="stable")
    return Rooms(np.argsort(order, kind="stable")[number], len(order))


def parted(free: Bool[ndarray, "h w"]) -> Int[ndarray, "h w"]:
    """The part of the free space that each cell is of, counted from 1; 0 where it is not free, or too small a part."""
    away = np.asarray(ndimage.distance_transform_edt(free)) * SIDE
    cores, count = ndimage.label(away >= WIDE)
    if not count:
        return np.zeros(free.shape, np.int64)
    cores = cores.astype(np.int32)
    cores[~free] = count + 1  # so that walls are of nobody else
    steep = np.where(free, (away.max() - away) / away.max() * 60_000, 65_535).astype(np.uint16)
    flooded = ndimage.watershed_ift(steep, cores).astype(np.int64)
    flooded[~free | (flooded > count)] = 0
    area = np.bincount(flooded.ravel(), minlength=count + 1) * SIDE**2
    kept = np.flatnonzero(area >= SMALL)
    numbers = np.zeros(count + 1, np.int64)
    numbers[kept[kept > 0]] = np.arange(1, (kept > 0).sum() + 1)
    return numbers[flooded]


def _joined(
    voxels: Voxels, seen: SceneFeatures, parts: Int[ndarray, "h w"], number: Int[ndarray, " n"]
) -> Int[ndarray, " n"]:
    """Parts that touch and look the same at the room's scale, the last of the model's, are one room."""
    count = int(parts.max())
    features: Float[ndarray, "k c"] = voxels.shown(seen.features[-1], membership(number))
    links = [
        np.stack([one.ravel(), two.ravel()], axis=1)
        for one, two in ((parts[1:], parts[:-1]), (parts[:, 1:], parts[:, :-1]))
    ]
    a, b = np.unique(np.concatenate(links), axis=0).T
    touching = (a != b) & (a > 0) & (b > 0)
    a, b = a[touching] - 1, b[touching] - 1
    alike = (features[a] * features[b]).sum(axis=1) >= ALIKE
    graph = csr_matrix((np.ones(alike.sum()), (a[alike], b[alike])), (count, count))
    return connected_components(graph, directed=False)[1][number]
