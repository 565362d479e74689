"""The core of the node: covariances against sampling, images and depth that belong together, a bag replayed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from locus_ros import messages
from locus_ros.core import TOGETHER, LandmarkMarkers, Tracker, ros_covariance
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Writer
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from locus.errors import LocusError
from locus.geometry import pose_error
from locus.landmarks import merge
from locus.landmarks.map import LandmarkMap
from locus.scenes.lens import Lens
from tests.landmarks import places
from tests.ros.ros_messages import STORE, as_rosbags, camera_info, image, written
from tests.scenes import room

# As ROS counts pixels, from the centre of the first.
K = [room.FX, 0.0, room.CX - 0.5, 0.0, room.FY, room.CY - 0.5, 0.0, 0.0, 1.0]
SECOND = 10**9


def random_pose(random):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.random(random_state=random).as_matrix(), random.uniform(-5, 5, 3)
    return pose


def random_covariance(random, size=1e-4):
    root = random.normal(size=(6, 6))
    return size * root @ root.T


def matrix_of(xi):
    """The generator of a motion whose rotation comes first."""
    generator = np.zeros((4, 4))
    (a, b, c), generator[:3, 3] = xi[:3], xi[3:]
    generator[:3, :3] = [[0, -c, b], [c, 0, -a], [-b, a, 0]]
    return generator


@pytest.mark.parametrize("seed", range(3))
def test_covariances_are_those_of_sampled_poses_in_the_order_of_ros(seed):
    """Poses drawn as `locus.tasks.uncertainty` defines them; measured as ROS defines it, by SciPy alone."""
    random = np.random.default_rng(seed)
    pose, covariance = random_pose(random), random_covariance(random)
    drawn = random.multivariate_normal(np.zeros(6), covariance, 20_000)
    poses = np.stack([pose @ expm(matrix_of(xi)) for xi in drawn])
    moved = poses[:, :3, 3] - pose[:3, 3]
    # R' = Rz(γ) Ry(β) Rx(α) R: turned about the fixed axes x, y and z, one after the other.
    turned = Rotation.from_matrix(poses[:, :3, :3] @ pose[:3, :3].T).as_euler("xyz")
    sampled = np.cov(np.concatenate([moved, turned], axis=1).T)
    found = ros_covariance(pose, covariance)
    deviations = np.sqrt(np.outer(np.diag(found), np.diag(found)))
    assert np.abs((sampled - found) / deviations).max() < 0.05


@given(seed=st.integers(0, 10**6))
def test_what_is_along_the_camera_is_along_the_world_seen_from_it(seed):
    random = np.random.default_rng(seed)
    pose, covariance = random_pose(random), random_covariance(random)
    found = ros_covariance(pose, covariance)
    rotation = pose[:3, :3]
    assert np.allclose(rotation.T @ found[:3, :3] @ rotation, covariance[3:, 3:])
    assert np.allclose(rotation.T @ found[3:, 3:] @ rotation, covariance[:3, :3])
    assert np.allclose(rotation.T @ found[:3, 3:] @ rotation, covariance[3:, :3])
    assert np.allclose(ros_covariance(np.eye(4), covariance), np.roll(covariance, 3, axis=(0, 1)))


def write_bag(folder, shots, late):
    """A ROS 2 bag of colour, camera and depth, which comes before or after its image."""
    with Writer(folder, version=9) as bag:
        kinds = {"image": "Image", "depth": "Image", "camera_info": "CameraInfo"}
        topics = {
            topic: bag.add_connection(f"/camera/{topic}", f"sensor_msgs/msg/{kind}", typestore=STORE)
            for topic, kind in kinds.items()
        }
        for number, shot in enumerate(shots):
            at = (number + 1) * SECOND + 123
            depth = (shot.depth * 1000).round().astype(np.uint16)
            sent = {
                "camera_info": (at, camera_info(room.WIDTH, room.HEIGHT, K, [0.0] * 5)),
                "image": (at + 1000, image(at, shot.image[..., ::-1], "bgr8", padding=3)),
                "depth": (at + (5000 if late else 500), image(at + 3_000_000, depth, "16UC1")),
            }
            for topic, (recorded, message) in sent.items():
                kind = f"sensor_msgs/msg/{kinds[topic]}"
                bag.write(topics[topic], recorded, STORE.serialize_cdr(as_rosbags(message), kind))


def replay(folder, tracker):
    """What the node would do with the bag's messages, in the order in which they were recorded."""
    found = []
    with AnyReader([folder], default_typestore=STORE) as bag:
        for connection, _, raw in bag.messages():
            message = bag.deserialize(raw, connection.msgtype)
            if connection.topic.endswith("camera_info"):
                tracker.camera(*messages.camera_and_lens(message))
            elif connection.topic.endswith("depth"):
                found.append(tracker.depth(messages.stamp(message), messages.depth_image(message)))
            else:
                found.append(tracker.image(messages.stamp(message), messages.colour_image(message)))
    return [each for each in found if each is not None]


@pytest.mark.parametrize("late", [False, True], ids=["depth first", "depth last"])
@pytest.mark.parametrize("use_depth", [False, True], ids=["RGB", "RGB-D"])
def test_a_bag_replayed_gives_the_robots_way(tmp_path, world, model, walk, late, use_depth):
    write_bag(tmp_path / "bag", walk, late)
    found = replay(tmp_path / "bag", Tracker(world, model, use_depth=use_depth))
    assert [each.stamp for each in found] == [(number + 1) * SECOND + 123 for number in range(len(walk))]
    for each, shot in zip(found, walk, strict=True):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = Rotation.from_quat(each.quaternion).as_matrix(), each.position
        metres, degrees = pose_error(pose, shot.world_from_camera)
        assert metres < 0.15
        assert degrees < 4
        off = each.position - shot.world_from_camera[:3, 3]
        assert off @ np.linalg.inv(each.covariance[:3, :3]) @ off < 40  # of a chi-square of three
        expected = world.localize(
            model,
            shot.image,
            places.CAMERA,
            (shot.depth * 1000).round().astype(np.float32) / np.float32(1000) if use_depth else None,
        )
        assert np.array_equal(each.position, expected.world_from_camera[:3, 3])
        assert each.probability == expected.probability


def test_an_image_of_elsewhere_has_no_pose_and_a_reason(world, model):
    tracker = Tracker(world, model)
    elsewhere = np.random.default_rng(0).integers(0, 256, (room.HEIGHT, room.WIDTH, 3), dtype=np.uint8)
    assert tracker.image(1, elsewhere) is None
    assert "no camera_info has come yet" in tracker.reason
    tracker.camera(places.CAMERA, Lens())
    assert tracker.image(1, elsewhere) is None
    assert tracker.reason.startswith("not here")


def test_images_wait_for_their_own_depth(world, model, walk):
    tracker = Tracker(world, model, use_depth=True)
    tracker.camera(places.CAMERA, Lens())
    depth = walk[0].depth.astype(np.float32)
    assert tracker.depth(0, depth) is None
    assert tracker.image(TOGETHER + 1, walk[0].image) is None  # the depth is too old
    assert tracker.image(2 * SECOND, walk[0].image) is None
    assert tracker.left_out == 1
    assert tracker.depth(2 * SECOND + TOGETHER, depth).stamp == 2 * SECOND
    assert tracker.depth(2 * SECOND + 2, depth) is None  # answered already


def test_a_lens_is_straightened_and_sizes_must_fit(world, model, walk):
    tracker = Tracker(world, model, use_depth=True)
    tracker.camera(places.CAMERA, Lens(k1=0.1))
    asked = []
    real = model.features
    model.features = lambda image: asked.append(image) or real(image)
    try:
        tracker.image(1, walk[0].image)
        tracker.depth(1, walk[0].depth.astype(np.float32))
    finally:
        model.features = real
    assert np.array_equal(asked[0], Lens(k1=0.1).straighten(walk[0].image, places.CAMERA))
    tracker.image(2, walk[0].image)
    assert tracker.depth(2, np.ones((10, 10), np.float32)) is None
    assert "the depth is 10×10" in tracker.reason
    tracker.image(3, walk[0].image[:20])
    tracker.depth(3, np.ones((10, 10), np.float32))
    assert "another aspect ratio" in tracker.reason


def test_a_robot_is_in_one_environment(world, model):
    hall = LandmarkMap.build(model, places.seen(places.scene(room.shots(8), "hall"), world=1))
    both = merge([world, hall])
    with pytest.raises(LocusError, match="name the environment"):
        Tracker(both, model)
    assert Tracker(both, model, "hall").world.environments == ("hall",)


def test_markers_are_the_finest_landmarks(world):
    drawn = LandmarkMarkers.of(world)
    assert np.allclose(drawn.positions, world.landmarks.position)
    assert 0 <= drawn.colours.min() <= drawn.colours.max() <= 1
    assert drawn.diameter == world.radii[0]


@pytest.mark.parametrize("padding", [0, 5])
def test_images_of_every_encoding_are_rgb(padding):
    rgb = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    opaque = np.full((6, 9, 1), 255, np.uint8)
    stored = {
        "rgb8": rgb,
        "bgr8": rgb[..., ::-1],
        "rgba8": np.concatenate([rgb, opaque], axis=-1),
        "bgra8": np.concatenate([rgb[..., ::-1], opaque], axis=-1),
    }
    for encoding, pixels in stored.items():
        assert np.array_equal(messages.colour_image(written(image(7, pixels, encoding, padding))), rgb)
    grey = messages.colour_image(written(image(7, rgb[..., 0], "mono8", padding)))
    assert np.array_equal(grey, np.repeat(rgb[..., :1], 3, axis=-1))


def test_depth_is_in_metres_and_unknown_is_zero():
    millimetres = np.array([[0, 1500], [65535, 250]], np.uint16)
    assert np.allclose(messages.depth_image(written(image(1, millimetres, "16UC1"))), [[0, 1.5], [65.535, 0.25]])
    metres = np.array([[np.nan, 1.5], [np.inf, -2.0]], np.float32)
    assert np.array_equal(messages.depth_image(written(image(1, metres, "32FC1"))), [[0, 1.5], [0, 0]])
    swapped = image(1, millimetres.byteswap(), "16UC1")
    swapped.is_bigendian = 1
    assert np.allclose(messages.depth_image(written(swapped)), [[0, 1.5], [65.535, 0.25]])


def test_cameras_are_carried_to_pixel_centres_of_a_half():
    camera, lens = messages.camera_and_lens(written(camera_info(80, 60, K, [0.1, 0.2, 0.3, 0.4, 0.5])))
    assert camera == places.CAMERA
    assert lens == Lens(0.1, 0.2, 0.3, 0.4, 0.5)
    fisheye = messages.camera_and_lens(written(camera_info(80, 60, K, [1, 2, 3, 4], "equidistant")))[1]
    assert fisheye == Lens(1, 2, k3=3, k4=4, fisheye=True)
    wide = messages.camera_and_lens(written(camera_info(80, 60, K, list(range(8)), "rational_polynomial")))[1]
    assert wide == Lens(*map(float, range(8)))


def test_messages_that_cannot_be_used_say_why():
    with pytest.raises(LocusError, match="encoded as yuv422"):
        messages.colour_image(image(1, np.zeros((2, 2, 2), np.uint8), "yuv422"))
    with pytest.raises(LocusError, match="encoded as rgb8; 16UC1"):
        messages.depth_image(image(1, np.zeros((2, 2, 3), np.uint8), "rgb8"))
    short = image(1, np.zeros((2, 2, 3), np.uint8), "rgb8")
    short.data = short.data[:-1]
    with pytest.raises(LocusError, match=", holds 11 bytes"):
        messages.colour_image(short)
    with pytest.raises(LocusError, match="not calibrated"):
        messages.camera_and_lens(camera_info(80, 60, [0.0] * 9, []))
    with pytest.raises(LocusError, match="lens is thin_prism with 5 coefficients"):
        messages.camera_and_lens(camera_info(80, 60, K, [1.0] * 5, "thin_prism"))
