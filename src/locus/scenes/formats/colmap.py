"""A COLMAP model (`sparse/0`, `sparse` or the folder itself). Needs pycolmap: the extra `colmap`.

Depth, if there is any, comes from `stereo/depth_maps/*.geometric.bin` (COLMAP's own, in the model's unit), or from
`depth/` beside `images/`: PNGs in millimetres or .npy in the model's unit. Frames also know which of the model's points
they show. Poses are camera_from_world; pixel centres lie at 0.5 as ours do. A model from images alone has no metric
scale: scale it first (`model_aligner`), or radii mean nothing.
"""

import mmap
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from jaxtyping import Float, Int64, Num
from numpy import ndarray

from locus.errors import LocusError, SceneError, to_install
from locus.geometry import Camera
from locus.opening import UNLIMITED, admitted, opened
from locus.scenes.lens import Lens
from locus.scenes.reading import MAX_PIXELS, frame_name, names_file, path_inside
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import CalibratedFile

STEREO = ".geometric.bin"
SMALLEST_RECORD = 8  # bytes

# Of each entry of a binary model: the bytes before its name, whether it has one, the bytes of the number that tells how
# many things of it follow, and the bytes of each of these.
ENTRIES = {"images.bin": (64, True, 8, 24), "points3D.bin": (43, False, 8, 8), "frames.bin": (64, False, 4, 16)}

# Where each model keeps fx, fy, cx, cy and then k1, k2, p1, p2 in its parameters.
MODELS = {
    "SIMPLE_PINHOLE": (0, 0, 1, 2),
    "PINHOLE": (0, 1, 2, 3),
    "SIMPLE_RADIAL": (0, 0, 1, 2, 3),
    "RADIAL": (0, 0, 1, 2, 3, 4),
    "OPENCV": (0, 1, 2, 3, 4, 5, 6, 7),
}


def model_folder(path: Path) -> Path | None:
    for folder in (path / "sparse" / "0", path / "sparse", path):
        if any((folder / f"cameras.{ending}").is_file() for ending in ("bin", "txt")):
            return folder
    return None


def detect(path: Path) -> bool:
    return model_folder(path) is not None


def read(path: Path, allow_outside: bool) -> Scene:
    try:
        import pycolmap
    except ImportError:
        raise SceneError(f"COLMAP models need pycolmap: {to_install('colmap')}") from None
    folder = model_folder(path)
    if folder is None:
        raise SceneError(f"{path} holds no COLMAP model: no cameras.bin or cameras.txt in it, sparse or sparse/0")
    check_counts(folder)
    try:
        model = pycolmap.Reconstruction(str(folder))
        images = sorted((model.images[i] for i in model.reg_image_ids()), key=lambda image: image.name)
    except Exception as error:  # pycolmap raises whatever its C++ side meets
        raise SceneError(f"{folder} is not a COLMAP model that can be read ({str(error).splitlines()[-1]})") from None
    cameras = {i: model_camera(camera) for i, camera in model.cameras.items()}
    depth_folder, ending = depth_maps(path)
    rows = {number: row for row, number in enumerate(model.points3D)}
    positions = np.array([point.xyz for point in model.points3D.values()]).reshape(-1, 3)
    sources = []
    for image in images:
        if not names_file(image.name) or image.camera_id not in cameras:
            raise SceneError(f"{folder} is damaged: its image {image.name!r:.60} has no file's name, or no camera")
        file = path_inside(path / "images", image.name, allow_outside)
        camera, lens = cameras[image.camera_id]
        pose = np.vstack([image.cam_from_world().matrix(), [0.0, 0.0, 0.0, 1.0]])
        stem = image.name if ending == STEREO else str(PurePosixPath(image.name).with_suffix(""))
        depth = None if depth_folder is None else path_inside(depth_folder, stem + ending, allow_outside)
        seen = [spot.point3D_id for spot in image.get_observation_points2D()]
        if not rows.keys() >= set(seen):
            raise SceneError(f"{folder} is damaged: its image {image.name} shows points that the model does not have")
        shown = np.array([rows[number] for number in seen], np.int64)
        name = frame_name(image.name, "images")
        sources.append(ColmapFrame(name, file, depth, pose, camera, lens, positions, shown))
    convention = Convention(pose="camera_from_world", depth_scale=1000.0 if ending == ".png" else 1.0)
    return Scene(path.name, "colmap", sources, convention)


def depth_maps(path: Path) -> tuple[Path | None, str]:
    """Where the depth maps are, if there are any, and how their names end; a scene has one depth unit, so one kind."""
    stereo, depth = path / "stereo" / "depth_maps", path / "depth"
    if stereo.is_dir():
        return stereo, STEREO
    endings = {ending for ending in (".png", ".npy") if next(depth.rglob(f"*{ending}"), None)}
    if len(endings) > 1:
        raise SceneError(f"{depth} holds both .png and .npy depth maps; keep one kind, for they differ in unit")
    return depth if depth.is_dir() else None, endings.pop() if endings else ".png"


def check_counts(folder: Path) -> None:
    """A binary model is full of counts; a damaged one can make pycolmap read for ever, or ask for all memory."""
    for file in folder.glob("*.bin"):
        with opened(file, UNLIMITED) as stored:
            size = os.fstat(stored.fileno()).st_size
            content = mmap.mmap(stored.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        count = int.from_bytes(content[:8], "little")
        if len(content) < SMALLEST_RECORD or count * SMALLEST_RECORD > len(content):
            raise SceneError(f"{file} is damaged: it claims {count} entries in {len(content)} bytes")
        if file.name not in ENTRIES:
            continue
        at, (head, named, wide, each) = 8, ENTRIES[file.name]
        for entry in range(count):
            at += head
            at = (content.find(b"\0", at) + 1 or len(content)) if named else at
            at += wide + each * int.from_bytes(content[at : at + wide], "little")
            if at > len(content):
                raise SceneError(f"{file} is damaged: it ends within entry {entry} of {count}")


def model_camera(camera: Any) -> tuple[Camera, Lens]:
    if camera.model_name not in MODELS:
        raise SceneError(
            f"the COLMAP camera model {camera.model_name} is not supported; run colmap image_undistorter first"
        )
    fx, fy, cx, cy, *distortion = (float(camera.params[i]) for i in MODELS[camera.model_name])
    return Camera(camera.width, camera.height, fx, fy, cx, cy), Lens(*distortion)


@dataclass(frozen=True, eq=False)
class ColmapFrame(CalibratedFile):
    positions: Float[ndarray, "p 3"]
    """Of all points of the model."""
    shown: Int64[ndarray, " n"]
    """Rows of those that this frame shows."""

    def points(self) -> Float[ndarray, "n 3"] | None:
        return self.positions[self.shown] if len(self.positions) else None

    def depth(self) -> Num[ndarray, "h w"]:
        if self.depth_path is not None and self.depth_path.suffix == ".bin":
            return read_dense_map(self.depth_path)
        return super().depth()


def read_dense_map(path: Path) -> Float[ndarray, "h w"]:
    """COLMAP's dense maps: the text `width&height&channels&`, then float32 values, rows first."""
    try:
        with opened(admitted(path), 4 * MAX_PIXELS + 64) as file:
            header, _, rest = file.read().partition(b"&")
        height, _, rest = rest.partition(b"&")
        channels, _, values = rest.partition(b"&")
        shape = (int(height), int(header))
    except ValueError as error:
        raise LocusError(f"{path} is not a COLMAP depth map ({error})") from None
    pixels = shape[0] * shape[1]
    if channels != b"1" or not 0 < pixels <= MAX_PIXELS or len(values) != 4 * pixels:
        raise LocusError(f"{path} is not a whole COLMAP depth map of one channel")
    return np.frombuffer(values, "<f4").reshape(shape)
