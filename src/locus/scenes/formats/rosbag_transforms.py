"""Where things are in a bag: the tree of `tf` and `tf_static`, and topics of poses."""

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy import ndarray

from locus.errors import SceneError
from locus.geometry import invert
from locus.scenes.timing import poses_at

TREES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
ODOMETRY, TRANSFORM = "nav_msgs/msg/Odometry", "geometry_msgs/msg/TransformStamped"
POSE, COVARIANT = "geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/PoseWithCovarianceStamped"
POSES = (ODOMETRY, TRANSFORM, POSE, COVARIANT)
BODIES = ("_link", "_footprint", "body")  # how frames that move are called; they are no world


@dataclass
class Track:
    """A transform over time, in no order."""

    stamps: array = field(default_factory=lambda: array("q"))
    """Nanoseconds."""
    values: array = field(default_factory=lambda: array("d"))
    """For each a position and a quaternion, x y z w."""

    def add(self, stamp: Any, position: Any, turn: Any) -> None:
        self.stamps.append(stamp.sec * 10**9 + stamp.nanosec)
        self.values.extend((position.x, position.y, position.z, turn.x, turn.y, turn.z, turn.w))

    def at(self, stamps: Int64[ndarray, "n"]) -> tuple[Float[ndarray, "n 4 4"], Bool[ndarray, "n"]]:
        """Poses at some times, and where there is one. Of several with the same time the first counts."""
        if not self.stamps:
            return np.tile(np.eye(4), (len(stamps), 1, 1)), np.zeros(len(stamps), bool)
        own, first = np.unique(np.array(self.stamps), return_index=True)
        origin = own[0]  # seconds since 1970 are exact only to some tenths of a microsecond
        return poses_at((stamps - origin) * 1e-9, (own - origin) * 1e-9, self._rows()[first])

    def _rows(self) -> Float[ndarray, "n 7"]:
        return np.array(self.values).reshape(-1, 7)

    @property
    def constant(self) -> bool:
        """Whether nothing moves: some drivers publish what is fixed again and again."""
        rows = self._rows()
        return bool(np.allclose(rows, rows[0], rtol=0, atol=1e-9))

    def fixed(self) -> Float[ndarray, "4 4"]:
        poses, found = poses_at(np.zeros(1), np.zeros(1), self._rows()[:1])
        if not found[0]:
            raise SceneError("a transform in tf is not a rigid one")
        return poses[0]


class Tree:
    """The frames of a bag, each with its parents: as they were published, which need not make a tree."""

    def __init__(self) -> None:
        self._parents: dict[str, dict[str, Track]] = {}

    def add(self, message: Any) -> None:
        for each in message.transforms:
            parents = self._parents.setdefault(each.child_frame_id.strip("/"), {})
            track = parents.setdefault(each.header.frame_id.strip("/"), Track())
            track.add(each.header.stamp, each.transform.translation, each.transform.rotation)

    def chain(self, frame: str) -> list[tuple[str, Track]]:
        """From a frame upwards: each parent with parent_from_child."""
        found: list[tuple[str, Track]] = []
        visited = [frame]
        while parents := self._parents.get(frame):
            if len(parents) > 1:
                raise SceneError(
                    f"tf has several parents of {frame}: {', '.join(sorted(parents))}; choose a topic of poses"
                )
            ((frame, track),) = parents.items()
            if frame in visited:
                raise SceneError(f"tf goes round in a circle: {' → '.join([*visited, frame])}")
            visited.append(frame)
            found.append((frame, track))
        return found

    def world(self, frame: str) -> str | None:
        """The frame at the top, if it looks like one that stays where it is while the given one moves."""
        chain = self.chain(frame)
        moves = any(not track.constant for _, track in chain)
        return chain[-1][0] if moves and not chain[-1][0].endswith(BODIES) else None

    def poses(self, frame: str, stamps: Int64[ndarray, "n"]) -> tuple[Float[ndarray, "n 4 4"], Bool[ndarray, "n"]]:
        """world_from_frame at some times, and where it is known."""
        poses, known = np.tile(np.eye(4), (len(stamps), 1, 1)), np.ones(len(stamps), bool)
        for _, track in self.chain(frame):
            if track.constant:
                poses = track.fixed() @ poses
            else:
                step, found = track.at(stamps)
                poses, known = step @ poses, known & found
        return poses, known

    def between(self, a: str, b: str) -> Float[ndarray, "4 4"] | None:
        """a_from_b where nothing between the two moves; None if the tree does not say it."""
        above_a, above_b = self._fixed_above(a), self._fixed_above(b)
        for frame, common_from_a in above_a.items():
            if frame in above_b:
                return invert(common_from_a) @ above_b[frame]
        return None

    def _fixed_above(self, frame: str) -> dict[str, Float[ndarray, "4 4"]]:
        """ancestor_from_frame of each ancestor, from the frame itself up to the first transform that moves."""
        above = {frame: np.eye(4)}
        for ancestor, track in self.chain(frame):
            if not track.constant:
                break
            above[ancestor] = track.fixed() @ above[frame]
            frame = ancestor
        return above


@dataclass
class PoseTopic:
    """world_from_body over time."""

    body: str = ""
    """The frame whose pose it is, if its messages say so."""
    track: Track = field(default_factory=Track)

    def add(self, message: Any, kind: str) -> None:
        if kind == TRANSFORM:
            pose, position, turn = message.transform, "translation", "rotation"
        else:
            pose = message.pose if kind == POSE else message.pose.pose
            position, turn = "position", "orientation"
        self.body = getattr(message, "child_frame_id", "").strip("/")
        self.track.add(message.header.stamp, getattr(pose, position), getattr(pose, turn))
