"""Taskonomy and Omnidata: `rgb/ depth_zbuffer|depth/ point_info|points/`, one JSON a frame.

A frame is known by the start of its file names, `point_<p>_view_<v>`. The camera is square-pixelled with its field of
view in `field_of_view_rads`; the pose is Blender's: `camera_location`, `camera_rotation_final` (Euler angles, x then y
then z about fixed axes), OpenGL axes. Depth is z in 1/512 m.
"""

from dataclasses import dataclass
from math import pi, tan
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.errors import LocusError
from locus.geometry import Camera
from locus.opening import read_json
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import FileSource

DEPTH_FOLDERS = ("depth_zbuffer", "depth")
POSE_FOLDERS = ("point_info", "points")


def detect(path: Path) -> bool:
    return (path / "rgb").is_dir() and all(
        any((path / name).is_dir() for name in names) for names in (DEPTH_FOLDERS, POSE_FOLDERS)
    )


def read(path: Path, allow_outside: bool) -> Scene:
    images, depths, poses = (by_view(path, folders) for folders in (("rgb",), DEPTH_FOLDERS, POSE_FOLDERS))
    sources, skipped = [], {}
    for view, image in images.items():
        if view in depths and view in poses:
            sources.append(TaskonomyFrame(view, image, depths[view], poses[view]))
        else:
            skipped[view] = "no depth file" if view not in depths else "no point_info file"
    return Scene(path.name, "taskonomy", sources, Convention(axes="opengl", depth_scale=512.0), skipped=skipped)


def by_view(path: Path, folders: tuple[str, ...]) -> dict[str, Path]:
    """Files by the part of their name before `_domain_`."""
    folder = next((path / name for name in folders if (path / name).is_dir()), path / folders[0])
    files = sorted(file for file in folder.iterdir() if file.suffix in (".png", ".jpg", ".npy", ".json"))
    return {file.stem.split("_domain_")[0]: file for file in files}


@dataclass(frozen=True, eq=False)
class TaskonomyFrame(FileSource):
    pose_path: Path

    def camera(self) -> Camera:
        width, height = self.image_size()
        (angle,) = self.numbers("field_of_view_rads", 1)
        if not 0 < angle < pi:
            raise LocusError(f"{self.pose_path}: a field of view lies between 0 and π, not at {angle:g}")
        focal = width / 2 / tan(angle / 2)
        return Camera(width, height, focal, focal, width / 2, height / 2)

    def pose(self) -> Float[ndarray, "4 4"]:
        pose = np.eye(4)
        pose[:3, :3] = Rotation.from_euler("xyz", self.numbers("camera_rotation_final", 3)).as_matrix()
        pose[:3, 3] = self.numbers("camera_location", 3)
        return pose

    def numbers(self, key: str, count: int) -> Float[ndarray, "count"]:
        content = read_json(self.pose_path)
        try:
            numbers = np.array(content[key], dtype=np.float64).reshape(-1)
        except (KeyError, TypeError, ValueError):
            numbers = np.empty(0)
        if len(numbers) != count or not np.isfinite(numbers).all():
            raise LocusError(f'{self.pose_path} should hold {count} finite number(s) as "{key}"')
        return numbers
