"""Record3D: the app's own `.r3d` files, and its export "EXR + JPG sequence". Depth needs the extra `capture`.

A `.r3d` is a zip of `metadata` (JSON) and, for each frame, `rgbd/0.jpg`, `rgbd/0.depth` and `rgbd/0.conf`. The export
is a folder `EXR_RGBD` with the same metadata, `rgb/0.jpg` and `depth/0.exr`. Poses are ARKit's, world_from_camera with
OpenGL axes; depth is in metres; depth of low confidence is unknown.
"""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Num, UInt8
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera, pose_matrices
from locus.opening import admitted, parse_json, read_json
from locus.scenes.reading import Piece, camera_from_four, image_size, read_image, with_confidence
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import PosedFile, Source
from locus.scenes.unpacking import unpack_lzfse

EXPORT = "EXR_RGBD"
CONVENTION = Convention(axes="opengl", depth_scale=1.0)
LIDAR = (192, 256)  # what older versions of the app do not say
LARGEST_DEPTH = 2**20  # pixels; LiDAR has 49,152, the face camera 307,200
LARGEST_PIECE = 2**26  # bytes


def detect(path: Path) -> bool:
    if path.suffix.lower() == ".r3d":
        return path.is_file()
    root = export_root(path)
    return (root / "metadata.json").is_file() and (root / "rgb").is_dir() and (root / "depth").is_dir()


def export_root(path: Path) -> Path:
    return path / EXPORT if (path / EXPORT).is_dir() else path


def read(path: Path, allow_outside: bool) -> Scene:
    return read_archive(path) if path.is_file() else read_export(path)


def read_archive(path: Path) -> Scene:
    archive = R3dArchive(path)
    metadata = archive.piece("metadata")
    recording = read_metadata(parse_json(metadata.data, metadata), str(metadata))
    numbers = sorted(
        int(found[1]) for name in archive.names if (found := re.fullmatch(r"rgbd/([0-9]{1,9})\.jpg", name))
    )
    skipped = {str(number): "the metadata have no pose for it" for number in numbers if number >= len(recording.poses)}
    sources = [R3dFrame(str(number), archive, recording, number) for number in numbers if str(number) not in skipped]
    return Scene(path.stem, "record3d", sources, CONVENTION, skipped=skipped)


def read_export(path: Path) -> Scene:
    root = export_root(path)
    recording = read_metadata(read_json(root / "metadata.json"), str(root / "metadata.json"))
    depths = {file.stem: file for file in (root / "depth").glob("*.exr")}
    sources, skipped = [], {}
    numbered = [file for file in (root / "rgb").glob("*.[jp][pn]g") if re.fullmatch("[0-9]{1,9}", file.stem)]
    for file in sorted(numbered, key=lambda file: int(file.stem)):
        if (number := int(file.stem)) >= len(recording.poses):
            skipped[file.stem] = "metadata.json has no pose for it"
            continue
        depth = depths.get(file.stem)
        sources.append(ExportFrame(file.stem, file, depth, recording.poses[number], recording, number))
    return Scene((path.parent if path.name == EXPORT else path).name, "record3d", sources, CONVENTION, skipped=skipped)


@dataclass(frozen=True, eq=False)
class R3dMetadata:
    """What the metadata say."""

    file: str
    size: tuple[int, int]  # of the images
    depth_size: tuple[int, int]
    poses: Float[ndarray, "n 4 4"]
    intrinsics: Float[ndarray, "n 4"]  # fx fy cx cy

    def camera(self, number: int) -> Camera:
        return camera_from_four(self.intrinsics[number].tolist(), self.size, self.file)


def read_metadata(content: Any, file: str) -> R3dMetadata:
    if not isinstance(content, dict):
        raise SceneError(f"{file} should be a table of names and values")
    sizes = [content.get("w"), content.get("h"), content.get("dw", LIDAR[0]), content.get("dh", LIDAR[1])]
    if not all(isinstance(value, int) and 0 < value < 2**16 for value in sizes):
        raise SceneError(f'{file}: "w", "h", "dw" and "dh" should be sizes in pixels, not {sizes!r:.60}')
    width, height, depth_width, depth_height = sizes
    if depth_width * depth_height > LARGEST_DEPTH:
        raise SceneError(f"{file}: a depth map of {depth_width}×{depth_height} is larger than any phone's; refused")
    stored = _rows(content, "poses", 7, file)
    poses = pose_matrices(np.hstack([stored[:, 4:], stored[:, :4]]))  # the quaternion comes first
    if content.get("perFrameIntrinsicCoeffs"):
        intrinsics = _rows(content, "perFrameIntrinsicCoeffs", 4, file)
    else:
        matrix = _rows({"K": [content.get("K")]}, "K", 9, file)[0]  # column by column
        intrinsics = np.tile(matrix[[0, 4, 6, 7]], (len(poses), 1))
    count = min(len(poses), len(intrinsics))
    return R3dMetadata(file, (width, height), (depth_width, depth_height), poses[:count], intrinsics[:count])


def _rows(content: dict[str, Any], key: str, columns: int, file: str) -> Float[ndarray, "n columns"]:
    try:
        values = np.array(content[key], dtype=np.float64)
    except (KeyError, TypeError, ValueError, OverflowError):
        values = np.empty((0, 0))
    if values.ndim != 2 or values.shape[1] != columns:
        raise SceneError(f'{file}: "{key}" should hold {columns} numbers for each frame')
    return values


class R3dArchive:
    """A zip file whose parts are read one by one, by several threads, none larger than `LARGEST_PIECE`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(admitted(path))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, UnicodeDecodeError) as error:
            raise SceneError(f"{path} is not a recording that can be read ({error}); export it again") from None
        self.names = frozenset(self._zip.namelist())

    def piece(self, name: str) -> Piece:
        if name not in self.names:
            raise LocusError(f"{self.path} has no {name}")
        entry = self._zip.getinfo(name)
        if entry.file_size > LARGEST_PIECE:
            raise LocusError(f"{name} in {self.path} claims {entry.file_size} bytes and is refused")
        try:
            return Piece(f"{name} in {self.path}", self._zip.read(entry))
        except Exception as error:  # encrypted, damaged, an unknown compression: each raises something else
            raise LocusError(f"{name} in {self.path} is damaged ({error})") from None


@dataclass(frozen=True, eq=False)
class R3dFrame(Source):
    archive: R3dArchive
    recording: R3dMetadata
    number: int

    def part(self, kind: str) -> str:
        return f"rgbd/{self.number}.{kind}"

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return read_image(self.archive.piece(self.part("jpg")))

    def image_size(self) -> tuple[int, int]:
        return image_size(self.archive.piece(self.part("jpg")))

    def has_depth(self) -> bool:
        return self.part("depth") in self.archive.names

    def depth(self) -> Num[ndarray, "h w"]:
        width, height = self.recording.depth_size
        packed = self.archive.piece(self.part("depth"))
        depth = np.frombuffer(unpack_lzfse(packed.data, width * height * 4), "<f4").reshape(height, width)
        if self.part("conf") not in self.archive.names:
            return depth
        packed = self.archive.piece(self.part("conf"))
        confidence = np.frombuffer(unpack_lzfse(packed.data, width * height), np.uint8).reshape(height, width)
        return with_confidence(depth, confidence, packed)

    def camera(self) -> Camera:
        return self.recording.camera(self.number)

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.recording.poses[self.number]


@dataclass(frozen=True, eq=False)
class ExportFrame(PosedFile):
    recording: R3dMetadata
    number: int

    def camera(self) -> Camera:
        return self.recording.camera(self.number)
