"""Which topics are used, where poses come from, and what cameras say."""

import cv2
import numpy as np
import pytest

import locus
from locus.errors import FrameError, SceneError
from tests.scenes import bags, room
from tests.scenes.test_rosbag import check

COLOUR, ALIGNED = "/camera/color/image_raw", "/camera/aligned_depth_to_color/image_raw"
POSES = ["nav_msgs/msg/Odometry", "geometry_msgs/msg/TransformStamped"]
BARE_POSES = ["geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/PoseWithCovarianceStamped"]


@pytest.fixture(scope="module")
def shots() -> list[room.Shot]:
    return room.shots(4)


def recorded(folder, shots, *more, kind="mcap", tree=True, **info):
    """Colour, registered depth, tf; then whatever else is asked for."""
    with bags.BagFile(folder, kind) as bag:
        bags.colour(bag, shots, **info)
        bags.depth(bag, shots)
        if tree:
            bags.tree(bag, shots)
        for add in more:
            add(bag)
    return bag.path


def second_camera(bag):
    for k, shot in enumerate(room.shots(4)):
        bag.image("/rear/image_raw", bags.stamp_of(k), "rear_optical", "rgb8", shot.image[::-1])


def test_of_two_colour_cameras_one_is_chosen(tmp_path, shots):
    path = recorded(tmp_path, shots, second_camera)
    with pytest.raises(SceneError) as said:
        locus.load_scene(path)
    expected = f"{path} has several topics of colour images; choose one with --topic: {COLOUR}, /rear/image_raw"
    assert str(said.value) == expected
    check(locus.load_scene(path, topics=(COLOUR,)), shots)
    check(locus.load_scene(path, topics=("camera/color/image_raw",)), shots)
    with pytest.raises(SceneError, match="several topics of colour images"):
        locus.load_scene(path, topics=(COLOUR, "/rear/image_raw"))


def test_a_topic_that_is_not_there_or_of_no_use_is_refused_with_those_that_are(tmp_path, shots):
    path = recorded(tmp_path, shots, kind="ros1")
    with pytest.raises(SceneError, match=r"has no topic /front .*it has .*/camera/color/camera_info"):
        locus.load_scene(path, topics=("/front",))
    with pytest.raises(SceneError, match="nothing can be made of /tf_static"):
        locus.load_scene(path, topics=("/tf_static",))


def test_infrared_and_compressed_copies_are_no_second_camera(tmp_path, shots):
    def copies(bag):
        for k, shot in enumerate(shots):
            bag.image("/camera/infra1/image_raw", bags.stamp_of(k), "infra", "mono8", shot.image[..., 0])
            data = cv2.imencode(".png", shot.image)[1].tobytes()  # OpenCV takes it for BGR
            bag.compressed(COLOUR + "/compressed", bags.stamp_of(k), bags.OPTICAL, "rgb8; png compressed", data)

    path = recorded(tmp_path, shots, copies)
    check(locus.load_scene(path), shots)
    swapped = locus.load_scene(path, topics=(COLOUR + "/compressed",))
    np.testing.assert_array_equal(swapped[0].image, shots[0].image[..., ::-1])
    with pytest.raises(SceneError, match="to a moving infra"):
        locus.load_scene(path, topics=("/camera/infra1/image_raw", ALIGNED))


def test_of_several_depths_the_registered_one_is_used(tmp_path, shots):
    def other(bag):
        for k in range(4):
            bag.image("/camera/depth/image", bags.stamp_of(k), "elsewhere", "16UC1", np.ones((3, 4), np.uint16))

    path = recorded(tmp_path, shots, other)
    check(locus.load_scene(path), shots)
    with pytest.raises(SceneError, match="no camera for /camera/depth/image, which is not registered"):
        locus.load_scene(path, topics=("/camera/depth/image",))


@pytest.mark.parametrize("kind", POSES)
@pytest.mark.parametrize("bag_kind", ["ros1", "sqlite3"])
def test_poses_of_a_body_are_carried_to_the_camera(kind, bag_kind, tmp_path, shots):
    def poses(bag):
        bag.tf("/tf_static", bags.START, ("base_link", "camera_link", bags.BODY_FROM_LINK))
        bag.tf("/tf_static", bags.START, ("camera_link", bags.OPTICAL, bags.LINK_FROM_OPTICAL))
        for k, shot in enumerate(shots):
            body = shot.world_from_camera @ np.linalg.inv(bags.BODY_FROM_OPTICAL)
            bag.posed("/odom", bags.stamp_of(k), kind, body, "base_link")

    check(locus.load_scene(recorded(tmp_path, shots, poses, kind=bag_kind, tree=False)), shots)


@pytest.mark.parametrize("kind", BARE_POSES)
def test_poses_that_do_not_say_of_what_are_the_cameras(kind, tmp_path, shots):
    def poses(bag):
        for k, shot in enumerate(shots):
            bag.posed("/pose", bags.stamp_of(k), kind, shot.world_from_camera)

    check(locus.load_scene(recorded(tmp_path, shots, poses, tree=False)), shots)


def test_of_tf_and_a_topic_of_poses_one_is_chosen(tmp_path, shots):
    def poses(bag):
        for k, shot in enumerate(shots):
            moved = shot.world_from_camera.copy()
            moved[2, 3] += 1
            bag.posed("/slam/pose", bags.stamp_of(k), BARE_POSES[0], moved)

    path = recorded(tmp_path, shots, poses)
    with pytest.raises(SceneError, match=r"several topics of poses; choose one with --topic: /slam/pose, /tf$"):
        locus.load_scene(path)
    check(locus.load_scene(path, topics=("/tf",)), shots)
    scene = locus.load_scene(path, topics=("/slam/pose",))
    np.testing.assert_allclose(scene[0].world_from_camera[2, 3], shots[0].world_from_camera[2, 3] + 1, atol=1e-6)


def test_poses_of_a_body_without_its_camera_are_one_sentence(tmp_path, shots):
    path = recorded(
        tmp_path, shots, lambda bag: bag.posed("/odom", bags.START, POSES[0], np.eye(4), "base"), tree=False
    )
    with pytest.raises(
        SceneError, match=rf"in tf_static how the camera's {bags.OPTICAL} is placed to base, whose poses"
    ):
        locus.load_scene(path)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (
            [("a", bags.OPTICAL), ("b", "a"), ("a", "b")],
            "tf goes round in a circle: camera_color_optical_frame → a → b → a",
        ),
        ([(bags.OPTICAL, bags.OPTICAL)], "tf goes round in a circle"),
        ([("a", bags.OPTICAL), ("b", bags.OPTICAL)], "several parents of camera_color_optical_frame: a, b"),
        ([("base_link", bags.OPTICAL)], "does not say where its camera is"),
        ([("map", "elsewhere")], "does not say where its camera is"),
    ],
)
def test_a_tree_that_is_none_is_one_sentence(edges, said, tmp_path, shots):
    def tree(bag):
        for k in range(4):
            moved = np.eye(4)
            moved[0, 3] = k
            bag.tf("/tf", bags.stamp_of(k), *((parent, child, moved) for parent, child in edges))

    with pytest.raises(SceneError, match=said):
        locus.load_scene(recorded(tmp_path, shots, tree, tree=False))


def test_a_camera_that_never_moves_has_no_poses(tmp_path, shots):
    def still(bag):
        for k in range(4):
            bag.tf("/tf", bags.stamp_of(k), ("map", bags.OPTICAL, np.eye(4)))

    with pytest.raises(SceneError, match="does not say where its camera is"):
        locus.load_scene(recorded(tmp_path, shots, still, tree=False))


def test_what_is_fixed_but_published_on_tf_need_not_come_often(tmp_path, shots):
    """As static_transform_publisher of ROS 1 does it."""

    def poses(bag):
        bag.tf("/tf", bags.START, ("camera_link", bags.OPTICAL, bags.LINK_FROM_OPTICAL))
        for k, shot in enumerate(shots):
            world_from_link = shot.world_from_camera @ np.linalg.inv(bags.LINK_FROM_OPTICAL)
            bag.tf("/tf", bags.stamp_of(k), ("/map", "/camera_link", world_from_link))

    check(locus.load_scene(recorded(tmp_path, shots, poses, kind="ros1", tree=False)), shots)


def test_stamps_out_of_order_are_put_in_order_and_frames_without_partners_counted(tmp_path):
    shots = room.shots(6)
    order = [3, 0, 5, 1, 4, 2]
    with bags.BagFile(tmp_path, "mcap") as bag:
        for k in order:
            bag.image(COLOUR, bags.stamp_of(k), bags.OPTICAL, "rgb8", shots[k].image)
        for k in reversed(order[1:]):  # none for the fourth
            millimetres = np.rint(shots[k].depth * 1000).astype(np.uint16)
            bag.image(ALIGNED, bags.stamp_of(k), bags.OPTICAL, "16UC1", millimetres)
        bag.image(COLOUR, 0, bags.OPTICAL, "rgb8", shots[0].image)  # a driver that sets no time
        bag.image(COLOUR, bags.stamp_of(50), bags.OPTICAL, "rgb8", shots[0].image)
        bag.image(ALIGNED, bags.stamp_of(50), bags.OPTICAL, "16UC1", np.ones((60, 80), np.uint16))
        bag.info("/camera/color/camera_info", bags.stamp_of(0), bags.OPTICAL, bags.MATRIX, bags.SIZE)
        bags.tree(bag, shots)
    scene = locus.load_scene(bag.path)
    check(scene, [shot for k, shot in enumerate(shots) if k != 3])
    reasons = dict(scene.skipped)
    assert reasons.pop("1700000000.423456789") == "no depth image within 20 ms"
    assert reasons.pop("1700000005.123456789") == "no pose at its time"
    assert list(reasons.values()) == ["its header has no time"]


def test_colour_without_depth_is_read_as_far_as_it_goes(tmp_path, shots):
    with bags.BagFile(tmp_path, "ros1") as bag:
        bags.colour(bag, shots)
        bags.tree(bag, shots)
    frame = locus.load_scene(bag.path)[1]
    np.testing.assert_array_equal(frame.image, shots[1].image)
    np.testing.assert_allclose(frame.world_from_camera, shots[1].world_from_camera, atol=1e-6)
    with pytest.raises(FrameError, match="the scene has no depth for it"):
        frame.depth  # noqa: B018


def test_a_topic_without_images_that_can_be_placed_in_time_is_a_scene_without_frames(tmp_path, shots):
    with bags.BagFile(tmp_path, "mcap") as bag:
        bags.tree(bag, shots)
        bag.info("/camera/color/camera_info", bags.START, bags.OPTICAL, bags.MATRIX, bags.SIZE)
        bag.image(COLOUR, 0, bags.OPTICAL, "rgb8", shots[0].image)
    with pytest.raises(SceneError, match=r"was opened as rosbag but has no frames; .* its header has no time"):
        locus.load_scene(bag.path)
