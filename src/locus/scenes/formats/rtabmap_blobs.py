"""What RTAB-Map packs into the columns of its database: matrices, calibrations, depth. All little-endian."""

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int32, Num
from numpy import ndarray

from locus.errors import LocusError
from locus.scenes.reading import MAX_PIXELS, Piece, read_stored
from locus.scenes.rvl import decompress_rvl

KINDS = {4: "<i4", 5: "<f4"}  # OpenCV's numbers of the types of a matrix
LARGEST_MATRIX = 2**26  # bytes; over a million poses
SHAPE = struct.Struct("<3i")  # rows, columns and type, after the compressed numbers

MONO, STEREO = 0, 1
MONO_HEADER = struct.Struct("<11i")  # version (3), kind, width, height, and how many numbers K, D, R, P and L have
STEREO_HEADER = struct.Struct("<10i")  # version (3), kind, how many numbers R, T, E and F have, bytes of left and right
LARGEST_CALIBRATION = 2**16  # bytes; a camera has some 300
MOST_CAMERAS = 64  # of one node
SIZES = ((0, 9), (0, 4, 5, 6, 8, 12, 14), (0, 9), (0, 12), (12,))  # of K, D, R, P and L
OLDEST_FLOAT = 0x3F800000  # 1.0: no focal length is smaller, and no version's number as large

RVL_MARK = b"DEPTHRVL"
RVL_HEADER = struct.Struct("<8s2I")  # the mark, width, height


@dataclass(frozen=True, eq=False)
class RtabmapCamera:
    """One camera of a node. Images are stored rectified: there is no distortion to undo."""

    intrinsics: tuple[float, float, float, float]
    """fx fy cx cy in OpenCV's convention."""
    size: tuple[int, int]
    """(width, height); zeros where RTAB-Map did not know."""
    base_from_camera: Float[ndarray, "4 4"]
    is_stereo: bool
    """Where depth should be, there is the right image."""


def transform_from(blob: bytes | ndarray) -> Float[ndarray, "4 4"]:
    """Twelve floats: a 3×4 matrix, rows first."""
    numbers = np.frombuffer(blob, "<f4") if isinstance(blob, bytes) else blob
    return np.vstack([numbers.reshape(3, 4).astype(np.float64), [0.0, 0.0, 0.0, 1.0]])


def unpack_matrix(blob: bytes, kind: int) -> Int32[ndarray, "n"] | Float32[ndarray, "n"]:
    """The numbers of a matrix compressed by zlib, whose size stands behind it."""
    if len(blob) < SHAPE.size:
        raise LocusError("a matrix is cut short")
    rows, columns, stored = SHAPE.unpack_from(blob, len(blob) - SHAPE.size)
    size = 4 * rows * columns
    if stored != kind or rows < 0 or columns < 0 or size > LARGEST_MATRIX:
        raise LocusError(f"a matrix claims {rows}×{columns} numbers of OpenCV's type {stored}")
    try:
        numbers = zlib.decompressobj().decompress(blob[: -SHAPE.size], size + 1)
    except zlib.error as error:
        raise LocusError(f"a matrix is damaged ({error})") from None
    if len(numbers) != size:
        raise LocusError(f"a matrix does not hold the {rows}×{columns} numbers it claims")
    return np.frombuffer(numbers, KINDS[kind])


def unpack_calibration(blob: bytes) -> list[RtabmapCamera]:
    """The cameras of a node: with headers since version 0.18, before that nothing but floats."""
    if len(blob) > LARGEST_CALIBRATION:
        raise LocusError(f"its calibration of {len(blob)} bytes is refused")
    try:
        cameras = _floats(blob) if struct.unpack_from("<i", blob)[0] >= OLDEST_FLOAT else _with_headers(blob)
    except (struct.error, ValueError, OverflowError):
        raise LocusError("its calibration is cut short or damaged") from None
    if len(cameras) > MOST_CAMERAS:
        raise LocusError(f"its calibration claims {len(cameras)} cameras")
    return cameras


def _with_headers(blob: bytes) -> list[RtabmapCamera]:
    cameras = []
    while blob:
        camera, length = _stereo(blob) if struct.unpack_from("<4i", blob)[3] == STEREO else _mono(blob)
        cameras.append(camera)
        blob = blob[length:]
    return cameras


def _mono(blob: bytes, is_stereo: bool = False) -> tuple[RtabmapCamera, int]:
    """A camera, and how many bytes it took."""
    _, _, _, kind, width, height, *counts = MONO_HEADER.unpack_from(blob)
    if kind != MONO or not all(count in sizes for count, sizes in zip(counts, SIZES, strict=True)):
        raise ValueError
    *wide, last = counts
    at, matrices = MONO_HEADER.size, []
    for count in wide:
        matrices.append(np.frombuffer(blob, "<f8", count, at))
        at += 8 * count
    end = at + 4 * last
    K, _, _, P = matrices
    projection = P.reshape(3, 4) if len(P) else K.reshape(3, 3)  # of rectified images; without it, they were so before
    fx, fy, cx, cy = (float(projection[place]) for place in ((0, 0), (1, 1), (0, 2), (1, 2)))
    local = transform_from(np.frombuffer(blob, "<f4", last, at))
    return RtabmapCamera((fx, fy, cx, cy), (width, height), local, is_stereo), end


def _stereo(blob: bytes) -> tuple[RtabmapCamera, int]:
    *_, R, T, E, F, left, right = STEREO_HEADER.unpack_from(blob)
    if min(R, T, E, F, left, right) < 0:
        raise ValueError
    start = STEREO_HEADER.size + 8 * (R + T + E + F)
    camera, _ = _mono(blob[start : start + left], is_stereo=True)
    return camera, start + left + right


def _floats(blob: bytes) -> list[RtabmapCamera]:
    """fx fy cx cy width height and a transform for each camera; of a stereo pair a baseline comes fifth."""
    if len(blob) in (4 * 17, 4 * 19):
        numbers = np.frombuffer(blob, "<f4")
        size = (int(numbers[5]), int(numbers[6])) if len(numbers) == 19 else (0, 0)
        return [RtabmapCamera(tuple(numbers[:4].tolist()), size, transform_from(numbers[-12:]), True)]
    if len(blob) % (4 * 18):
        raise LocusError("its calibration is not one that RTAB-Map has written since version 0.11.2")
    rows = np.frombuffer(blob, "<f4").reshape(-1, 18)
    return [
        RtabmapCamera(tuple(row[:4].tolist()), (int(row[4]), int(row[5])), transform_from(row[6:]), False)
        for row in rows
    ]


def unpack_depth(blob: Piece) -> Num[ndarray, "h w"]:
    """In millimetres: whole ones in a PNG of 16 bits or in RVL, or metres as floats in a PNG's four channels."""
    if blob.data.startswith(RVL_MARK):
        if len(blob.data) < RVL_HEADER.size:
            raise LocusError(f"{blob} is cut short")
        _, width, height = RVL_HEADER.unpack_from(blob.data)
        if not 0 < width * height <= MAX_PIXELS:
            raise LocusError(f"{blob} claims {width}×{height} pixels and is refused")
        depth = decompress_rvl(blob.data[RVL_HEADER.size :], width * height).reshape(height, width)
    else:
        depth = read_stored(blob)
    if depth.shape[2:] == (4,) and depth.dtype == np.uint8:
        # OpenCV wrote the four bytes of each float as blue, green, red and opacity.
        return np.ascontiguousarray(depth[..., [2, 1, 0, 3]]).view("<f4")[..., 0] * np.float32(1000.0)
    if depth.ndim != 2 or depth.dtype == np.uint8:
        raise LocusError(f"{blob} is not a depth map but an image")
    return np.where(depth == 65535, depth.dtype.type(0), depth)
