import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from locus.geometry import align, pose_error, transform
from locus.tasks.consensus import rigid_consensus


def motion(random):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=random.integers(2**31)).as_matrix()
    pose[:3, 3] = random.normal(size=3) * 3
    return pose


@given(st.integers(0, 2**31), st.integers(3, 50))
def test_alignment_is_scipys(seed, count):
    random = np.random.default_rng(seed)
    a, weights = random.normal(size=(count, 3)), random.uniform(0.1, 1, count)
    b = transform(motion(random), a) + 0.1 * random.normal(size=a.shape)
    ours = align(a, b, weights)
    centre_a, centre_b = (np.average(points, axis=0, weights=weights) for points in (a, b))
    theirs = Rotation.align_vectors(b - centre_b, a - centre_a, weights)[0].as_matrix()
    assert np.allclose(ours[:3, :3], theirs, atol=1e-6)
    assert np.allclose(transform(ours, centre_a[None]), centre_b)


def test_alignment_of_mirrored_points_is_still_a_rotation():
    a = np.random.default_rng(0).normal(size=(10, 3))
    assert np.linalg.det(align(a, a * [1, 1, -1])[:3, :3]) == pytest.approx(1)


@given(st.integers(0, 2**31))
def test_pose_error_is_scipys(seed):
    random = np.random.default_rng(seed)
    a, b = motion(random), motion(random)
    metres, degrees = pose_error(a, b)
    assert metres == pytest.approx(np.linalg.norm(a[:3, 3] - b[:3, 3]))
    turn = Rotation.from_matrix(a[:3, :3]).inv() * Rotation.from_matrix(b[:3, :3])
    assert degrees == pytest.approx(np.degrees(turn.magnitude()), abs=1e-6)


def test_small_and_half_turns_are_measured_exactly():
    for angle in (0.0, 1e-7, 1e-3, 179.999, 180.0):
        turned = np.eye(4)
        turned[:3, :3] = Rotation.from_euler("z", angle, degrees=True).as_matrix()
        assert pose_error(np.eye(4), turned)[1] == pytest.approx(angle, abs=1e-6 if angle > 1 else 1e-12)


@pytest.mark.parametrize("right", [0.15, 0.5, 1.0])
def test_the_motion_is_found_among_wrong_pairs(right):
    random = np.random.default_rng(1)
    truth, a = motion(random), random.uniform(-2, 2, size=(400, 3))
    b = transform(truth, a) + 0.02 * random.normal(size=a.shape)
    wrong = random.random(400) > right
    b[wrong] = random.uniform(-5, 5, size=(wrong.sum(), 3))
    b_from_a, inliers = rigid_consensus(a, b, 0.1)
    metres, degrees = pose_error(b_from_a, truth)
    assert metres < 0.03
    assert degrees < 1
    assert (inliers & ~wrong).sum() > 0.95 * (~wrong).sum()
    assert (inliers & wrong).sum() < 5


def test_no_motion_is_an_answer():
    random = np.random.default_rng(2)
    a = random.uniform(-2, 2, size=(50, 3))
    assert rigid_consensus(a[:2], a[:2], 0.1) is None
    assert rigid_consensus(a[:0], a[:0], 0.1) is None
    assert rigid_consensus(np.repeat(a[:1], 50, axis=0), a, 0.1) is None  # one point matched to everything


def test_points_of_a_plane_do():
    random = np.random.default_rng(3)
    truth, a = motion(random), random.uniform(-2, 2, size=(60, 3)) * [1, 1, 0]
    b_from_a, inliers = rigid_consensus(a, transform(truth, a), 0.05)
    assert pose_error(b_from_a, truth) == pytest.approx((0, 0), abs=1e-5)
    assert inliers.all()
