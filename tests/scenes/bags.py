"""Small bags, written by rosbags from the definitions of ROS and not by what reads them."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

from tests.scenes import room

# What a bag is written as: its name, and whether it is one file that stands alone.
KINDS = ["ros1", "ros1-lz4", "ros1-bz2", "sqlite3", "db3", "sqlite3-messages", "mcap", "mcap-file", "mcap-zstd"]
OPTICAL, DEPTH_OPTICAL = "camera_color_optical_frame", "camera_depth_optical_frame"
START = 1_700_000_000 * 10**9  # nanoseconds


class BagFile:
    """A bag of one of the kinds; `path` is what a user would name, once it is closed."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.ros1 = kind.startswith("ros1")
        self.store = get_typestore(Stores.ROS1_NOETIC if self.ros1 else Stores.ROS2_HUMBLE)
        tree = "tf2_msgs/msg/TFMessage"
        if tree not in self.store.types:
            self.store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", tree))
        if self.ros1:
            self.path = folder / "walk.bag"
            self.writer: Any = Writer1(self.path)
            if "-" in kind:
                self.writer.set_compression(getattr(Writer1.CompressionFormat, kind.split("-")[1].upper()))
        else:
            plugin = StoragePlugin.MCAP if kind.startswith("mcap") else StoragePlugin.SQLITE3
            root = folder / "walk"
            self.writer = Writer2(root, version=9, storage_plugin=plugin)
            if kind == "mcap-zstd":
                self.writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
            if kind == "sqlite3-messages":
                self.writer.set_compression(CompressionMode.MESSAGE, CompressionFormat.ZSTD)
            self.path = {"db3": root / "walk.db3", "mcap-file": root / "walk.mcap"}.get(kind, root)
        self.connections: dict[str, Any] = {}

    def __enter__(self) -> "BagFile":
        self.writer.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()

    def make(self, name: str, *values: Any, **fields: Any) -> Any:
        return self.store.types[name](*values, **fields)

    def add(self, topic: str, name: str, message: Any, recorded: int) -> None:
        if topic not in self.connections:
            self.connections[topic] = self.writer.add_connection(topic, name, typestore=self.store)
        serialize: Callable = self.store.serialize_ros1 if self.ros1 else self.store.serialize_cdr
        self.writer.write(self.connections[topic], recorded, serialize(message, name))

    def header(self, stamp: int, frame: str) -> Any:
        time = self.make("builtin_interfaces/msg/Time", sec=stamp // 10**9, nanosec=stamp % 10**9)
        extra = {"seq": 0} if self.ros1 else {}
        return self.make("std_msgs/msg/Header", stamp=time, frame_id=frame, **extra)

    def image(self, topic: str, stamp: int, frame: str, encoding: str, pixels: np.ndarray, **other: Any) -> None:
        """Recorded 50 ms after it was taken, as images are."""
        data = np.frombuffer(np.ascontiguousarray(pixels).tobytes(), np.uint8)
        fields = {"height": pixels.shape[0], "width": pixels.shape[1], "is_bigendian": 0, "data": data}
        fields |= {"step": pixels[0].nbytes, **other}
        message = self.make("sensor_msgs/msg/Image", header=self.header(stamp, frame), encoding=encoding, **fields)
        self.add(topic, "sensor_msgs/msg/Image", message, stamp + 50_000_000)

    def compressed(self, topic: str, stamp: int, frame: str, kind: str, data: bytes) -> None:
        name, packed = "sensor_msgs/msg/CompressedImage", np.frombuffer(data, np.uint8)
        message = self.make(name, header=self.header(stamp, frame), format=kind, data=packed)
        self.add(topic, name, message, stamp + 50_000_000)

    def info(self, topic: str, stamp: int, frame: str, matrix: np.ndarray, size: tuple[int, int], **other: Any) -> None:
        """`d`, `p` and `model` are 0, the matrix itself and plumb_bob unless given."""
        name = "sensor_msgs/msg/CameraInfo"
        region = {"x_offset": 0, "y_offset": 0, "width": 0, "height": 0, "do_rectify": False} | other.get("roi", {})
        projection = np.hstack([other.get("p", matrix), np.zeros((3, 1))])
        numbers = {"d": np.array(other.get("d", [0.0] * 5)), "k": matrix.ravel(), "p": projection.ravel()}
        numbers["r"] = np.eye(3).ravel()
        message = self.make(
            name,
            header=self.header(stamp, frame),
            width=size[0],
            height=size[1],
            distortion_model=other.get("model", "plumb_bob"),
            binning_x=other.get("binning", 0),
            binning_y=other.get("binning", 0),
            roi=self.make("sensor_msgs/msg/RegionOfInterest", **region),
            **{key.upper() if self.ros1 else key: value for key, value in numbers.items()},
        )
        self.add(topic, name, message, stamp)

    def vector(self, name: str, values: np.ndarray) -> Any:
        return self.make(f"geometry_msgs/msg/{name}", *map(float, values))

    def transform(self, stamp: int, parent: str, child: str, parent_from_child: np.ndarray) -> Any:
        turn = Rotation.from_matrix(parent_from_child[:3, :3]).as_quat()
        move = self.vector("Vector3", parent_from_child[:3, 3])
        inner = self.make("geometry_msgs/msg/Transform", translation=move, rotation=self.vector("Quaternion", turn))
        header = self.header(stamp, parent)
        return self.make("geometry_msgs/msg/TransformStamped", header=header, child_frame_id=child, transform=inner)

    def tf(self, topic: str, stamp: int, *edges: tuple[str, str, np.ndarray]) -> None:
        name = "tf2_msgs/msg/TFMessage"
        message = self.make(name, transforms=[self.transform(stamp, *edge) for edge in edges])
        self.add(topic, name, message, stamp)

    def pose(self, matrix: np.ndarray) -> Any:
        turn = self.vector("Quaternion", Rotation.from_matrix(matrix[:3, :3]).as_quat())
        return self.make("geometry_msgs/msg/Pose", position=self.vector("Point", matrix[:3, 3]), orientation=turn)

    def posed(self, topic: str, stamp: int, kind: str, matrix: np.ndarray, child: str = "") -> None:
        """One of the four kinds of messages that hold a pose."""
        name, header = kind, self.header(stamp, "map")
        covariant = self.make("geometry_msgs/msg/PoseWithCovariance", pose=self.pose(matrix), covariance=np.zeros(36))
        if kind == "nav_msgs/msg/Odometry":
            zero = self.vector("Vector3", np.zeros(3))
            twist = self.make("geometry_msgs/msg/Twist", linear=zero, angular=zero)
            twist = self.make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=np.zeros(36))
            message = self.make(name, header=header, child_frame_id=child, pose=covariant, twist=twist)
        elif kind == "geometry_msgs/msg/TransformStamped":
            message = self.transform(stamp, "map", child, matrix)
        else:
            with_covariance = kind.endswith("CovarianceStamped")
            message = self.make(name, header=header, pose=covariant if with_covariance else self.pose(matrix))
        self.add(topic, name, message, stamp)


MATRIX = np.array([[room.FX, 0, room.CX - 0.5], [0, room.FY, room.CY - 0.5], [0, 0, 1]])
SIZE = (room.WIDTH, room.HEIGHT)

# How the parts of a robot are placed: a body that looks along x, and a camera on it whose optical axis is z.
BODY_FROM_LINK = np.eye(4)
BODY_FROM_LINK[:3, 3] = 0.1, -0.02, 0.4
LINK_FROM_OPTICAL = np.eye(4)
LINK_FROM_OPTICAL[:3, :3] = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
BODY_FROM_OPTICAL = BODY_FROM_LINK @ LINK_FROM_OPTICAL


def stamp_of(k: int) -> int:
    return START + k * 100_000_000 + 123_456_789


def colour(bag: BagFile, shots: list[room.Shot], first: int = 0, **info: Any) -> None:
    for k, shot in enumerate(shots, first):
        bag.image("/camera/color/image_raw", stamp_of(k), OPTICAL, "rgb8", shot.image)
        bag.info("/camera/color/camera_info", stamp_of(k), OPTICAL, MATRIX, SIZE, **info)


def depth(bag: BagFile, shots: list[room.Shot], first: int = 0) -> None:
    """Registered to colour, ten milliseconds later."""
    topic = "/camera/aligned_depth_to_color/image_raw"
    for k, shot in enumerate(shots, first):
        millimetres = np.rint(shot.depth * 1000).astype(np.uint16)
        bag.image(topic, stamp_of(k) + 10_000_000, OPTICAL, "16UC1", millimetres)


def tree(bag: BagFile, shots: list[room.Shot], first: int = 0) -> None:
    """map → odom → base_link → camera_link → the optical frame; the body's pose 20 ms before and after each image."""
    bag.tf("/tf_static", START, ("base_link", "camera_link", BODY_FROM_LINK))
    bag.tf("/tf_static", START, ("camera_link", OPTICAL, LINK_FROM_OPTICAL))
    map_from_odom = room.look((0.3, 0.2, 0.1), (1.0, 2.0, 0.5))
    turn, move = np.array([0.01, -0.02, 0.03]), np.array([0.01, 0.02, -0.01])
    for k, shot in enumerate(shots, first):
        odom_from_body = np.linalg.inv(map_from_odom) @ shot.world_from_camera @ np.linalg.inv(BODY_FROM_OPTICAL)
        for sign in (-1, 1):
            moved = odom_from_body.copy()
            moved[:3, :3] = odom_from_body[:3, :3] @ Rotation.from_rotvec(sign * turn).as_matrix()
            moved[:3, 3] += sign * move
            edges = ("map", "odom", map_from_odom), ("odom", "base_link", moved)
            bag.tf("/tf", stamp_of(k) + sign * 20_000_000, *edges)


def walk(folder: Path, kind: str, shots: list[room.Shot]) -> Path:
    """The bag that most robots record."""
    with BagFile(folder, kind) as bag:
        colour(bag, shots)
        depth(bag, shots)
        tree(bag, shots)
    return bag.path
