"""The node against a stub of the few names of ROS that it uses; its messages have every field that ROS gives them."""

import ast
import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import ClassVar
from xml.etree import ElementTree

import numpy as np
import pytest
import tomllib

from locus.errors import LocusError
from tests.pages import ROOT
from tests.ros.conftest import PACKAGE
from tests.ros.ros_messages import camera_info, image, message_class, written
from tests.ros.test_core import K
from tests.scenes import room


class StubNode:
    """What `rclpy.node.Node` does, as far as the node asks for it."""

    parameters: ClassVar[dict] = {}

    def __init__(self, name):
        self.name, self.declared, self.published, self.subscribed, self.said = name, {}, [], {}, []

    def declare_parameter(self, name, value):
        self.declared[name] = self.parameters.get(name, value)

    def get_parameter(self, name):
        return SimpleNamespace(value=self.declared[name])

    def create_publisher(self, kind, topic, qos):
        return SimpleNamespace(publish=lambda message: self.published.append((topic, message)))

    def create_subscription(self, kind, topic, callback, qos):
        self.subscribed[topic] = callback

    def get_logger(self):
        def say(sentence, throttle_duration_sec):
            self.said.append(sentence)

        return SimpleNamespace(info=say, warning=say)


class StubBroadcaster:
    def __init__(self, node):
        self.node = node

    def sendTransform(self, message):  # noqa: N802  as tf2_ros calls it
        self.node.published.append(("tf", message))


MESSAGES = {
    "geometry_msgs": ("Point", "PoseWithCovarianceStamped", "TransformStamped"),
    "sensor_msgs": ("CameraInfo", "Image"),
    "std_msgs": ("ColorRGBA",),
    "visualization_msgs": ("Marker",),
}


@pytest.fixture
def ros(monkeypatch):
    """Modules by the names of ROS."""

    def module(name, **content):
        made = ModuleType(name)
        vars(made).update(content)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    calls = []
    module("rclpy", init=lambda: calls.append("init"), spin=calls.append, try_shutdown=lambda: calls.append("shutdown"))
    module("rclpy.node", Node=StubNode)
    profile = SimpleNamespace(reliability="best effort")
    durability = SimpleNamespace(TRANSIENT_LOCAL="latched")
    module("rclpy.qos", DurabilityPolicy=durability, QoSProfile=SimpleNamespace, qos_profile_sensor_data=profile)
    module("tf2_ros", TransformBroadcaster=StubBroadcaster)
    for package, names in MESSAGES.items():
        module(f"{package}.msg", **{name: message_class(f"{package}/msg/{name}") for name in names})
        module(package)
    monkeypatch.delitem(sys.modules, "locus_ros.node", raising=False)
    return calls


@pytest.fixture
def node_module(ros, monkeypatch, world, model, tmp_path):
    import locus_ros.node as made

    world.save(tmp_path / "map")
    monkeypatch.setattr(made, "load", lambda name: model)
    monkeypatch.setattr(made, "this_device", lambda: "cpu")
    monkeypatch.setattr(StubNode, "parameters", {"map": str(tmp_path / "map")})
    return made


def test_images_become_poses_and_transforms(node_module, walk):
    node = node_module.Localizer()
    assert set(node.subscribed) == {"camera_info", "image"}
    node.subscribed["camera_info"](written(camera_info(room.WIDTH, room.HEIGHT, K, [])))
    node.subscribed["image"](written(image(1_500_000_007, walk[0].image, "rgb8")))
    sent = dict(node.published[1:])
    pose, transform = written(sent["pose"]), written(sent["tf"])
    for message in (pose, transform):
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == (1, 500_000_007)
        assert message.header.frame_id == "map"
    assert transform.child_frame_id == "locus_camera"
    at, moved = pose.pose.pose.position, transform.transform.translation
    expected = node.tracker.world.localize(node.tracker.model, walk[0].image, node.tracker._optics[0])
    assert np.array_equal([at.x, at.y, at.z], expected.world_from_camera[:3, 3])
    assert np.array_equal([moved.x, moved.y, moved.z], [at.x, at.y, at.z])
    turned = pose.pose.pose.orientation
    assert np.linalg.norm([turned.x, turned.y, turned.z, turned.w]) == pytest.approx(1)
    covariance = pose.pose.covariance.reshape(6, 6)
    assert np.allclose(covariance, covariance.T)
    assert np.trace(covariance[:3, :3]) == pytest.approx(np.trace(expected.covariance[3:, 3:]))


def test_with_depth_the_pose_comes_with_the_second_of_the_two(node_module, walk, monkeypatch):
    monkeypatch.setattr(StubNode, "parameters", StubNode.parameters | {"use_depth": True, "map_frame": "world"})
    node = node_module.Localizer()
    node.subscribed["camera_info"](written(camera_info(room.WIDTH, room.HEIGHT, K, [])))
    node.subscribed["image"](written(image(5, walk[0].image, "rgb8")))
    assert [topic for topic, _ in node.published] == ["landmarks"]
    node.subscribed["depth"](written(image(9, walk[0].depth.astype(np.float32), "32FC1")))
    assert [topic for topic, _ in node.published] == ["landmarks", "pose", "tf"]
    assert {message.header.frame_id for _, message in node.published} == {"world"}


def test_the_landmarks_are_drawn_once(node_module, world):
    node = node_module.Localizer()
    ((topic, marker),) = node.published
    read = written(marker)
    assert topic == "landmarks"
    assert read.type == node_module.Marker.SPHERE_LIST == 7
    assert len(read.points) == len(read.colors) == len(world)
    assert read.pose.orientation.w == 1
    assert read.scale.x == pytest.approx(world.radii[0])


def test_what_cannot_be_used_is_said_and_the_node_goes_on(node_module, walk):
    node = node_module.Localizer()
    node.subscribed["image"](image(1, walk[0].image, "rgb8"))
    node.subscribed["camera_info"](camera_info(80, 60, [0.0] * 9, []))
    node.subscribed["image"](image(1, walk[0].image, "yuv422"))
    assert "no camera_info has come yet" in node.said[0]
    assert "not calibrated" in node.said[1]
    assert "encoded as yuv422" in node.said[2]
    assert len(node.published) == 1


def test_a_map_must_be_named(node_module, monkeypatch):
    monkeypatch.setattr(StubNode, "parameters", {})
    with pytest.raises(LocusError, match="name a map"):
        node_module.Localizer()


def test_the_program_spins_and_shuts_down(node_module, ros):
    node_module.main()
    assert (ros[0], ros[-1], type(ros[1]).__name__) == ("init", "shutdown", "Localizer")


def test_the_package_is_whole(ros, monkeypatch):
    """What ament reads: the marker, the dependencies of every import, the program, the launch file's names."""
    told = ElementTree.parse(PACKAGE / "package.xml").getroot()
    name = told.findtext("name")
    assert (PACKAGE / "resource" / name).is_file()
    assert told.findtext("export/build_type") == "ament_python"
    needed = {each.text for each in told.findall("exec_depend")}
    for file in [*(PACKAGE / name).glob("*.py"), *(PACKAGE / "launch").glob("*.py")]:
        for statement in ast.walk(ast.parse(file.read_text())):
            if isinstance(statement, ast.ImportFrom) and statement.module:
                package = statement.module.split(".")[0]
                assert package in needed | {name, "locus", "typing", "dataclasses", "scipy", "numpy", "jaxtyping"}, (
                    f"{file.name}: {package}"
                )
    given = {}
    monkeypatch.chdir(PACKAGE)
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=given.update))
    runpy.run_path(str(PACKAGE / "setup.py"))
    assert (given["name"], given["version"]) == (name, told.findtext("version"))
    for _, files in given["data_files"]:
        assert all((PACKAGE / file).is_file() for file in files)
    module, function = given["entry_points"]["console_scripts"][0].split(" = ")[1].split(":")
    assert callable(getattr(__import__(module, fromlist=[function]), function))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    assert project in given["install_requires"]


def test_the_launch_file_names_the_nodes_topics_and_parameters(ros, monkeypatch, node_module):
    made = {}
    names = {
        "launch": {"LaunchDescription": list},
        "launch.actions": {"DeclareLaunchArgument": lambda name, default_value: (name, default_value)},
        "launch.substitutions": {"LaunchConfiguration": lambda name: f"${name}"},
        "launch_ros": {},
        "launch_ros.actions": {"Node": lambda **options: made.update(options)},
    }
    for name, content in names.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    run = runpy.run_path(str(PACKAGE / "launch" / "localizer.launch.py"))
    description = run["generate_launch_description"]()
    declared = dict(each for each in description if each is not None)
    assert (made["package"], made["executable"]) == ("locus_ros", "localizer")
    assert set(made["parameters"][0]) <= set(node_module.PARAMETERS)
    assert {topic for topic, _ in made["remappings"]} == {"image", "camera_info", "depth"}
    assert set(declared) == set(made["parameters"][0]) | {"image", "camera_info", "depth"}
