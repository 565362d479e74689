"""Writes the room as an RTAB-Map database, from RTAB-Map's schema and the layouts of its blobs, not from the reader."""

import io
import sqlite3
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from tests.scenes.room import CX, CY, FX, FY, HEIGHT, WIDTH, Shot

SCHEMA = """
CREATE TABLE Node (id INTEGER NOT NULL, map_id INTEGER NOT NULL, weight INTEGER, stamp FLOAT, pose BLOB,
    ground_truth_pose BLOB, label TEXT, time_enter DATE, PRIMARY KEY (id));
CREATE TABLE Data (id INTEGER NOT NULL, image BLOB, depth BLOB, calibration BLOB, scan BLOB, user_data BLOB,
    time_enter DATE, PRIMARY KEY (id));
CREATE TABLE Link (from_id INTEGER NOT NULL, to_id INTEGER NOT NULL, type INTEGER NOT NULL, transform BLOB);
CREATE TABLE Admin (version TEXT, preview_image BLOB, opt_ids BLOB, opt_poses BLOB, time_enter DATE);
"""
# The camera looks along the robot's x axis, half a metre above its base; exact in single precision.
BASE_FROM_CAMERA = np.array([[0, 0, 1, 0.25], [-1, 0, 0, 0.125], [0, -1, 0, 0.5], [0, 0, 0, 1]])
CV_32S, CV_32F = 4, 5


def in_floats(pose: np.ndarray) -> np.ndarray:
    """What single precision keeps of the robot's pose, and the camera's that comes of it."""
    base = (pose @ np.linalg.inv(BASE_FROM_CAMERA)).astype(np.float32).astype(np.float64)
    return base @ BASE_FROM_CAMERA


def transform(matrix: np.ndarray) -> bytes:
    return np.ascontiguousarray(matrix[:3], "<f4").tobytes()


def compressed(numbers: np.ndarray, kind: int) -> bytes:
    rows, columns = np.atleast_2d(numbers).shape
    return zlib.compress(numbers.tobytes()) + struct.pack("<iii", rows, columns, kind)


def png(values: np.ndarray) -> bytes:
    with io.BytesIO() as file:
        Image.fromarray(values).save(file, "PNG")
        return file.getvalue()


def depth_in_png(depth: np.ndarray) -> bytes:
    return png(np.rint(depth * 1000).astype(np.uint16))


def depth_in_floats(depth: np.ndarray) -> bytes:
    """OpenCV is handed the bytes of float32 as blue, green, red, alpha; a PNG has red first."""
    blue, green, red, alpha = np.moveaxis(depth.astype("<f4").view(np.uint8).reshape(*depth.shape, 4), -1, 0)
    return png(np.stack([red, green, blue, alpha], axis=-1))


def depth_in_rvl(depth: np.ndarray) -> bytes:
    values = np.rint(depth * 1000).astype(int)
    return b"DEPTHRVL" + struct.pack("<II", *values.shape[::-1]) + rvl(values.reshape(-1).tolist())


def rvl(pixels: list[int]) -> bytes:
    """Wilson's coder: runs of zeros and of others; zigzag differences; three bits and a flag to continue a nibble."""
    nibbles: list[int] = []

    def put(value: int) -> None:
        while value > 7:
            nibbles.append(value & 7 | 8)
            value >>= 3
        nibbles.append(value)

    at = previous = 0
    while at < len(pixels):
        start = at
        while at < len(pixels) and pixels[at] == 0:
            at += 1
        put(at - start)
        start = at
        while at < len(pixels) and pixels[at]:
            at += 1
        put(at - start)
        for pixel in pixels[start:at]:
            difference = pixel - previous
            put(2 * difference if difference >= 0 else -2 * difference - 1)
            previous = pixel
    nibbles += [0] * (-len(nibbles) % 8)
    words = (nibbles[k : k + 8] for k in range(0, len(nibbles), 8))
    return b"".join(struct.pack("<I", int("".join(f"{nibble:x}" for nibble in word), 16)) for word in words)


def mono(local: np.ndarray = BASE_FROM_CAMERA, raw: float = 1.0) -> bytes:
    """CameraModel::serialize. `raw` tells K, of the raw image, from P, of the rectified one that is stored."""
    K = [raw * FX, 0, CX - 0.5, 0, raw * FY, CY - 0.5, 0, 0, 1]
    P = [FX, 0, CX - 0.5, 0, 0, FY, CY - 0.5, 0, 0, 0, 1, 0]
    D, R = [0.1, -0.2, 0, 0, 0], np.eye(3).reshape(-1).tolist()
    header = struct.pack("<11i", 0, 21, 4, 0, WIDTH, HEIGHT, len(K), len(D), len(R), len(P), 12)
    return header + struct.pack("<35d", *K, *D, *R, *P) + transform(local)


def stereo() -> bytes:
    left, right = mono(), mono()
    header = struct.pack("<10i", 0, 21, 4, 1, 9, 3, 0, 0, len(left), len(right))
    return header + struct.pack("<12d", *np.eye(3).reshape(-1), -0.1, 0, 0) + left + right


def floats(local: np.ndarray = BASE_FROM_CAMERA) -> bytes:
    """Before version 0.18."""
    return struct.pack("<6f", FX, FY, CX - 0.5, CY - 0.5, WIDTH, HEIGHT) + transform(local)


def rtabmap(path: Path, shots: list[Shot], encode=depth_in_png, calibration: bytes | None = None) -> None:
    """Nodes 1, 2, …, one a shot; odometry has drifted, and the optimised graph is right."""
    drift = np.eye(4)
    drift[0, 3] = 0.5
    robot = [shot.world_from_camera @ np.linalg.inv(BASE_FROM_CAMERA) for shot in shots]
    write(
        path,
        [(k, 0, transform(drift @ pose)) for k, pose in enumerate(robot, 1)],
        [
            (k, png(shot.image), encode(shot.depth), mono(raw=1.1) if calibration is None else calibration)
            for k, shot in enumerate(shots, 1)
        ],
        np.arange(1, len(shots) + 1),
        np.array([pose[:3] for pose in robot]),
    )


def write(path: Path, nodes: Iterable[tuple], data: Iterable[tuple], ids=None, poses=None) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
        graph = (None, None)
        if ids is not None:
            graph = (
                compressed(ids.astype("<i4"), CV_32S),
                compressed(poses.astype("<f4").reshape(1, -1), CV_32F),
            )
        connection.execute("INSERT INTO Admin (version, opt_ids, opt_poses) VALUES ('0.21.4', ?, ?)", graph)
        connection.executemany("INSERT INTO Node (id, map_id, pose) VALUES (?, ?, ?)", nodes)
        connection.executemany("INSERT INTO Data (id, image, depth, calibration) VALUES (?, ?, ?, ?)", data)
    connection.close()


def edit(path: Path, query: str, *values: object) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(query, values)
    connection.close()
