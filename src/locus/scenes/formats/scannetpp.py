"""ScanNet++, the iPhone's recordings: `iphone/rgb.mkv` (or `.mp4`), `depth.bin` and `pose_intrinsic_imu.json`.

Poses are the aligned ones, world_from_camera with OpenCV axes. `depth.bin` holds the depth maps one after the other,
each after its length in bytes: 256×192 numbers, in millimetres packed by LZ4, or in metres packed by zlib. It is read
frame by frame where it lies. What the data set's tools unpack, `rgb/` and `depth/`, is read in its place where it is
there. There is no confidence.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Num
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.opening import UNLIMITED, opened, read_json
from locus.scenes.reading import camera_from_four
from locus.scenes.scene import Scene
from locus.scenes.source import PosedFile, Source
from locus.scenes.unpacking import RAW_DEFLATE, inflate, unpack_lz4
from locus.scenes.video import Video, VideoFrame

TABLE = "pose_intrinsic_imu.json"
VIDEOS = ("rgb.mkv", "rgb.mp4")
ROWS, COLUMNS = 192, 256


def detect(path: Path) -> bool:
    return (iphone_folder(path) / TABLE).is_file()


def iphone_folder(path: Path) -> Path:
    return path / "iphone" if (path / "iphone").is_dir() else path


def read(path: Path, allow_outside: bool) -> Scene:
    root = iphone_folder(path)
    table = read_json(root / TABLE)
    if not isinstance(table, dict):
        raise SceneError(f"{root / TABLE} should be a table with an entry for each frame")
    sources, skipped = [], {}
    frame = unpacked_frames(root) if (root / "rgb").is_dir() else packed_frames(root)
    for key, entry in table.items():
        found = re.fullmatch(r"frame_([0-9]{1,9})", key)
        pose, intrinsics = matrix(entry, "aligned_pose", 4), matrix(entry, "intrinsic", 3)
        if found is None or pose is None or intrinsics is None:
            skipped[key] = f'{TABLE} has no "aligned_pose" and "intrinsic" of numbers for it'
            continue
        source = frame(key, int(found[1]), pose, tuple(intrinsics[[0, 1, 0, 1], [0, 1, 2, 2]].tolist()))
        if source is not None:  # tools unpack every tenth frame, say
            sources.append(source)
    return Scene((path.parent if path.name == "iphone" else path).name, "scannet++", sources, skipped=skipped)


def packed_frames(root: Path) -> Callable[..., Source]:
    """What makes a frame of its name, number, pose and intrinsics, where images and depth are as downloaded."""
    name = next((name for name in VIDEOS if (root / name).is_file()), None)
    if name is None:
        raise SceneError(f"{root} has neither {' nor '.join(VIDEOS)}; download it as well")
    video = Video(root / name)
    _ = video.size  # a video that cannot be opened is found here
    depth_file = root / "depth.bin"
    places = read_index(depth_file) if depth_file.is_file() else []

    def frame(key: str, number: int, pose: Float[ndarray, "4 4"], four: tuple[float, ...]) -> Source:
        place = places[number] if number < len(places) else None
        return PackedFrame(key, video, number, pose, four, depth_file, place)

    return frame


def unpacked_frames(root: Path) -> Callable[..., Source | None]:
    """The same where the data set's tools have written `rgb/frame_000000.jpg` and `depth/frame_000000.png`."""
    images = {file.stem: file for file in (root / "rgb").glob("*.[jp][pn]g")}
    depths = {file.stem: file for file in (root / "depth").glob("*.png")}

    def frame(key: str, number: int, pose: Float[ndarray, "4 4"], four: tuple[float, ...]) -> Source | None:
        return UnpackedFrame(key, images[key], depths.get(key), pose, four) if key in images else None

    return frame


def matrix(entry: Any, key: str, size: int) -> Num[ndarray, "size size"] | None:
    try:
        values = np.array(entry[key], dtype=np.float64)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):
        return None
    return values if values.shape == (size, size) else None


def read_index(path: Path) -> list[tuple[int, int]]:
    """Of each depth map, where it begins and how long it is."""
    end, at = path.stat().st_size, 0
    places = []
    with opened(path, UNLIMITED) as file:
        while at < end:
            file.seek(at)
            (length,) = struct.unpack("<I", file.read(4).ljust(4, b"\0"))
            if not length or at + 4 + length > end:
                raise SceneError(
                    f"{path} ends within depth map {len(places)}; download it again, or, where all maps are packed as "
                    "one, unpack the recording with ScanNet++'s tools"
                )
            places.append((at + 4, length))
            at += 4 + length
    return places


@dataclass(frozen=True, eq=False)
class PackedFrame(VideoFrame):
    depth_file: Path
    place: tuple[int, int] | None

    def has_depth(self) -> bool:
        return self.place is not None

    def depth(self) -> Num[ndarray, "h w"]:
        if self.place is None:
            raise LocusError(f"{self.depth_file} has no depth map of its number")
        begin, length = self.place
        if length > 2 * ROWS * COLUMNS * 4:
            raise LocusError(f"{self.depth_file} claims {length} bytes for its depth map and is refused")
        with opened(self.depth_file, UNLIMITED) as file:
            file.seek(begin)
            data = file.read(length)
        try:
            metres = np.frombuffer(inflate(data, ROWS * COLUMNS * 4, RAW_DEFLATE), "<f4")
            return metres.reshape(ROWS, COLUMNS) * np.float32(1000)
        except LocusError:  # the other of the two; nothing in the file says which
            return np.frombuffer(unpack_lz4(data, ROWS * COLUMNS * 2), "<u2").reshape(ROWS, COLUMNS)


@dataclass(frozen=True, eq=False)
class UnpackedFrame(PosedFile):
    four: tuple[float, ...]

    def camera(self) -> Camera:
        return camera_from_four(self.four, self.image_size(), TABLE)
