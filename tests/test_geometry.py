from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ExifTags, Image
from scipy.spatial.transform import Rotation

from locus.errors import LocusError
from locus.geometry import Camera, invert, rigid, transform
from locus.scenes import Convention

finite = st.floats(-50, 50)
positive = st.floats(1, 2000)


@st.composite
def poses(draw) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=draw(st.integers(0, 2**31))).as_matrix()
    pose[:3, 3] = draw(st.tuples(finite, finite, finite))
    return pose


@given(poses())
def test_invert_is_the_matrix_inverse(pose):
    np.testing.assert_allclose(invert(pose), np.linalg.inv(pose), atol=1e-9)


@given(poses(), st.tuples(finite, finite, finite))
def test_transform_is_the_homogeneous_product(pose, point):
    expected = (pose @ [*point, 1.0])[:3]
    np.testing.assert_allclose(transform(pose, np.array([point]))[0], expected, atol=1e-9)


@given(positive, positive, finite, finite, st.floats(0.01, 100), st.floats(-500, 500), st.floats(-500, 500))
def test_projection_is_the_product_with_the_camera_matrix_and_unprojection_its_inverse(fx, fy, cx, cy, z, u, v):
    camera = Camera(640, 480, fx, fy, cx, cy)
    point = camera.unproject(np.array([u, v]), np.array(z))
    homogeneous = camera.matrix @ point
    np.testing.assert_allclose(homogeneous[:2] / homogeneous[2], [u, v], atol=1e-6)
    pixels, depth = camera.project(point)
    np.testing.assert_allclose(pixels, [u, v], atol=1e-6)
    assert depth == pytest.approx(z)


def test_resizing_keeps_the_rays_of_the_corners():
    camera = Camera(640, 480, 500.0, 510.0, 300.0, 250.0)
    half = camera.resized(320, 240)
    corner = np.array([[640.0, 480.0]])
    np.testing.assert_allclose(camera.unproject(corner, np.ones(1)), half.unproject(corner / 2, np.ones(1)))


@pytest.mark.parametrize(
    "values", [(0, 4, 1, 1, 0, 0), (4, 4, 0, 1, 0, 0), (4, 4, 1, -2, 0, 0), (4, 4, 1, 1, float("nan"), 0)]
)
def test_impossible_cameras_are_refused(values):
    with pytest.raises(LocusError):
        Camera(*values[:2], *map(float, values[2:]))


@given(poses())
def test_rigid_accepts_rounded_rotations_and_makes_them_exact(pose):
    rounded = pose.round(3)
    exact = rigid(rounded)
    np.testing.assert_allclose(exact[:3, :3] @ exact[:3, :3].T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(exact, pose, atol=2e-3)
    assert rigid(exact) is exact or np.allclose(rigid(exact), exact, atol=1e-12)


def broken(**changes) -> np.ndarray:
    pose = np.eye(4)
    for key, value in changes.items():
        pose[int(key[1]), int(key[2])] = value
    return pose


@pytest.mark.parametrize(
    ("pose", "reason"),
    [
        (broken(m03=np.nan), "not finite"),
        (broken(m03=-np.inf), "not finite"),
        (broken(m00=1.1), "not rigid"),
        (broken(m00=-1.0), "mirrors"),
        (broken(m30=0.5), "last row.*column by column"),
        (np.zeros((4, 4)), "not rigid"),
    ],
)
def test_rigid_refuses_what_is_not(pose, reason):
    with pytest.raises(LocusError, match=reason):
        rigid(pose)


@given(
    poses(),
    st.sampled_from(["world_from_camera", "camera_from_world"]),
    st.sampled_from(["opencv", "opengl"]),
    st.sampled_from(["plain", "transposed"]),
)
def test_a_convention_reads_what_it_stores(pose, direction, axes, rotation):
    convention = Convention(pose=direction, axes=axes, rotation=rotation)
    np.testing.assert_allclose(convention.world_from_camera(convention.stored(pose)), pose, atol=1e-9)


def test_conventions_mean_what_they_say():
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler("xyz", [0.3, -0.5, 1.1]).as_matrix()
    pose[:3, 3] = [1, 2, 3]
    np.testing.assert_allclose(Convention(pose="camera_from_world").world_from_camera(np.linalg.inv(pose)), pose)
    # An OpenGL camera looks along -z with y up: a point 2 m ahead, 1 m up.
    ahead = pose @ [0, 1, -2, 1]
    ours = Convention(axes="opengl").world_from_camera(pose)
    np.testing.assert_allclose(ours @ [0, -1, 2, 1], ahead)
    turned = pose.copy()
    turned[:3, :3] = pose[:3, :3].T
    np.testing.assert_allclose(Convention(rotation="transposed").world_from_camera(turned), pose)


K = [[500.0, 0, 319.5], [0, 510.0, 239.5], [0, 0, 1]]


def test_a_camera_from_opencvs_k_projects_as_opencv_does():
    points = np.array([[0.3, -0.2, 2.0], [-0.5, 0.4, 3.0]])
    expected = cv2.projectPoints(points, np.zeros(3), np.zeros(3), np.array(K), None)[0][:, 0]
    assert np.allclose(Camera.from_opencv(K, 640, 480).project(points)[0] - 0.5, expected)


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[500, 0, 320], [0, 500, 240]], "K is a matrix"),
        ([[500, 3, 320], [0, 500, 240], [0, 0, 1]], "K is a matrix"),
        ("K", "K is a matrix"),
        ([[500, 0, 900], [0, 500, 240], [0, 0, 1]], "outside the 640×480 image"),
    ],
)
def test_what_is_no_k_is_refused(matrix, sentence):
    with pytest.raises(LocusError, match=sentence):
        Camera.from_opencv(matrix, 640, 480)


@given(st.integers(2, 4000), st.floats(1, 179))
def test_the_field_of_view_is_the_angle_between_the_left_and_the_right_edge(width, degrees):
    camera = Camera.from_fov(width, 100, degrees)
    left, right = camera.unproject(np.array([[0.0, 50.0], [width, 50.0]]), np.ones(2))
    cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    assert np.degrees(np.arccos(cosine)) == pytest.approx(degrees, abs=1e-5)


@pytest.mark.parametrize("degrees", [0.5, 180])
def test_a_field_of_view_that_is_none_is_refused(degrees):
    with pytest.raises(LocusError, match="field of view"):
        Camera.from_fov(640, 480, degrees)


def photo(path, tags, orientation=1, size=(120, 90)):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    exif.get_ifd(ExifTags.IFD.Exif).update(tags)
    Image.new("RGB", size).save(path, exif=exif)
    return path


def test_a_photo_says_its_camera(tmp_path):
    # 43.27 mm on film see as far along the diagonal as it is long.
    camera = Camera.from_exif(photo(tmp_path / "a.jpg", {ExifTags.Base.FocalLengthIn35mmFilm: 26}))
    assert camera.fx == camera.fy == pytest.approx(26 / 43.267 * 150, rel=1e-4)
    assert (camera.width, camera.height, camera.cx, camera.cy) == (120, 90, 60, 45)
    upright = Camera.from_exif(photo(tmp_path / "b.jpg", {ExifTags.Base.FocalLengthIn35mmFilm: 26}, orientation=6))
    assert (upright.width, upright.height, upright.fx) == (90, 120, camera.fx)
    with Image.open(tmp_path / "a.jpg") as opened:
        assert Camera.from_exif(opened) == camera
        assert opened.getpixel((0, 0)) == (0, 0, 0)  # it was not closed
    # 5 mm before a sensor of 240 pixels, 40 of them on a millimetre; stored at half the size.
    tags = {
        ExifTags.Base.FocalLength: 5.0,
        ExifTags.Base.FocalPlaneXResolution: 400.0,
        ExifTags.Base.FocalPlaneResolutionUnit: 3,
        ExifTags.Base.ExifImageWidth: 240,
    }
    assert Camera.from_exif(photo(tmp_path / "c.jpg", tags)).fx == pytest.approx(100)


@pytest.mark.parametrize("tags", [{}, {ExifTags.Base.FocalLength: 5.0}, {ExifTags.Base.FocalLengthIn35mmFilm: 0}])
def test_a_photo_that_does_not_say_its_focal_length_is_refused(tags, tmp_path):
    with pytest.raises(LocusError, match="does not say its focal length"):
        Camera.from_exif(photo(tmp_path / "a.jpg", tags))


@pytest.mark.parametrize("file", ["nowhere.jpg", __file__])
def test_what_is_no_photo_is_refused(file):
    with pytest.raises(LocusError, match="not an image that can be read"):
        Camera.from_exif(file)


def camera_info(**changed):
    region = SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0)
    said = {"width": 640, "height": 480, "k": np.ravel(K), "d": np.zeros(5), "roi": region}
    said |= {"p": np.ravel(np.c_[np.array(K) * [[0.8], [0.8], [1]], np.zeros(3)]), "binning_x": 0, "binning_y": 0}
    return SimpleNamespace(**said | changed)


def test_a_camera_from_ros():
    assert Camera.from_camera_info(camera_info()) == Camera.from_opencv(K, 640, 480)
    of_ros_1 = camera_info(K=np.ravel(K), D=[], P=np.zeros(12))
    for name in "kdp":
        delattr(of_ros_1, name)
    assert Camera.from_camera_info(of_ros_1) == Camera.from_opencv(K, 640, 480)
    rectified = Camera.from_camera_info(camera_info(d=[0.1, 0, 0, 0, 0]), rectified=True)
    assert (rectified.fx, rectified.cx) == (400.0, 0.8 * 319.5 + 0.5)
    binned = Camera.from_camera_info(camera_info(binning_x=2, binning_y=2))
    assert binned == Camera.from_opencv(K, 640, 480).resized(320, 240)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [({"k": np.zeros(9)}, "not calibrated: K"), ({"d": [0.1]}, "lens distorts"), ({"k": [1, 2]}, "a CameraInfo has")],
)
def test_a_camera_info_that_does_not_do_is_refused(changed, sentence):
    with pytest.raises(LocusError, match=sentence):
        Camera.from_camera_info(camera_info(**changed))
