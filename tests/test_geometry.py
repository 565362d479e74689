import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
