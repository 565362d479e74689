"""A scene as coloured points, each of which knows the pixel it came from."""

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float, Float32, Int, Int32, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.geometry import transform
from locus.progress import track
from locus.rows import Rows

PICTURE = 240  # pixels across, of the small images that frusta show and points are taken from
MOST = 1_000_000  # points that a browser draws without effort
LOOKED_AT = 6_000_000  # points before they are thinned
VOXEL = 0.012  # metres between points, where that gives no more than allowed


@dataclass(frozen=True, eq=False)
class Cloud(Rows):
    """Points of the world, one a voxel; each with its frame's row and, row-major, its pixel in the small image."""

    points: Float32[ndarray, "n 3"]
    colours: UInt8[ndarray, "n 3"]
    frame: Int32[ndarray, " n"]
    pixel: Int32[ndarray, " n"]


def gather(
    seen: SceneFeatures, most: int = MOST, *, progress: bool = False
) -> tuple[UInt8[ndarray, "frames h w 3"], Cloud]:
    """Every frame's image, small, and the points that the frames' depth gives, thinned to `most`."""
    first = seen.frame(0).camera
    width = min(PICTURE, first.width)
    height = max(1, round(first.height * width / first.width))
    step = -(-len(seen) * width * height // LOOKED_AT)
    pictures = np.empty((len(seen), height, width, 3), np.uint8)
    points, pixels = [], []
    for row in track(range(len(seen)), "points", len(seen), progress):
        frame = seen.frame(row)
        pictures[row] = cv2.resize(frame.image, (width, height), interpolation=cv2.INTER_AREA)
        camera = frame.camera.resized(width, height)
        at = camera.pixel_grid().reshape(-1, 2)
        x, y = (at * [first.width / width, first.height / height]).astype(int).T
        depth = frame.depth[y, x]
        # Another offset in each frame, so that what several frames show is seen at different pixels.
        known = np.flatnonzero((depth > 0) & ((np.arange(len(depth)) + row) % step == 0))
        points_camera = camera.unproject(at[known], depth[known].astype(np.float64))
        points.append(transform(frame.world_from_camera, points_camera).astype(np.float32))
        pixels.append(known.astype(np.int32))
    everything = np.concatenate(points)
    if not len(everything):
        raise LocusError(f"{seen.scene.name} has no depth in any frame, so there is nothing to see in 3D")
    frames = np.repeat(np.arange(len(seen), dtype=np.int32), [len(each) for each in pixels])
    kept = thinned(everything, most)
    frame, pixel = frames[kept], np.concatenate(pixels)[kept]
    colours = pictures.reshape(len(seen), -1, 3)[frame, pixel]
    return pictures, Cloud(everything[kept], colours, frame, pixel)


def thinned(points: Float[ndarray, "n 3"], most: int, voxel: float = VOXEL) -> Int[ndarray, " k"]:
    """At most `most` of the points, one a voxel, whose size grows until they are so few."""
    while len(kept := one_per_voxel(points, voxel)) > most:
        voxel *= max(1.1, (len(kept) / most) ** 0.5)  # they lie on surfaces: twice as wide, a quarter as many
    return kept


def one_per_voxel(points: Float[ndarray, "n 3"], voxel: float) -> Int[ndarray, " k"]:
    """The first point in each voxel, in the points' order."""
    low = points.min(axis=0)
    voxel = max(voxel, float((points.max(axis=0) - low).max()) / 2**20)  # three coordinates must fit into 63 bits
    cells = ((points - low) / voxel).astype(np.int64)
    key = (cells[:, 0] << 42) | (cells[:, 1] << 21) | cells[:, 2]
    return np.sort(np.unique(key, return_index=True)[1])
