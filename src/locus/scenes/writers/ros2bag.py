"""Writing a ROS 2 bag (SQLite), which also RTAB-Map, RViz and Foxglove open: `ros2 bag play FOLDER`.

Topics are named as RealSense's driver names them, with depth registered to colour, in metres. Poses are in tf, from
`map` to `camera_link`, and the camera looks along that frame's x. Frames are stamped with the times that name them;
where their names are no times, a tenth of a second apart. Labels have no place in it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Num
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.errors import SceneError
from locus.files import atomic_folder
from locus.geometry import Camera
from locus.progress import track
from locus.scenes.formats.rosbag_storage import check_installed
from locus.scenes.scene import Frame, Scene
from locus.scenes.writers.frame_files import write_readable

COLOUR, DEPTH, OPTICAL = "/camera/color", "/camera/aligned_depth_to_color", "camera_color_optical_frame"
APART = 10**8  # nanoseconds between frames whose names are no times

# ROS' bodies look along x with z up; cameras along z with y down.
LINK_FROM_OPTICAL = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 1]])


def write(scene: Scene, path: Path, progress: bool = False) -> Path:
    check_installed()
    from rosbags.rosbag2 import Writer

    stamps = _stamps([source.name for source in scene.sources])
    with atomic_folder(path) as partial:
        inner = partial / path.name  # rosbags makes its folder itself and calls the file in it the same
        with Writer(inner, version=8) as writer:
            messages = Messages(writer)
            messages.place(min(stamps.values(), default=0), "/tf_static", "camera_link", OPTICAL, LINK_FROM_OPTICAL)
            cameras: list[Camera] = []

            def write_frame(frame: Frame) -> None:
                image, depth, pose = frame.image, frame.depth if frame.has_depth else None, frame.world_from_camera
                cameras.append(frame.camera)
                if frame.camera != cameras[0]:
                    raise SceneError(
                        f"frame {frame.name} has another camera than the first, and a topic of images has only one; "
                        "use --to nerfstudio or --to colmap"
                    )
                stamp = stamps[frame.name]
                messages.image(stamp, COLOUR, "rgb8", image)
                messages.camera(stamp, COLOUR, frame.camera)
                if depth is not None:
                    messages.image(stamp, DEPTH, "32FC1", np.where(depth > 0, depth, np.float32(np.nan)))
                    messages.camera(stamp, DEPTH, frame.camera)
                messages.place(stamp, "/tf", "map", "camera_link", pose @ LINK_FROM_OPTICAL.T)

            write_readable(track(scene, "writing frames", len(scene), progress), write_frame, path)
        for file in inner.iterdir():
            file.rename(partial / file.name)
        inner.rmdir()
    return path


def _stamps(names: Sequence[str]) -> dict[str, int]:
    """Nanoseconds, from names such as 1700000000.033333."""
    parts = [name.split(".") for name in names]
    times = all(len(part) == 2 and part[0].isdecimal() and part[1].isdecimal() for part in parts)
    stamps = [int(part[0]) * 10**9 + int(part[1][:9].ljust(9, "0")) if times else 0 for part in parts]
    if min(stamps, default=0) <= 0 or max(stamps) >= 2**31 * 10**9 or len(set(stamps)) < len(stamps):
        stamps = [(number + 1) * APART for number in range(len(names))]
    return dict(zip(names, stamps, strict=True))


class Messages:
    """Messages as ROS defines them, written to a bag."""

    def __init__(self, writer: Any) -> None:
        from rosbags.typesys import Stores, get_typestore

        self.writer = writer
        self.store = get_typestore(Stores.ROS2_HUMBLE)
        self.connections: dict[str, Any] = {}

    def image(self, stamp: int, namespace: str, encoding: str, pixels: Num[ndarray, "h w *c"]) -> None:
        height, width = pixels.shape[:2]
        data = np.ascontiguousarray(pixels).view(np.uint8).ravel()
        header = self._header(stamp, OPTICAL)
        message = self._make("sensor_msgs/Image", header, height, width, encoding, 0, len(data) // height, data)
        self._write(stamp, f"{namespace}/image_raw", message)

    def camera(self, stamp: int, namespace: str, camera: Camera) -> None:
        matrix = camera.matrix
        matrix[:2, 2] -= 0.5  # the centre of the first pixel is at 0 there
        projection = np.hstack([matrix, np.zeros((3, 1))])
        numbers = (np.zeros(5), matrix.ravel(), np.eye(3).ravel(), projection.ravel())
        region = self._make("sensor_msgs/RegionOfInterest", 0, 0, 0, 0, False)
        size, header = (camera.height, camera.width), self._header(stamp, OPTICAL)
        message = self._make("sensor_msgs/CameraInfo", header, *size, "plumb_bob", *numbers, 0, 0, region)
        self._write(stamp, f"{namespace}/camera_info", message)

    def place(self, stamp: int, topic: str, parent: str, child: str, parent_from_child: Float[ndarray, "4 4"]) -> None:
        move = self._make("geometry_msgs/Vector3", *parent_from_child[:3, 3].tolist())
        quaternion = Rotation.from_matrix(parent_from_child[:3, :3]).as_quat().tolist()
        inner = self._make("geometry_msgs/Transform", move, self._make("geometry_msgs/Quaternion", *quaternion))
        edge = self._make("geometry_msgs/TransformStamped", self._header(stamp, parent), child, inner)
        self._write(stamp, topic, self._make("tf2_msgs/TFMessage", [edge]))

    def _header(self, stamp: int, frame: str) -> Any:
        time = self._make("builtin_interfaces/Time", stamp // 10**9, stamp % 10**9)
        return self._make("std_msgs/Header", time, frame)

    def _make(self, name: str, *values: Any) -> Any:
        return self.store.types[name.replace("/", "/msg/")](*values)

    def _write(self, stamp: int, topic: str, message: Any) -> None:
        name = message.__msgtype__
        if topic not in self.connections:
            qos = [_latched()] if topic == "/tf_static" else []
            self.connections[topic] = self.writer.add_connection(
                topic, name, typestore=self.store, offered_qos_profiles=qos
            )
        self.writer.write(self.connections[topic], stamp, self.store.serialize_cdr(message, name))


def _latched() -> Any:
    """How tf_static is offered: whoever listens later gets it too."""
    from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

    never = QosTime(0, 0)
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=1,
        reliability=QosReliability.RELIABLE,
        durability=QosDurability.TRANSIENT_LOCAL,
        deadline=never,
        lifespan=never,
        liveliness=QosLiveliness.SYSTEM_DEFAULT,
        liveliness_lease_duration=never,
        avoid_ros_namespace_conventions=False,
    )
