"""What a bag says of its cameras: lenses, rectified images, parts of a sensor, and depth of another camera."""

import cv2
import numpy as np
import pytest

import locus
from locus.errors import SceneError
from locus.scenes import inspect
from locus.scenes.lens import Lens
from tests.scenes import bags, room
from tests.scenes.test_rosbag import check
from tests.scenes.test_rosbag_topics import ALIGNED, COLOUR, recorded


@pytest.fixture(scope="module")
def shots() -> list[room.Shot]:
    return room.shots(4)


LENSES = {
    "plumb_bob": (Lens(-0.2, 0.05, 0.002, -0.001, 0.01), [-0.2, 0.05, 0.002, -0.001, 0.01]),
    "rational_polynomial": (Lens(0.3, -0.1, 0.001, 0, 0.02, 0.4, 0, 0.01), [0.3, -0.1, 0.001, 0, 0.02, 0.4, 0, 0.01]),
    "equidistant": (Lens(0.03, -0.01, k3=0.004, k4=-0.001, fisheye=True), [0.03, -0.01, 0.004, -0.001]),
}


@pytest.mark.parametrize("kind", ["ros1", "mcap"])
@pytest.mark.parametrize("model", LENSES)
def test_lenses_are_straightened(model, kind, tmp_path, shots):
    """The picture holds its own pixel coordinates: those of a straight one are where OpenCV's lens puts its rays."""
    lens, coefficients = LENSES[model]
    with bags.BagFile(tmp_path, kind) as bag:
        u, v = np.meshgrid(np.arange(room.WIDTH), np.arange(room.HEIGHT))
        picture = np.stack([u, v, v], axis=-1).astype(np.uint8)
        bags.tree(bag, shots)
        for k in range(4):
            bag.image(COLOUR, bags.stamp_of(k), bags.OPTICAL, "rgb8", picture)
            bag.image(ALIGNED, bags.stamp_of(k), bags.OPTICAL, "16UC1", (1000 + u).astype(np.uint16))
            topic, stamp = "/camera/color/camera_info", bags.stamp_of(k)
            bag.info(topic, stamp, bags.OPTICAL, bags.MATRIX, bags.SIZE, d=coefficients, model=model)
    scene = locus.load_scene(bag.path)
    assert scene.sources[0].lens() == lens
    rays = np.stack([(u - room.CX + 0.5) / room.FX, (v - room.CY + 0.5) / room.FY, np.ones(u.shape)], -1).reshape(-1, 3)
    still, numbers = np.zeros(3), np.array(coefficients, float)
    project = cv2.fisheye.projectPoints if lens.fisheye else cv2.projectPoints
    expected = project(rays[:, None], still, still, bags.MATRIX, numbers)[0][:, 0].reshape(*u.shape, 2)
    inside = (expected >= 1).all(-1) & (expected[..., 0] < room.WIDTH - 1) & (expected[..., 1] < room.HEIGHT - 1)
    assert inside.mean() > 0.5
    np.testing.assert_allclose(scene[0].image[..., :2][inside], expected[inside], atol=0.6)
    np.testing.assert_allclose(scene[0].depth[inside] * 1000 - 1000, expected[..., 0][inside], atol=0.51)


def test_rectified_images_go_by_the_projection_and_are_not_straightened_again(tmp_path, shots):
    raw = np.array([[70.0, 0, 35], [0, 71, 25], [0, 0, 1]])
    with bags.BagFile(tmp_path, "mcap") as bag:
        bags.depth(bag, shots)
        bags.tree(bag, shots)
        for k, shot in enumerate(shots):
            bag.image("/camera/color/image_rect_color", bags.stamp_of(k), bags.OPTICAL, "rgb8", shot.image)
            numbers = {"d": [-0.2, 0.05, 0, 0, 0], "p": bags.MATRIX}
            bag.info("/camera/color/camera_info", bags.stamp_of(k), bags.OPTICAL, raw, bags.SIZE, **numbers)
    check(locus.load_scene(bag.path), shots)


def test_a_region_of_interest_and_binning_are_undone(tmp_path, shots):
    """Of a sensor of 200 × 150 pixels the part that begins at (20, 14), of twice the image's size, two by two."""
    matrix = np.array([[2 * room.FX, 0, 2 * room.CX + 20 - 0.5], [0, 2 * room.FY, 2 * room.CY + 14 - 0.5], [0, 0, 1]])
    region = {"x_offset": 20, "y_offset": 14, "width": 2 * room.WIDTH, "height": 2 * room.HEIGHT}
    with bags.BagFile(tmp_path, "ros1") as bag:
        bags.depth(bag, shots)
        bags.tree(bag, shots)
        for k, shot in enumerate(shots):
            bag.image(COLOUR, bags.stamp_of(k), bags.OPTICAL, "rgb8", shot.image)
            bag.info(
                "/camera/color/camera_info", bags.stamp_of(k), bags.OPTICAL, matrix, (200, 150), roi=region, binning=2
            )
    check(locus.load_scene(bag.path), shots)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"model": "thin_prism", "d": [0.1] * 4}, "its lens is thin_prism with 4 coefficients"),
        ({"d": [np.nan] * 5}, "its lens is plumb_bob with 5 coefficients"),
        ({"d": [0.1] * 12, "model": "rational_polynomial"}, "its lens is rational_polynomial with 12 coefficients"),
    ],
)
def test_lenses_that_are_not_known_are_refused(info, said, tmp_path, shots):
    with pytest.raises(SceneError, match=said):
        locus.load_scene(recorded(tmp_path, shots, **info))


def test_cameras_without_a_calibration_are_refused(tmp_path, shots):
    with bags.BagFile(tmp_path, "mcap") as bag:
        bags.depth(bag, shots)
        bags.tree(bag, shots)
        bag.image(COLOUR, bags.stamp_of(0), bags.OPTICAL, "rgb8", shots[0].image)
        bag.info("/camera/color/camera_info", bags.START, bags.OPTICAL, np.zeros((3, 3)), bags.SIZE)
    with pytest.raises(SceneError, match=r"camera is not calibrated \(K is zero\)"):
        locus.load_scene(bag.path)


# A depth camera beside the colour camera, turned a little, with a lens and a size of its own.
COLOUR_FROM_DEPTH = np.eye(4)
COLOUR_FROM_DEPTH[:3, :3] = cv2.Rodrigues(np.array([0.01, -0.015, 0.02]))[0]
COLOUR_FROM_DEPTH[:3, 3] = -0.03, 0.004, 0.002
DEPTH_SIZE, DEPTH_MATRIX = (100, 75), np.array([[70.0, 0, 50.5], [0, 70.5, 36.5], [0, 0, 1]])


@pytest.mark.parametrize("encoding", ["16UC1", "32FC1"])
def test_depth_of_another_camera_is_carried_over(encoding, tmp_path, monkeypatch):
    shots = room.shots(8)
    with monkeypatch.context() as patch:
        names = ("WIDTH", "HEIGHT", "FX", "FY", "CX", "CY")
        for name, value in zip(names, (*DEPTH_SIZE, 70.0, 70.5, 51.0, 37.0), strict=True):
            patch.setattr(room, name, value)
        seen = [room.shoot(shot.name, shot.world_from_camera @ COLOUR_FROM_DEPTH).depth for shot in shots]
    with bags.BagFile(tmp_path, "mcap") as bag:
        bags.colour(bag, shots)
        bags.tree(bag, shots)
        bag.tf("/tf_static", bags.START, (bags.OPTICAL, bags.DEPTH_OPTICAL, COLOUR_FROM_DEPTH))
        for k, depth in enumerate(seen):
            stored = depth.astype(np.float32) if encoding == "32FC1" else np.rint(depth * 1000).astype(np.uint16)
            bag.image("/camera/depth/image_rect_raw", bags.stamp_of(k), bags.DEPTH_OPTICAL, encoding, stored)
        bag.info("/camera/depth/camera_info", bags.START, bags.DEPTH_OPTICAL, DEPTH_MATRIX, DEPTH_SIZE)
    scene = locus.load_scene(bag.path)
    for frame, shot in zip(scene, shots, strict=True):
        known = frame.depth > 0
        assert known.mean() > 0.9
        error = np.abs(frame.depth - shot.depth)[known] / shot.depth[known]
        assert np.median(error) < 0.01
        assert np.mean(error < 0.05) > 0.93  # the rest are edges
    assert inspect(scene).sound


def test_depth_of_another_camera_whose_place_is_not_known_is_one_sentence(tmp_path, shots):
    with bags.BagFile(tmp_path, "sqlite3") as bag:
        bags.colour(bag, shots)
        bags.tree(bag, shots)
        bag.image(
            "/camera/depth/image_raw", bags.stamp_of(0), bags.DEPTH_OPTICAL, "16UC1", np.ones((75, 100), np.uint16)
        )
        bag.info("/camera/depth/camera_info", bags.START, bags.DEPTH_OPTICAL, DEPTH_MATRIX, DEPTH_SIZE)
    with pytest.raises(SceneError, match=rf"how {bags.DEPTH_OPTICAL}, .* is placed to {bags.OPTICAL}; record"):
        locus.load_scene(bag.path)


def test_distorted_depth_of_another_camera_lands_where_opencv_projects_it(tmp_path, shots):
    """One speck of depth in a distorted image."""
    coefficients = np.array([-0.15, 0.03, 0.001, -0.002, 0.0])
    depth = np.zeros((75, 100), np.uint16)
    depth[20, 70] = 2000
    with bags.BagFile(tmp_path, "ros1") as bag:
        bags.colour(bag, shots)
        bags.tree(bag, shots)
        bag.tf("/tf_static", bags.START, (bags.OPTICAL, bags.DEPTH_OPTICAL, COLOUR_FROM_DEPTH))
        for k in range(4):
            bag.image("/camera/depth/image_raw", bags.stamp_of(k), bags.DEPTH_OPTICAL, "16UC1", depth)
        numbers = {"d": coefficients}
        bag.info("/camera/depth/camera_info", bags.START, bags.DEPTH_OPTICAL, DEPTH_MATRIX, DEPTH_SIZE, **numbers)
    found = locus.load_scene(bag.path)[0].depth
    ray = cv2.undistortPoints(np.array([[[70.0, 20.0]]]), DEPTH_MATRIX, coefficients)[0, 0]
    point = np.append(ray, 1.0) * 2.0
    turn = cv2.Rodrigues(COLOUR_FROM_DEPTH[:3, :3])[0]
    x, y = cv2.projectPoints(point, turn, COLOUR_FROM_DEPTH[:3, 3], bags.MATRIX, None)[0][0, 0]
    rows, columns = np.nonzero(found)
    assert len(rows) <= 9
    assert np.hypot(rows.mean() - y, columns.mean() - x) < 1
    np.testing.assert_allclose(found[rows, columns], (COLOUR_FROM_DEPTH @ np.append(point, 1))[2], rtol=0.01)
