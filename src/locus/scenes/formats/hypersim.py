"""Hypersim: a scene's folder `ai_001_001` with `_detail/` and `images/`, and the data set's table of cameras.

`metadata_camera_parameters.csv`, which the data set publishes for all scenes, lies in the folder or up to two above.
Colour is the tone-mapped preview. Depth is stored as the distance to the camera's centre and becomes z. Positions are
in the artist's unit and become metres; camera axes are OpenGL's. Labels are NYU40's.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import Float, Int32, Num
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.opening import admitted, read_text
from locus.scenes.reading import MAX_PIXELS
from locus.scenes.scene import Convention, LabelClass, Scene, class_kind
from locus.scenes.source import PosedFile

CAMERAS = "metadata_camera_parameters.csv"
MAPS = ("depth_meters", "semantic", "semantic_instance")
NYU40 = (
    "wall floor cabinet bed chair sofa table door window bookshelf picture counter blinds desk shelves curtain dresser "
    "pillow mirror floor_mat clothes ceiling books refrigerator television paper towel shower_curtain box whiteboard "
    "person night_stand toilet sink lamp bathtub bag otherstructure otherfurniture otherprop"
)
CLASSES = tuple(
    LabelClass(i, name.replace("_", " "), class_kind(name)) for i, name in enumerate(NYU40.split(), start=1)
)


def detect(path: Path) -> bool:
    return (path / "_detail" / "metadata_scene.csv").is_file() and (path / "images").is_dir()


def read(path: Path, allow_outside: bool) -> Scene:
    table = next((file for file in (folder / CAMERAS for folder in (path, *path.parents[:2])) if file.is_file()), None)
    if table is None:
        raise SceneError(f"{path} needs {CAMERAS}, from contrib/mikeroberts3000 of Hypersim's code, in it or above it")
    camera = read_camera(table, path.name)
    metres = read_value(path / "_detail" / "metadata_scene.csv", "parameter_name", "meters_per_asset_unit")
    scale = _number(metres.get("parameter_value"), "meters_per_asset_unit", path / "_detail" / "metadata_scene.csv")
    sources, skipped = [], {}
    for folder in sorted((path / "images").glob("scene_*_final_preview")):
        name = folder.name.removeprefix("scene_").removesuffix("_final_preview")
        poses = read_poses(path / "_detail" / name, scale)
        found = (re.fullmatch(r"frame\.([0-9]{1,9})\.tonemap\.jpg", file.name) for file in folder.iterdir())
        for file, digits in sorted(((match[0], match[1]) for match in found if match), key=lambda pair: int(pair[1])):
            if int(digits) >= len(poses):
                skipped[f"{name}/{digits}"] = f"_detail/{name} has no pose for it"
                continue
            geometry = path / "images" / f"scene_{name}_geometry_hdf5"
            maps = (geometry / f"frame.{digits}.{kind}.hdf5" for kind in MAPS)
            depth, semantic, instance = (file if file.exists() else None for file in maps)
            pose = poses[int(digits)]
            sources.append(HypersimFrame(f"{name}/{digits}", folder / file, depth, pose, camera, semantic, instance))
    classes = CLASSES if any(source.semantic_path is not None for source in sources) else ()
    return Scene(path.name, "hypersim", sources, Convention(axes="opengl", depth_scale=1.0), classes, skipped)


def read_value(path: Path, key: str, value: str) -> dict[str, str]:
    """The row of a table whose column `key` has this value."""
    try:
        for row in csv.DictReader(read_text(path).splitlines(), skipinitialspace=True):
            if row.get(key) == value:
                return row
    except csv.Error as error:
        raise SceneError(f"{path} is not a table that can be read ({error})") from None
    raise SceneError(f"{path} has no row for {value}")


def _number(value: str | None, name: str, path: Path) -> float:
    try:
        number = float(value or "nan")
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise SceneError(f"{path}: {name} should be a number, not {value!r:.40}")
    return number


def read_camera(path: Path, scene: str) -> Camera:
    """A ray is M (u, v, 1), where u and v go from -1 to 1, v upwards. A lens that is tilted has more in M than this."""
    row = read_value(path, "scene_name", scene)
    size = (_number(row.get(f"settings_output_img_{side}"), side, path) for side in ("width", "height"))
    width, height = (int(side) for side in size)
    names = [[f"M_cam_from_uv_{i}{j}" for j in range(3)] for i in range(3)]
    matrix = np.array([[_number(row.get(name), name, path) for name in names_i] for names_i in names])
    if np.abs(matrix[[0, 1, 2, 2], [1, 0, 0, 1]]).max() > 1e-4 * np.abs(matrix).max() or matrix[2, 2] >= 0:
        raise SceneError(
            f"{scene} was rendered with a tilted lens, which no pinhole camera can describe; use another scene"
        )
    (a, b), (right, up), forward = matrix[[0, 1], [0, 1]], matrix[:2, 2], -matrix[2, 2]
    if not (a > 0 and b > 0):
        raise SceneError(f"{path}: M_cam_from_uv of {scene} is not a camera's")
    fx, fy = forward / a * width / 2, forward / b * height / 2
    return Camera(
        width, height, float(fx), float(fy), float((1 - right / a) * width / 2), float((1 + up / b) * height / 2)
    )


def read_poses(folder: Path, scale: float) -> Float[ndarray, "n 4 4"]:
    files = (folder / f"camera_keyframe_{kind}.hdf5" for kind in ("orientations", "positions"))
    orientations, positions = map(read_array, files)
    if orientations.shape[1:] != (3, 3) or positions.shape != (len(orientations), 3):
        raise SceneError(f"{folder} should hold an orientation and a position for each frame")
    poses = np.tile(np.eye(4), (len(positions), 1, 1))
    poses[:, :3, :3] = orientations
    poses[:, :3, 3] = positions * scale
    return poses


def read_array(path: Path) -> Num[ndarray, "..."]:
    """The array in an HDF5 file. HDF5 could fetch its numbers from other files, which is refused."""
    try:
        with h5py.File(admitted(path), "r") as file:
            stored = file["dataset"] if isinstance(file.get("dataset", getlink=True), h5py.HardLink) else None
            if not isinstance(stored, h5py.Dataset) or stored.is_virtual or stored.external:
                raise LocusError(f"{path} has no dataset of its own")
            if stored.dtype.kind not in "fiu" or not 0 < stored.size <= MAX_PIXELS:
                raise LocusError(f"{path} holds {stored.dtype} {stored.shape}, not numbers of a usual size")
            return np.array(stored)
    except LocusError:
        raise
    except Exception as error:  # its C side raises whatever it meets
        raise LocusError(f"{path} is not an HDF5 file that can be read ({error})") from None


@dataclass(frozen=True, eq=False)
class HypersimFrame(PosedFile):
    intrinsics: Camera
    semantic_path: Path | None
    instance_path: Path | None

    def camera(self) -> Camera:
        return self.intrinsics

    def depth(self) -> Num[ndarray, "h w"]:
        if self.depth_path is None:
            return super().depth()
        distance = _map(self.depth_path).astype(np.float32)
        camera = self.intrinsics.resized(distance.shape[1], distance.shape[0])
        rays = camera.unproject(camera.pixel_grid(), np.ones(distance.shape))
        return distance / np.linalg.norm(rays, axis=-1).astype(np.float32)

    def semantic(self) -> Int32[ndarray, "h w"] | None:
        return None if self.semantic_path is None else _map(self.semantic_path).astype(np.int32).clip(min=0)

    def instance(self) -> Int32[ndarray, "h w"] | None:
        return None if self.instance_path is None else _map(self.instance_path).astype(np.int32).clip(min=0)

    def label_files(self) -> Sequence[Path]:
        return [path for path in (self.semantic_path, self.instance_path) if path is not None]


def _map(path: Path) -> Num[ndarray, "h w"]:
    values = read_array(path)
    if values.ndim != 2:
        raise LocusError(f"{path} holds numbers of shape {values.shape}, not a map (h, w)")
    return values
