"""Images in messages: `sensor_msgs/Image` and `sensor_msgs/CompressedImage`, colour and depth."""

import struct
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from jaxtyping import Num, UInt8
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.scenes.formats.rosbag_storage import Bag, Entry
from locus.scenes.reading import MAX_PIXELS, Piece, image_size, read_image, read_stored

RAW, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"

# Channels, and what makes RGB of them (None: nothing to do). OpenCV names Bayer patterns as ROS does in these aliases.
COLOUR: dict[str, tuple[str, int, int | None]] = {
    "rgb8": ("u1", 3, None),
    "bgr8": ("u1", 3, cv2.COLOR_BGR2RGB),
    "8UC3": ("u1", 3, cv2.COLOR_BGR2RGB),
    "rgba8": ("u1", 4, cv2.COLOR_RGBA2RGB),
    "bgra8": ("u1", 4, cv2.COLOR_BGRA2RGB),
    "mono8": ("u1", 1, cv2.COLOR_GRAY2RGB),
    "8UC1": ("u1", 1, cv2.COLOR_GRAY2RGB),
    "mono16": ("u2", 1, cv2.COLOR_GRAY2RGB),
    **{
        f"bayer_{pattern.lower()}{bits}": (f"u{bits // 8}", 1, getattr(cv2, f"COLOR_Bayer{pattern}2RGB"))
        for pattern in ("RGGB", "BGGR", "GBRG", "GRBG")
        for bits in (8, 16)
    },
}
GREY = ("mono8", "8UC1", "mono16")
UNITS = {"16UC1": 1000.0, "32FC1": 1.0}  # of depth, per metre: REP 118
DEPTH = {"16UC1": "u2", "32FC1": "f4"}
QUANTISATION = struct.Struct("<iff")  # before the PNG of compressedDepth: a kind, and the two numbers of its coding


@dataclass(frozen=True)
class ImageHead:
    """What the first bytes of an image's message say."""

    stamp: int
    """Nanoseconds, from the header: when the image was taken, not when it was recorded."""
    frame: str
    encoding: str
    """Of a compressed image that of what was compressed, if the message says it."""
    size: tuple[int, int] | None
    """(width, height); None of a compressed image, which says it in a header of its own."""

    @property
    def is_depth(self) -> bool:
        return self.encoding in DEPTH

    @property
    def is_colour(self) -> bool:
        return self.encoding in COLOUR or (self.size is None and not self.is_depth)

    @property
    def is_grey(self) -> bool:
        return self.encoding in GREY


def first_bytes(bag: Bag, entry: Entry) -> ImageHead:
    """What the first bytes of an image in a bag say."""
    try:
        return image_head(bag.head(entry), bag.topics[entry.topic], bag.is_ros2)
    except SceneError:
        raise
    except LocusError as error:
        raise SceneError(f"{bag.path}: an image of {entry.topic} cannot be read: {error}") from None


def image_head(data: bytes, kind: str, is_ros2: bool) -> ImageHead:
    """From the bytes of a message, or the first of them.

    Both generations of ROS begin with four bytes of something else, then the stamp and the frame. ROS 2 aligns what
    follows to four bytes and ends strings with a zero.
    """
    order = ">" if is_ros2 and data[1:2] == b"\0" else "<"

    def text(position: int) -> tuple[str, int]:
        (length,) = struct.unpack_from(f"{order}I", data, position)
        end = position + 4 + length
        if end > len(data):
            raise LocusError("its header is damaged, or longer than a header should be")
        return data[position + 4 : end].rstrip(b"\0").decode("utf-8", "replace"), end + (-end % 4 if is_ros2 else 0)

    try:
        seconds, nanoseconds = struct.unpack_from(f"{order}iI", data, 4)
        frame, position = text(12)
        size = None
        if kind == RAW:
            height, width = struct.unpack_from(f"{order}II", data, position)
            size, position = (width, height), position + 8
        encoding, _ = text(position)
    except struct.error:
        raise LocusError("its header is cut short") from None
    return ImageHead(seconds * 10**9 + nanoseconds, frame.strip("/"), encoding.split(";")[0].strip(), size)


def colour_image(message: Any, name: str) -> UInt8[ndarray, "h w 3"]:
    """RGB. The name is for errors."""
    if not hasattr(message, "encoding"):
        return read_image(Piece(name, bytes(message.data)))
    if message.encoding not in COLOUR:
        raise LocusError(f"{name} is encoded as {message.encoding}; colour that can be read is {', '.join(COLOUR)}")
    kind, channels, conversion = COLOUR[message.encoding]
    pixels = _pixels(message, kind, channels, name)
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    return pixels if conversion is None else np.asarray(cv2.cvtColor(pixels, conversion), np.uint8)


def depth_image(message: Any, name: str) -> Num[ndarray, "h w"]:
    """Millimetres (16UC1) or metres (32FC1), as the message has them; 0 or no number where unknown."""
    encoding = getattr(message, "encoding", None)
    if encoding is None:
        depth = _unpacked_depth(message, name)
    elif encoding in DEPTH:
        depth = _pixels(message, DEPTH[encoding], 1, name)[..., 0]
    else:
        raise LocusError(f"{name} is encoded as {encoding}; depth is {' or '.join(DEPTH)}")
    return np.where(depth == 65535, np.uint16(0), depth) if depth.dtype == np.uint16 else depth


def _unpacked_depth(message: Any, name: str) -> Num[ndarray, "h w"]:
    """A PNG of 16 bits; that of the transport compressedDepth has a header before it."""
    data, transport = bytes(message.data), "compressedDepth" in message.format
    if transport and "rvl" in message.format.lower():
        raise LocusError(f"{name} is compressed by RVL, which is not read; record compressedDepth with format png")
    stored = read_stored(Piece(name, data[QUANTISATION.size :] if transport else data))
    if stored.ndim != 2 or stored.dtype.kind not in "iu":
        raise LocusError(f"{name} holds {stored.dtype} {stored.shape}; depth has one channel of whole numbers")
    depth = stored.astype(np.uint16)
    if not transport or message.format.startswith("16UC1"):
        return depth
    # Floating-point depth is stored as a / depth + b, rounded; 0 is unknown.
    _, a, b = QUANTISATION.unpack_from(data)
    with np.errstate(divide="ignore"):
        return np.where(depth > 0, a / (depth - np.float32(b)), 0).astype(np.float32)


def message_image_size(message: Any, name: str) -> tuple[int, int]:
    """(width, height) of a compressed image."""
    return image_size(Piece(name, bytes(message.data)))


def _pixels(message: Any, kind: str, channels: int, name: str) -> Num[ndarray, "h w c"]:
    """The pixels of a raw image; rows may be padded, and bytes may be in either order."""
    width, height, step = message.width, message.height, message.step
    row = width * channels * np.dtype(kind).itemsize
    if not 0 < width * height <= MAX_PIXELS:
        raise LocusError(f"{name} claims {width}×{height} pixels, and at most {MAX_PIXELS // 10**6} million are read")
    if step < row or len(message.data) < step * height:
        raise LocusError(
            f"{name} claims {width}×{height} pixels in rows of {step} bytes but holds {len(message.data)} bytes"
        )
    rows = np.ascontiguousarray(message.data[: step * height].reshape(height, step)[:, :row])
    stored = rows.view(np.dtype(kind).newbyteorder(">" if message.is_bigendian else "<"))
    return stored.astype(kind).reshape(height, width, channels)
