"""The motion that most answers agree on, against SciPy and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from locus.geometry import invert, pose_error
from locus.tasks.agreement import CONFIDENT, REACH, SHARE, VIEWPOINTS, agreed_motion

SEEDS = st.integers(0, 2**31)


def poses(random, count, reach=4.0):
    """Cameras anywhere in a flat, turned any way."""
    made = np.tile(np.eye(4), (count, 1, 1))
    made[:, :3, :3] = Rotation.random(count, random_state=int(random.integers(2**31))).as_matrix()
    made[:, :3, 3] = random.uniform(-reach, reach, (count, 3))
    return made


def noisy(random, cameras, metres=0.02, degrees=1.0):
    turned = cameras.copy()
    turns = Rotation.from_rotvec(np.radians(degrees) / np.sqrt(3) * random.normal(size=(len(cameras), 3)))
    turned[:, :3, :3] = cameras[:, :3, :3] @ turns.as_matrix()
    turned[:, :3, 3] += metres * random.normal(size=(len(cameras), 3))
    return turned


@given(SEEDS, st.integers(10, 30), st.floats(0, 0.6))
def test_any_motion_is_found_among_wrong_answers(seed, count, wrong):
    random = np.random.default_rng(seed)
    a_from_b, in_b = poses(random, 1, 20)[0], poses(random, count)
    in_a = noisy(random, a_from_b @ in_b)
    bad = random.permutation(count)[: int(wrong * count)]
    in_a[bad] = poses(random, len(bad))
    found = agreed_motion(in_a, in_b, np.ones(count))
    right = np.setdiff1d(np.arange(count), bad)
    assert not found.reason
    assert found.agree[right].all()
    assert np.allclose([pose_error(*pair) for pair in zip(found.placed(in_b), a_from_b @ in_b, strict=True)], 0, atol=2)
    assert np.linalg.norm(found.placed(in_b)[:, :3, 3] - (a_from_b @ in_b)[:, :3, 3], axis=1).max() < 0.25
    assert found.scale == 1


@given(SEEDS, st.floats(0.05, 20))
def test_the_scale_is_found_too(seed, scale):
    random = np.random.default_rng(seed)
    a_from_b, in_b = poses(random, 1, 20)[0], poses(random, 16)
    in_a = a_from_b @ in_b
    in_a[:6] = poses(random, 6)
    in_b[:, :3, 3] /= scale
    found = agreed_motion(in_a, in_b, np.ones(16), scale=True)
    assert found.scale == pytest.approx(scale, rel=1e-6)
    assert np.allclose(found.a_from_b, a_from_b, atol=1e-6)
    assert found.agree[6:].all()


@given(SEEDS)
def test_wherever_b_has_its_origin_the_cameras_are_placed_alike(seed):
    random = np.random.default_rng(seed)
    in_b, elsewhere = poses(random, 12), poses(random, 1, 50)[0]
    in_a = noisy(random, in_b)
    found, moved = (agreed_motion(in_a, each, np.ones(12)) for each in (in_b, elsewhere @ in_b))
    assert np.allclose(found.placed(in_b), moved.placed(elsewhere @ in_b), atol=1e-6)
    assert (found.metres, found.degrees) == pytest.approx((moved.metres, moved.degrees), rel=1e-3, abs=1e-4)


@given(SEEDS)
def test_rotations_of_one_place_are_averaged_as_scipy_does(seed):
    random = np.random.default_rng(seed)
    in_b, weights = poses(random, 8, 0.0), random.uniform(0.1, 1, 8)
    in_a = noisy(random, in_b, metres=0.0, degrees=2.0)
    found = agreed_motion(in_a, in_b, weights)
    motions = Rotation.from_matrix(in_a[:, :3, :3] @ np.swapaxes(in_b[:, :3, :3], 1, 2))
    assert np.allclose(found.a_from_b[:3, :3], motions.mean(weights).as_matrix(), atol=1e-9)


@settings(max_examples=20)
@given(SEEDS, st.booleans())
def test_the_fit_is_the_least_squares_of_scipy(seed, free):
    random = np.random.default_rng(seed)
    in_b, weights = poses(random, 10), random.uniform(0.1, 1, 10)
    in_a = noisy(random, in_b)
    found = agreed_motion(in_a, in_b, weights, scale=free)

    def residuals(values):
        turn, scale = Rotation.from_rotvec(values[:3]).as_matrix(), values[6] if free else 1.0
        moved = scale * in_b[:, :3, 3] @ turn.T + values[3:6] - in_a[:, :3, 3]
        turned = REACH / np.sqrt(3) * (turn @ in_b[:, :3, :3] - in_a[:, :3, :3]).reshape(10, 9)
        return (np.sqrt(weights)[:, None] * np.concatenate([moved, turned], axis=1)).ravel()

    best = least_squares(residuals, [0.0] * 6 + [1.0], xtol=1e-14, ftol=1e-14, gtol=1e-14).x
    assert np.allclose(found.a_from_b[:3, :3], Rotation.from_rotvec(best[:3]).as_matrix(), atol=1e-4)
    assert np.allclose(found.a_from_b[:3, 3], best[3:6], atol=1e-3)
    assert found.scale == pytest.approx(best[6], abs=1e-4)


def test_the_scale_of_positions_is_umeyamas():
    """Umeyama's (1991) closed form, with cameras that are turned exactly."""
    random = np.random.default_rng(5)
    in_b = poses(random, 20)
    in_a = noisy(random, in_b, metres=0.05, degrees=0.0)
    a, b = (each[:, :3, 3] - each[:, :3, 3].mean(axis=0) for each in (in_a, in_b))
    strengths = np.linalg.svd(a.T @ b, compute_uv=False)
    assert agreed_motion(in_a, in_b, np.ones(20), scale=True).scale == pytest.approx(
        strengths.sum() / (b**2).sum(), rel=1e-3
    )


@given(SEEDS, st.integers(0, VIEWPOINTS - 1), st.integers(0, 5))
def test_too_few_answers_are_refused(seed, right, wrong):
    random = np.random.default_rng(seed)
    in_b = poses(random, right + wrong)
    in_a = in_b.copy()
    in_a[right:, :3, 3] += 10 * (1 + np.arange(wrong))[:, None]  # each wrong in its own way
    found = agreed_motion(in_a, in_b, np.ones(len(in_b)))
    assert f"from {found.viewpoints} different viewpoints" in found.reason
    assert f"and {VIEWPOINTS} are needed" in found.reason


def test_answers_of_little_confidence_are_refused_however_many_agree():
    in_b = poses(np.random.default_rng(6), 20)
    assert "from 0 different viewpoints with a confidence" in agreed_motion(in_b, in_b, np.full(20, 0.3)).reason
    some = np.where(np.arange(20) < VIEWPOINTS, CONFIDENT, 0.3)
    assert not agreed_motion(in_b, in_b, some).reason


def test_many_answers_of_one_view_are_one_viewpoint():
    random = np.random.default_rng(1)
    in_b = np.repeat(poses(random, 1), 20, axis=0)
    in_b[:, :3, 3] += random.uniform(-0.2, 0.2, (20, 3))
    found = agreed_motion(in_b, in_b, np.ones(20))
    assert found.agree.all()
    assert found.viewpoints == 1
    assert "different viewpoints" in found.reason


def test_a_small_share_is_refused():
    random = np.random.default_rng(2)
    in_b = poses(random, 40)
    in_a = poses(random, 40)
    in_a[:6] = in_b[:6]
    assert f"and {SHARE:.0%} are needed" in agreed_motion(in_a, in_b, np.ones(40)).reason
    believed = np.where(np.arange(40) < 6, 1.0, 0.1)
    assert not agreed_motion(in_a, in_b, believed).reason


def test_cameras_of_one_place_have_no_scale():
    random = np.random.default_rng(3)
    in_b = poses(random, 12, 0.1)
    assert agreed_motion(in_b, in_b, np.ones(12), scale=True).reason
    assert not agreed_motion(in_b, in_b, np.ones(12)).reason


def test_the_error_is_about_what_it_says():
    """Over many draws, the root of the mean square of the stated errors is that of the true ones."""
    stated, true = [], []
    for seed in range(100):
        random = np.random.default_rng(seed)
        in_b = poses(random, 12)
        found = agreed_motion(noisy(random, in_b, 0.05, 2.0), in_b, np.ones(12))
        stated.append((found.metres**2, found.degrees**2))
        off = [pose_error(*pair) for pair in zip(found.placed(in_b), in_b, strict=True)]
        true.append(np.mean(np.square(off), axis=0))
    ratio = np.sqrt(np.mean(stated, axis=0) / np.mean(true, axis=0))
    assert (ratio > 0.8).all()
    assert (ratio < 1.5).all()


def test_the_inverse_is_the_other_way():
    random = np.random.default_rng(4)
    in_b, a_from_b = poses(random, 10), poses(random, 1)[0]
    found = agreed_motion(in_b, a_from_b @ in_b, np.ones(10))
    assert np.allclose(found.a_from_b, invert(a_from_b))
