"""The surfaces that a scene's frames show, as small cubes of the world: where they lie, and which patches show them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.sparse import block_diag, csr_matrix
from scipy.spatial import KDTree
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.geometry import transform, upwards
from locus.progress import track
from locus.rows import Rows
from locus.scenes import Frame

SIDE = 0.08  # metres of a voxel
COLUMNS = 160  # pixels across an image that are looked at
FRAMES = 200  # at most, spread evenly: more show little that is new
FAR = 60_000.0  # metres: no coordinates are larger
JUMP = 0.1  # of the depth: neighbouring pixels farther apart are of two surfaces


@dataclass(frozen=True, eq=False)
class Voxels(Rows):
    """One row a voxel."""

    position: Float[ndarray, "n 3"]
    """Mean of the points in it, metres."""
    normal: Float[ndarray, "n 3"]
    """Of the surface, unit length, on the side it was seen from."""
    colour: Float[ndarray, "n 3"]
    """RGB, 0 to 1."""
    frames: csr_matrix
    """(n, frames of the scene): pixels of each frame that show it."""
    patches: csr_matrix
    """(n, patches of all frames): how many pixels of each patch show it."""
    up: Float[ndarray, " 3"]

    @property
    def neighbours(self) -> Int[ndarray, "e 2"]:
        """Pairs that touch."""
        return KDTree(self.position).query_pairs(1.8 * SIDE, output_type="ndarray").astype(np.int64)

    @property
    def height(self) -> Float[ndarray, " n"]:
        """Metres above the floor: above all but the lowest hundredth, which are strays."""
        height = self.position @ self.up
        return height - np.percentile(height, 1)

    def rows(self, points: Float[ndarray, "k 3"]) -> Int[ndarray, " k"]:
        """The voxels that points lie in, -1 for none."""
        own, asked = cell_keys(self.position), cell_keys(np.nan_to_num(points, nan=FAR))
        found = np.searchsorted(own, asked).clip(max=len(own) - 1)  # voxels are in the order of their cells
        return np.where(own[found] == asked, found, -1)

    def shown(self, features: Float[Tensor, "frames rows columns c"], of: csr_matrix) -> Float[ndarray, "m c"]:
        """Unit features of groups of voxels, (m, n), by the patches that show little else."""
        mean = self.shares(of) @ features.flatten(0, 2).numpy().astype(np.float64)
        return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)

    def shares(self, of: csr_matrix) -> csr_matrix:
        """What each patch of all frames counts for groups of voxels: (m, patches).

        A patch of 14 pixels is wider than many things, so it counts by the square of the group's share of it.
        """
        shares = csr_matrix(of @ self.patches)
        whole = np.asarray(self.patches.sum(axis=0)).ravel()
        shares.data = shares.data * (shares.data / np.maximum(whole[shares.indices], 1e-9)) ** 2
        return shares


def voxels(seen: SceneFeatures, progress: bool = False) -> Voxels:
    """The voxels of a scene, from the depth of its frames."""
    rows = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), FRAMES)).round().astype(int)).tolist()
    parts = [_of_frame(seen.frame(row), seen.grid) for row in track(rows, "surfaces", len(rows), progress)]
    cells = np.concatenate([cells for cells, _, _ in parts])
    if not len(cells):
        raise LocusError(f"{seen.scene.name} shows no surface with depth, so it has no objects; see `locus inspect`")
    number = np.unique(cells, return_inverse=True)[1]
    pooled = csr_matrix((np.ones(len(cells)), (number, np.arange(len(cells)))))
    sums = pooled @ np.concatenate([sums for _, sums, _ in parts])
    count, normal = sums[:, 9:], sums[:, 3:6]
    frame = np.repeat(rows, [len(cells) for cells, _, _ in parts])
    pixels = csr_matrix(
        (np.concatenate([sums[:, 9] for _, sums, _ in parts]), (number, frame)), shape=(len(sums), len(seen))
    )
    patches = block_diag([patches for _, _, patches in parts], format="csr")
    columns = (np.array(rows)[:, None] * np.prod(seen.grid) + np.arange(np.prod(seen.grid))).ravel()
    patches = csr_matrix(
        (patches.data, columns[patches.indices], patches.indptr), (len(cells), len(seen) * np.prod(seen.grid))
    )
    return Voxels(
        position=sums[:, :3] / count,
        normal=normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12),
        colour=sums[:, 6:9] / count / 255,
        frames=pixels,
        patches=csr_matrix(pooled @ patches),
        up=upwards(np.stack([seen.frame(row).world_from_camera for row in rows])),
    )


def cell_keys(points: Float[ndarray, "k 3"]) -> Int[ndarray, " k"]:
    """One number for the cell of each point: far quicker to sort than three."""
    cells = np.floor(np.clip(points, -FAR, FAR) / SIDE).astype(np.int64) + 2**20
    return (cells[:, 0] << 42) | (cells[:, 1] << 21) | cells[:, 2]


def _of_frame(frame: Frame, grid: tuple[int, int]) -> tuple[Int[ndarray, " k"], Float[ndarray, "k 10"], csr_matrix]:
    """Of one frame: cells, sums of points, normals, colours and ones in each, and what each patch shows of them."""
    step = max(1, round(frame.camera.width / COLUMNS))
    depth = np.where(frame.depth > 0, frame.depth, np.nan)
    points = frame.camera.unproject(frame.camera.pixel_grid(), depth)[::step, ::step]
    across, down = np.full((2, *points.shape), np.nan)
    across[:, 1:-1], down[1:-1] = points[:, 2:] - points[:, :-2], points[2:] - points[:-2]
    normal = np.cross(down, across)
    smooth = np.maximum(np.linalg.norm(across, axis=-1), np.linalg.norm(down, axis=-1)) < JUMP * points[..., 2]
    smooth &= np.isfinite(normal).all(axis=-1)
    y, x = np.nonzero(smooth)
    normal = normal[smooth] / np.maximum(np.linalg.norm(normal[smooth], axis=1, keepdims=True), 1e-12)
    normal *= -np.sign((normal * points[smooth]).sum(axis=1, keepdims=True))  # towards the camera, at the origin
    turned, world = normal @ frame.world_from_camera[:3, :3].T, transform(frame.world_from_camera, points[smooth])
    cells, number = np.unique(cell_keys(world), return_inverse=True)
    pooled = csr_matrix((np.ones(len(world)), (number, np.arange(len(world)))), (len(cells), len(world)))
    colour = frame.image[y * step, x * step].astype(np.float64)
    sums = pooled @ np.concatenate([world, turned, colour, np.ones((len(world), 1))], axis=1)
    return cells, sums, csr_matrix(pooled @ _blend(y * step, x * step, frame.image.shape[:2], grid))


def _blend(y: Int[ndarray, " k"], x: Int[ndarray, " k"], size: tuple[int, int], grid: tuple[int, int]) -> csr_matrix:
    """(k, patches): the four patches around each pixel, weighed bilinearly."""
    found = [
        ((at + 0.5) / pixels * patches - 0.5).clip(0, patches - 1)
        for at, pixels, patches in zip((y, x), size, grid, strict=True)
    ]
    first = [np.minimum(at.astype(np.int64), max(0, patches - 2)) for at, patches in zip(found, grid, strict=True)]
    rest = [at - low for at, low in zip(found, first, strict=True)]
    row, column, weight = [], [], []
    for a in (0, 1):
        for b in (0, 1):
            row.append(np.arange(len(y)))
            column.append((first[0] + a).clip(max=grid[0] - 1) * grid[1] + (first[1] + b).clip(max=grid[1] - 1))
            weight.append((rest[0] if a else 1 - rest[0]) * (rest[1] if b else 1 - rest[1]))
    return csr_matrix(
        (np.concatenate(weight), (np.concatenate(row), np.concatenate(column))), (len(y), grid[0] * grid[1])
    )
