"""nerfstudio's `transforms.json`, and our own native format: the same with depth, labels and a class list.

Poses are world_from_camera with OpenGL axes; pixel centres lie at 0.5 as ours do. `depth_file_path` is nerfstudio's;
`semantic_file_path`, `instance_file_path` (16-bit PNGs, 0 = unlabelled) and the top-level `classes`
([{"id": 1, "name": "wall", "kind": "stuff"}, ...]) are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import tan
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int32
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.opening import read_json
from locus.scenes.lens import Lens
from locus.scenes.reading import frame_name, names_file, path_inside, read_labels
from locus.scenes.scene import Convention, LabelClass, Scene
from locus.scenes.source import FileSource

FILE = "transforms.json"
FILE_KEYS = ("file_path", "depth_file_path", "semantic_file_path", "instance_file_path")
PINHOLE_MODELS = ("OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL")


def detect(path: Path) -> bool:
    return (path / FILE).is_file()


def read(path: Path, allow_outside: bool) -> Scene:
    file = path / FILE
    content = read_json(file)
    if not isinstance(content, dict) or not isinstance(content.get("frames"), list):
        raise SceneError(f'{file} has no list "frames", so it is not a nerfstudio file')
    common = {key: value for key, value in content.items() if key != "frames"}
    sources = []
    for index, entry in enumerate(content["frames"]):
        named = {key: value for key in FILE_KEYS if (value := entry.get(key))} if isinstance(entry, dict) else {}
        if "file_path" not in named or not all(map(names_file, named.values())):
            raise SceneError(f'{file}: frame {index} needs a "file_path", and every "..._path" must name a file')
        paths = {key: path_inside(path, value, allow_outside) for key, value in named.items()}
        name = frame_name(named["file_path"], "images")
        image, depth = paths.pop("file_path"), paths.pop("depth_file_path", None)
        sources.append(TransformsFrame(name, image, depth, paths, common, entry))
    unit = number(content, "depth_unit_scale_factor", 0.001)
    if not unit > 0:
        raise SceneError(f'{file}: "depth_unit_scale_factor" must be positive, not {unit:g}')
    # 1 / 0.001 is not 1000 in binary; the scale that people mean is.
    convention = Convention(axes="opengl", depth_scale=float(f"{1 / unit:.12g}"))
    return Scene(path.name, "nerfstudio", sources, convention, read_classes(content.get("classes", []), file))


def number(content: dict[str, Any], key: str, default: float | None = None) -> float:
    value = content.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:
        raise LocusError(f'{FILE}: "{key}" should be a finite number, not {value!r:.40}')
    return float(value)


def read_classes(entries: Any, file: Path) -> tuple[LabelClass, ...]:
    try:
        classes = tuple(LabelClass(int(e["id"]), str(e["name"]), e["kind"]) for e in entries)
    except (TypeError, KeyError, ValueError, OverflowError):
        raise SceneError(f'{file}: "classes" should be a list of {{"id", "name", "kind"}} entries') from None
    ids = [label.id for label in classes]
    if len(set(ids)) < len(ids) or any(i < 1 for i in ids) or any(c.kind not in ("stuff", "thing") for c in classes):
        raise SceneError(f'{file}: class ids must be distinct and from 1 up, and each kind "stuff" or "thing"')
    return classes


@dataclass(frozen=True, eq=False)
class TransformsFrame(FileSource):
    label_paths: dict[str, Path]
    common: dict[str, Any]
    entry: dict[str, Any]

    def semantic(self) -> Int32[ndarray, "h w"] | None:
        path = self.label_paths.get("semantic_file_path")
        return None if path is None else self.straight(read_labels(path))

    def instance(self) -> Int32[ndarray, "h w"] | None:
        path = self.label_paths.get("instance_file_path")
        return None if path is None else self.straight(read_labels(path))

    def label_files(self) -> Sequence[Path]:
        return tuple(self.label_paths.values())

    def lens(self) -> Lens:
        content = self.common | self.entry
        model = content.get("camera_model", "OPENCV")
        if model not in PINHOLE_MODELS:
            raise LocusError(
                f"the camera model {model} is not a pinhole with OpenCV distortion; undistort the images first"
            )
        if number(content, "k4", 0.0):
            raise LocusError("a distortion coefficient k4 is given, which is not supported; undistort the images first")
        return Lens(*(number(content, key, 0.0) for key in ("k1", "k2", "p1", "p2", "k3")))

    def camera(self) -> Camera:
        content = self.common | self.entry
        width, height = content.get("w"), content.get("h")
        if width is None or height is None:
            width, height = self.image_size()
        width, height = int(number({"w": width}, "w")), int(number({"h": height}, "h"))
        if "fl_x" in content:
            fx = number(content, "fl_x")
        elif "camera_angle_x" in content:
            fx = width / 2 / tan(number(content, "camera_angle_x") / 2)
        else:
            raise LocusError(f'{FILE} gives neither "fl_x" nor "camera_angle_x"')
        fy = number(content, "fl_y", fx)
        if "fl_y" not in content and "camera_angle_y" in content:
            fy = height / 2 / tan(number(content, "camera_angle_y") / 2)
        return Camera(width, height, fx, fy, number(content, "cx", width / 2), number(content, "cy", height / 2))

    def pose(self) -> Float[ndarray, "4 4"]:
        try:
            matrix = np.array(self.entry["transform_matrix"], dtype=np.float64)
        except (KeyError, TypeError, ValueError):
            raise LocusError(f'{FILE} has no "transform_matrix" of numbers for it') from None
        if matrix.shape == (3, 4):
            matrix = np.vstack([matrix, [0.0, 0.0, 0.0, 1.0]])
        if matrix.shape != (4, 4):
            raise LocusError(f'its "transform_matrix" has shape {matrix.shape}, not (4, 4)')
        return matrix
