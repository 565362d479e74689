"""The node: messages in, `Tracker` in the middle, messages out. It was run against a stub of ROS, not on a robot."""

import rclpy
from geometry_msgs.msg import Point, PoseWithCovarianceStamped, TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import ColorRGBA
from tf2_ros import TransformBroadcaster
from visualization_msgs.msg import Marker

from locus.errors import LocusError
from locus.landmarks import LandmarkMap
from locus.model import load, this_device
from locus_ros.core import LandmarkMarkers, StampedPose, Tracker
from locus_ros.messages import camera_and_lens, colour_image, depth_image, stamp

PARAMETERS = {
    "map": "",
    "model": "locus-small",
    "environment": "",
    "use_depth": False,
    "map_frame": "map",
    "camera_frame": "locus_camera",  # its own: a frame of tf has one parent, and the camera's may have one already
}


class Localizer(Node):
    """Subscribes `image`, `camera_info` and, with `use_depth`, `depth`; publishes `pose`, tf and `landmarks`."""

    def __init__(self) -> None:
        super().__init__("locus")
        for name, value in PARAMETERS.items():
            self.declare_parameter(name, value)
        told = {name: self.get_parameter(name).value for name in PARAMETERS}
        self.map_frame, self.camera_frame = told["map_frame"], told["camera_frame"]
        if not told["map"]:
            raise LocusError("name a map: map:=FOLDER, as `locus map` writes it")
        world, model = LandmarkMap.load(told["map"]), load(told["model"]).to(this_device())
        self.tracker = Tracker(world, model, told["environment"] or None, told["use_depth"])
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.poses = self.create_publisher(PoseWithCovarianceStamped, "pose", 10)
        self.transforms = TransformBroadcaster(self)
        self.markers = self.create_publisher(Marker, "landmarks", latched)
        self.markers.publish(self.marker(LandmarkMarkers.of(self.tracker.world)))
        self.create_subscription(CameraInfo, "camera_info", self.on_camera_info, qos_profile_sensor_data)
        # One message is kept: while an image is localized, those that come are skipped but for the last.
        newest = QoSProfile(depth=1, reliability=qos_profile_sensor_data.reliability)
        self.create_subscription(Image, "image", self.on_image, newest)
        if told["use_depth"]:
            self.create_subscription(Image, "depth", self.on_depth, newest)

    def on_camera_info(self, message: CameraInfo) -> None:
        try:
            self.tracker.camera(*camera_and_lens(message))
        except LocusError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=10.0)

    def on_image(self, message: Image) -> None:
        try:
            self.publish(self.tracker.image(stamp(message), colour_image(message)))
        except LocusError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=10.0)

    def on_depth(self, message: Image) -> None:
        try:
            self.publish(self.tracker.depth(stamp(message), depth_image(message)))
        except LocusError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=10.0)

    def publish(self, found: StampedPose | None) -> None:
        """The pose, and the same as a transform; or, now and then, why there is none."""
        if found is None:
            if self.tracker.reason:
                self.get_logger().info(self.tracker.reason, throttle_duration_sec=5.0)
            return
        message, transform = PoseWithCovarianceStamped(), TransformStamped()
        for header in (message.header, transform.header):
            header.stamp.sec, header.stamp.nanosec = divmod(found.stamp, 10**9)
            header.frame_id = self.map_frame
        transform.child_frame_id = self.camera_frame
        moved, turned = transform.transform.translation, transform.transform.rotation
        pose = message.pose.pose
        for name, value in zip("xyz", found.position.tolist(), strict=True):
            setattr(pose.position, name, value)
            setattr(moved, name, value)
        for name, value in zip("xyzw", found.quaternion.tolist(), strict=True):
            setattr(pose.orientation, name, value)
            setattr(turned, name, value)
        message.pose.covariance = found.covariance.ravel().tolist()
        self.poses.publish(message)
        self.transforms.sendTransform(transform)

    def marker(self, drawn: LandmarkMarkers) -> Marker:
        """All landmarks as one marker."""
        marker = Marker()
        marker.header.frame_id = self.map_frame
        marker.ns, marker.type, marker.action = "locus", Marker.SPHERE_LIST, Marker.ADD
        marker.pose.orientation.w = 1.0
        marker.scale.x = marker.scale.y = marker.scale.z = drawn.diameter
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in drawn.positions.tolist()]
        marker.colors = [ColorRGBA(r=r, g=g, b=b, a=0.8) for r, g, b in drawn.colours.tolist()]
        return marker


def main() -> None:
    rclpy.init()
    try:
        node = Localizer()
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        rclpy.try_shutdown()
