"""ScanNet's `.sens`: a whole recording in one file, read frame by frame where it lies.

A header with the cameras of colour and depth; then for each frame its pose, world_from_camera, two times, the sizes of
its two images, and the images: colour as JPEG, depth as 16-bit numbers packed by zlib. Opening the file reads the
header and jumps from frame to frame. Depth has intrinsics of its own and is carried to the colour image.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Float, Num, UInt8
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.geometry import Camera
from locus.opening import UNLIMITED, opened
from locus.scenes.formats.scannet import seen_by
from locus.scenes.reading import MAX_PIXELS, Piece, camera_from_opencv, read_image
from locus.scenes.scene import Convention, Scene
from locus.scenes.source import Source
from locus.scenes.unpacking import inflate

VERSION = 4
COLOUR = (PNG, JPEG) = (1, 2)
DEPTH = (RAW, ZLIB) = (0, 1)
FRAME = struct.Struct("<16f4Q")  # pose, two times, the sizes of colour and depth


def detect(path: Path) -> bool:
    return path.suffix.lower() == ".sens" and path.is_file()


def read(path: Path, allow_outside: bool) -> Scene:
    with opened(path, UNLIMITED) as file:
        try:
            header, count = read_header(file, path)
            frames = read_index(file, count, path)
        except struct.error:
            raise SceneError(f"{path} is cut short in its header; download it again") from None
    sources = [SensFrame(str(number), header, *frame) for number, frame in enumerate(frames)]
    return Scene(path.stem, "sens", sources, Convention(depth_scale=header.depth_scale))


@dataclass(frozen=True)
class SensHeader:
    path: Path
    colour: Camera
    depth: Camera
    depth_kind: int
    depth_scale: float


def read_header(file: BinaryIO, path: Path) -> tuple[SensHeader, int]:
    """The header, and how many frames it claims."""
    version, name_length = struct.unpack("<IQ", file.read(12))
    if version != VERSION:
        raise SceneError(f"{path} is of version {version}, where ScanNet's files are of version {VERSION}")
    file.seek(min(name_length, 2**40), 1)
    matrices = np.array(struct.unpack("<64f", file.read(256))).reshape(4, 4, 4)  # colour, then depth
    colour_kind, depth_kind, *sizes, scale, count = struct.unpack("<2i4IfQ", file.read(36))
    if np.abs(matrices[[1, 3]] - np.eye(4)).max() > 1e-3 or not np.isfinite(matrices).all():
        raise SceneError(f"{path} has cameras of colour and depth that stand apart, which is not supported; export it")
    if colour_kind not in COLOUR or depth_kind not in DEPTH:
        raise SceneError(
            f"{path} compresses colour by {colour_kind} and depth by {depth_kind}, which LoCUS cannot read"
        )
    if max(sizes[0] * sizes[1], sizes[2] * sizes[3]) > MAX_PIXELS:
        raise SceneError(f"{path} claims images of more than {MAX_PIXELS // 10**6} million pixels and is refused")
    colour = camera_from_opencv(matrices[0, :3, :3], (sizes[0], sizes[1]), path)
    depth = camera_from_opencv(matrices[2, :3, :3], (sizes[2], sizes[3]), path)
    return SensHeader(path, colour, depth, depth_kind, scale), count


def read_index(file: BinaryIO, count: int, path: Path) -> list[tuple[Float[ndarray, "4 4"], int, int, int]]:
    """Of each frame its pose, where its colour begins, and how long its colour and its depth are."""
    end, at = path.stat().st_size, file.tell()
    frames = []
    while len(frames) < count:
        file.seek(at)
        head = file.read(FRAME.size).ljust(FRAME.size, b"\0")
        *pose, _, _, colour_bytes, depth_bytes = FRAME.unpack(head)
        begin = at + FRAME.size
        at = begin + colour_bytes + depth_bytes
        if at > end:
            raise SceneError(f"{path} ends within frame {len(frames)} of {count}; download it again")
        if not colour_bytes:  # or nothing but zeros could be taken for frames without end
            raise SceneError(f"{path} has no colour for frame {len(frames)}; download it again")
        frames.append((np.array(pose).reshape(4, 4), begin, colour_bytes, depth_bytes))
    return frames


@dataclass(frozen=True, eq=False)
class SensFrame(Source):
    header: SensHeader
    stored_pose: Float[ndarray, "4 4"]
    begin: int
    colour_bytes: int
    depth_bytes: int

    def image(self) -> UInt8[ndarray, "h w 3"]:
        width, height = self.image_size()
        data = self._bytes(self.begin, self.colour_bytes)
        image = read_image(Piece(f"the colour of frame {self.name} in {self.header.path}", data))
        if image.shape != (height, width, 3):
            raise LocusError(
                f"its colour has {image.shape[1]}×{image.shape[0]} pixels, not the {width}×{height} claimed"
            )
        return image

    def image_size(self) -> tuple[int, int]:
        return self.header.colour.width, self.header.colour.height

    def depth(self) -> Num[ndarray, "h w"]:
        own = self.header.depth
        size = own.width * own.height * 2
        data = self._bytes(self.begin + self.colour_bytes, self.depth_bytes)
        if self.header.depth_kind == ZLIB:
            data = inflate(data, size)
        if len(data) != size:
            raise LocusError(f"its depth has {len(data)} bytes, not the {size} of a map of {own.width}×{own.height}")
        depth = np.frombuffer(data, "<u2").reshape(own.height, own.width)
        return seen_by(self.header.colour, depth, own)

    def camera(self) -> Camera:
        return self.header.colour

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.stored_pose

    def _bytes(self, begin: int, length: int) -> bytes:
        """A file may be sparse: no frame is larger than its pixels could be."""
        if length > 8 * MAX_PIXELS:
            raise LocusError(f"it claims {length} bytes and is refused")
        with opened(self.header.path, UNLIMITED) as file:
            file.seek(begin)
            return file.read(length)
