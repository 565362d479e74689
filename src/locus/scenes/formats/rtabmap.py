"""An RTAB-Map database (`.db`): images, depth, calibrations and poses of its nodes, in one SQLite file.

Poses are those of the last optimised graph, and nodes outside it are left out; a database without one has odometry
alone, which is used with a warning. A node's pose is that of the robot's base; each of its cameras has a transform to
it. Images of several cameras stand side by side: they become frames `ID-0`, `ID-1` and so on. Depth is in millimetres.
The file is opened read-only.
"""

import sqlite3
import warnings
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Num, UInt8
from numpy import ndarray

from locus.errors import LocusError, SceneError
from locus.files import content_hash
from locus.geometry import Camera
from locus.opening import UNLIMITED, opened
from locus.scenes.formats.rtabmap_blobs import (
    RtabmapCamera,
    transform_from,
    unpack_calibration,
    unpack_depth,
    unpack_matrix,
)
from locus.scenes.reading import Piece, camera_from_four, image_size, read_image
from locus.scenes.scene import Scene
from locus.scenes.source import Source

SQLITE = b"SQLite format 3\0"
COLUMNS = {"Node": {"id", "map_id", "pose"}, "Data": {"id", "image", "depth", "calibration"}, "Admin": {"version"}}
LARGEST_BLOB = 2**28  # bytes
LOOKED_AT = 20  # nodes asked for a calibration that can be read
FOUR_BYTES = 4  # RTAB-Map writes up to that many for an image that is not there


def detect(path: Path) -> bool:
    if path.suffix.lower() != ".db" or not path.is_file():
        return False
    with opened(path, UNLIMITED) as file:
        return file.read(len(SQLITE)) == SQLITE


def read(path: Path, allow_outside: bool) -> Scene:
    check_tables(path)
    optimised = optimised_poses(path)
    nodes = rows(
        path,
        "SELECT Node.id, map_id, CASE WHEN length(pose) = 48 THEN pose END, length(image), length(depth) "
        "FROM Node LEFT JOIN Data ON Data.id = Node.id WHERE typeof(Node.id) = 'integer' ORDER BY Node.id",
    )
    # Each session's odometry has coordinates of its own.
    sessions = Counter(map_id for _, map_id, _, size, _ in nodes if size).most_common(1)
    if not optimised:
        warnings.warn(
            f"{path} has no optimised graph; its odometry is used, which drifts (close RTAB-Map properly, or run "
            "rtabmap-reprocess)",
            stacklevel=4,
        )
    skipped: dict[str, str] = {}
    posed: dict[int, tuple[Float[ndarray, "4 4"], bool]] = {}
    for node, map_id, blob, size, depth_size in nodes:
        pose = optimised.get(node) if optimised else odometry_pose(blob)
        if not size or size <= FOUR_BYTES:
            skipped[str(node)] = "no image"
        elif not optimised and map_id != sessions[0][0]:
            skipped[str(node)] = "of another session, which no optimised graph connects"
        elif pose is None:
            skipped[str(node)] = "not in the optimised graph" if optimised else "no pose"
        else:
            posed[node] = pose, bool(depth_size) and depth_size > FOUR_BYTES
    cameras = first_calibration(path, list(posed)[:LOOKED_AT])
    count, stereo = len(cameras), any(camera.is_stereo for camera in cameras)
    sources = [
        RtabmapFrame(f"{node}-{k}" if count > 1 else str(node), path, node, k, count, pose, has_depth and not stereo)
        for node, (pose, has_depth) in posed.items()
        for k in range(count)
    ]
    return Scene(path.stem, "rtabmap", sources, skipped=skipped)


def rows(path: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """The answer to a query. The file is opened as one that nobody changes: nothing is written, not even beside it."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            return connection.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise SceneError(f"{path} cannot be read as an RTAB-Map database ({error})") from None


def check_tables(path: Path) -> None:
    """Tables, not views: what a query of a view does is up to whoever wrote the file."""
    tables = {name for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")}
    for table, columns in COLUMNS.items():
        found = {row[1] for row in rows(path, f"PRAGMA table_info({table})")} if table in tables else set()
        if not columns <= found:
            raise SceneError(
                f"{path} is an SQLite database but not RTAB-Map's of version 0.11 or later: "
                f"it has no table {table} with {', '.join(sorted(columns))}"
            )


def optimised_poses(path: Path) -> dict[int, Float[ndarray, "4 4"]]:
    """By node, world_from_base of the graph as RTAB-Map last optimised it; none where it did not save one."""
    if not {"opt_ids", "opt_poses"} <= {row[1] for row in rows(path, "PRAGMA table_info(Admin)")}:
        return {}
    saved = rows(
        path,
        "SELECT opt_ids, opt_poses FROM Admin WHERE length(opt_ids) > 0 AND length(opt_poses) > 0 "
        "AND length(opt_ids) <= ? AND length(opt_poses) <= ? ORDER BY rowid DESC LIMIT 1",
        LARGEST_BLOB,
        LARGEST_BLOB,
    )
    if not saved or not all(isinstance(blob, bytes) for blob in saved[0]):
        return {}
    try:
        ids, poses = unpack_matrix(saved[0][0], 4), unpack_matrix(saved[0][1], 5)
    except LocusError as error:
        raise SceneError(f"{path}: the optimised graph cannot be read: {error}") from None
    if len(poses) != 12 * len(ids):
        raise SceneError(f"{path}: the optimised graph has {len(ids)} nodes but {len(poses)} numbers, not 12 for each")
    return dict(zip(ids.tolist(), map(transform_from, poses.reshape(-1, 12)), strict=True))


def first_calibration(path: Path, nodes: list[int]) -> list[RtabmapCamera]:
    """The cameras of a node; all nodes have as many, of one kind. To ask them all would be to read the whole file."""
    reason = None
    for node in nodes:
        try:
            return unpack_calibration(blob_of(path, node, "calibration"))
        except LocusError as error:
            reason = reason or f"node {node}: {error}"
    if reason:
        raise SceneError(f"{path}: {reason}")
    return []


def odometry_pose(blob: Any) -> Float[ndarray, "4 4"] | None:
    """None of a node that odometry has lost: it has no numbers, or zeros, or none that are numbers."""
    if not isinstance(blob, bytes):
        return None
    pose = transform_from(blob)
    return pose if np.isfinite(pose).all() and pose[:3].any() else None


def blob_of(path: Path, node: int, column: str) -> bytes:
    """What a node has in a column of the table Data; nothing where it has nothing."""
    found = rows(path, f"SELECT {column} FROM Data WHERE id = ? AND length({column}) <= ?", node, LARGEST_BLOB)
    return found[0][0] if found and isinstance(found[0][0], bytes) else b""


@dataclass(frozen=True, eq=False)
class RtabmapFrame(Source):
    database: Path
    node: int
    place: int
    """Which of the node's cameras took it."""
    cameras: int
    world_from_base: Float[ndarray, "4 4"]
    stores_depth: bool

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.part(read_image(self.piece("image")))

    def image_size(self) -> tuple[int, int]:
        width, height = image_size(self.piece("image"))
        return width // self.cameras, height

    def has_depth(self) -> bool:
        return self.stores_depth

    def depth(self) -> Num[ndarray, "h w"]:
        if not self.stores_depth:
            raise LocusError("it has no depth (of a stereo camera RTAB-Map keeps the right image in its place)")
        return self.part(unpack_depth(self.piece("depth")))

    def camera(self) -> Camera:
        calibration = self.calibration()
        size = calibration.size if min(calibration.size) > 0 else self.image_size()
        return camera_from_four(calibration.intrinsics, size, f"the calibration of node {self.node}")

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.world_from_base @ self.calibration().base_from_camera

    def image_state(self) -> str:
        return self.state("image")

    def depth_state(self) -> str:
        return self.state("depth")

    def piece(self, column: str) -> Piece:
        data = blob_of(self.database, self.node, column)
        if len(data) <= FOUR_BYTES:
            raise LocusError(f"{self.database} has no {column} for node {self.node}")
        return Piece(f"the {column} of node {self.node} in {self.database}", data)

    def calibration(self) -> RtabmapCamera:
        cameras = unpack_calibration(self.piece("calibration").data)
        if len(cameras) != self.cameras:
            raise LocusError(f"it has {len(cameras)} cameras, and the first node {self.cameras}")
        return cameras[self.place]

    def part(self, side_by_side: Num[ndarray, "h w *c"]) -> Num[ndarray, "h own *c"]:
        """This camera's own of images that stand side by side."""
        width = side_by_side.shape[1] // self.cameras
        return np.ascontiguousarray(side_by_side[:, self.place * width : (self.place + 1) * width])

    def state(self, column: str) -> str:
        stored = np.frombuffer(blob_of(self.database, self.node, column), np.uint8)
        return content_hash(stored, self.place, self.cameras)
