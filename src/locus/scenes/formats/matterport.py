"""Matterport3D: undistorted colour and depth of one house, labels rendered from its segmented mesh.

`undistorted_camera_parameters/<house>.conf` names the images and gives world_from_camera with OpenGL axes; images have
their origin at the bottom left, so cy counts from below; depth is in 1/4000 m. Labels need `house_segmentations/`
(`<house>.house`, `<house>.ply`), or `region_segmentations/region*.ply` for the mesh: classes are the 40 of
`mpcat40`, instances the objects of the .house file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Int32
from numpy import ndarray

from locus.errors import SceneError
from locus.geometry import Camera, rigid
from locus.opening import read_text
from locus.scenes.formats.matterport_labels import labelled_mesh, mesh_files, read_house
from locus.scenes.reading import names_file, path_inside
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import PosedFile

CONVENTION = Convention(axes="opengl", depth_scale=4000.0)
PARAMETERS = "undistorted_camera_parameters"


def folder(path: Path, name: str) -> Path:
    """`path/name`, or `path/name/<house>/name` as the archives unpack. The name may come from the scene's text."""
    if not names_file(name) or Path(name).name != name:
        raise SceneError(f"{name!r} is not the name of a folder within {path}")
    nested = sorted(child / name for child in (path / name).glob("*") if (child / name).is_dir())
    return nested[0] if nested else path / name


def detect(path: Path) -> bool:
    return any(True for _ in folder(path, PARAMETERS).glob("*.conf"))


def read(path: Path, allow_outside: bool) -> Scene:
    files = sorted(folder(path, PARAMETERS).glob("*.conf"))
    if len(files) != 1:
        raise SceneError(f"{path} should hold one {PARAMETERS}/*.conf, the parameters of one house, not {len(files)}")
    segmentation = folder(path, "house_segmentations") / f"{files[0].stem}.house"
    house = segmentation if segmentation.is_file() else None
    depth_folder = colour_folder = None
    intrinsics: tuple[float, ...] | None = None
    sources = []
    for number, line in enumerate(read_text(files[0]).splitlines(), start=1):
        word, *values = line.split() or [""]
        try:
            if word == "depth_directory":
                depth_folder = folder(path, values[0])
            elif word == "color_directory":
                colour_folder = folder(path, values[0])
            elif word == "intrinsics_matrix":
                fx, _, cx, _, fy, cy, *_ = map(float, values)
                intrinsics = (fx, fy, cx, cy)
            elif word == "scan":
                pose = np.array(values[2:18], dtype=np.float64).reshape(4, 4)
                if depth_folder is None or colour_folder is None or intrinsics is None:
                    raise SceneError(f"{files[0]}, line {number}: a scan before its folders and intrinsics")
                depth = path_inside(depth_folder, values[0], allow_outside)
                image = path_inside(colour_folder, values[1], allow_outside)
                sources.append(MatterportFrame(image.stem, image, depth, pose, intrinsics, house))
        except (ValueError, IndexError):
            raise SceneError(f"{files[0]}, line {number}: cannot be read: {line[:60]!r}") from None
    classes = () if house is None else read_house(house).classes
    return Scene(files[0].stem, "matterport", sources, CONVENTION, classes)


@dataclass(frozen=True, eq=False)
class MatterportFrame(PosedFile):
    intrinsics: tuple[float, ...]
    house: Path | None

    def camera(self) -> Camera:
        width, height = self.image_size()
        fx, fy, cx, cy = self.intrinsics
        return Camera(width, height, fx, fy, cx, height - cy)

    def label_files(self) -> Sequence[Path]:
        return () if self.house is None else (self.house, *mesh_files(self.house))

    def instance(self) -> Int32[ndarray, "h w"] | None:
        return None if self.house is None else objects_seen(self, self.house)

    def semantic(self) -> Int32[ndarray, "h w"] | None:
        return None if self.house is None else labelled_mesh(self.house).class_of_object[objects_seen(self, self.house)]


@lru_cache(maxsize=4)
def objects_seen(frame: MatterportFrame, house: Path) -> Int32[ndarray, "h w"]:
    """Kept for a moment: who asks for instances asks for classes too."""
    pose = CONVENTION.world_from_camera(rigid(frame.stored_pose))
    return labelled_mesh(house).instances(frame.camera(), pose)
