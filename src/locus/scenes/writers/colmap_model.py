"""Writing a COLMAP model: `images/`, `sparse/0` in COLMAP's binary files, and `depth/` in millimetres beside them.

Points are taken from depth, on a grid of each frame's pixels, up to a hundred thousand in all; each is observed once,
by the pixel it was taken from. Gaussian splatting starts from them; programs that triangulate replace them.
"""

import struct
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from numpy import ndarray
from numpy.typing import DTypeLike
from scipy.spatial.transform import Rotation

from locus.files import atomic_folder
from locus.geometry import Camera, invert, transform
from locus.progress import track
from locus.scenes.scene import Frame, Scene
from locus.scenes.writers.frame_files import save_depth, save_png, warn_of_far, write_readable

POINTS = 100_000  # in the whole model
DEPTH_SCALE = 1000.0
PINHOLE = 1  # COLMAP's number of that camera model
UNKNOWN = -1.0  # COLMAP's mark for a reprojection error that nobody has measured

# One point of an image, and one of the world with the one observation it has.
SEEN: DTypeLike = [("pixel", "<f8", 2), ("point", "<u8")]
TRACK: DTypeLike = [("length", "<u8"), ("image", "<u4"), ("index", "<u4")]
POINT: DTypeLike = [("id", "<u8"), ("xyz", "<f8", 3), ("colour", "u1", 3), ("error", "<f8"), ("track", TRACK)]


class ColmapImage(NamedTuple):
    """What the model says of one frame."""

    file: str
    camera: Camera
    world_from_camera: Float[ndarray, "4 4"]
    pixels: Float[ndarray, "n 2"]
    points: Float[ndarray, "n 3"]
    colours: UInt8[ndarray, "n 3"]
    far: bool


def write(scene: Scene, path: Path, progress: bool = False) -> Path:
    with atomic_folder(path) as partial:
        frames = track(scene, "writing frames", len(scene), progress)
        share = max(POINTS // max(len(scene), 1), 1)
        images = write_readable(frames, lambda frame: _write_frame(partial, frame, share), path)
        _write_model(partial / "sparse" / "0", images)
    warn_of_far(sum(image.far for image in images), DEPTH_SCALE)
    return path


def _write_frame(root: Path, frame: Frame, points: int) -> ColmapImage:
    camera, image, pose = frame.camera, frame.image, frame.world_from_camera
    depth = frame.depth if frame.has_depth else np.zeros(image.shape[:2], np.float32)
    file = f"{frame.name}.png"
    save_png(root / "images" / file, image)
    far = frame.has_depth and save_depth(root / "depth" / file, depth, DEPTH_SCALE)
    step = ceil(sqrt(depth.size / points))
    grid = np.s_[step // 2 :: step, step // 2 :: step]
    known = depth[grid] > 0
    pixels = camera.pixel_grid()[grid][known]
    world = transform(pose, camera.unproject(pixels, depth[grid][known].astype(np.float64)))
    return ColmapImage(file, camera, pose, pixels, world, image[grid][known], far)


def _write_model(folder: Path, images: Sequence[ColmapImage]) -> None:
    """Cameras, images and points, each file a count and then its records, as COLMAP's documentation lays them out."""
    folder.mkdir(parents=True)
    number_of = {camera: id for id, camera in enumerate(dict.fromkeys(image.camera for image in images), 1)}
    with (folder / "cameras.bin").open("wb") as out:
        out.write(struct.pack("<Q", len(number_of)))
        for c, id in number_of.items():
            out.write(struct.pack("<iiQQ4d", id, PINHOLE, c.width, c.height, c.fx, c.fy, c.cx, c.cy))
    first = np.cumsum([1, *(len(image.points) for image in images)])
    with (folder / "images.bin").open("wb") as out, (folder / "points3D.bin").open("wb") as out_points:
        out.write(struct.pack("<Q", len(images)))
        out_points.write(struct.pack("<Q", first[-1] - 1))
        for id, image in enumerate(images, 1):
            camera_from_world = invert(image.world_from_camera)
            x, y, z, w = Rotation.from_matrix(camera_from_world[:3, :3]).as_quat()
            out.write(struct.pack("<I7dI", id, w, x, y, z, *camera_from_world[:3, 3], number_of[image.camera]))
            out.write(image.file.encode() + b"\0" + struct.pack("<Q", len(image.points)))
            points = np.arange(first[id - 1], first[id])
            seen, placed = np.zeros(len(points), SEEN), np.zeros(len(points), POINT)
            seen["pixel"], seen["point"] = image.pixels, points
            placed["id"], placed["xyz"], placed["colour"] = points, image.points, image.colours
            placed["error"], seen_by = UNKNOWN, placed["track"]
            seen_by["length"], seen_by["image"], seen_by["index"] = 1, id, np.arange(len(points))
            out.write(seen.tobytes())
            out_points.write(placed.tobytes())
