"""Covariances against numerical differentiation, SciPy's least squares, and estimates of poses under noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from locus.geometry import Camera, align, invert, transform
from locus.tasks.uncertainty import (
    WIDEST,
    absolute_covariance,
    deviations,
    offset,
    relative_covariance,
    reprojection,
    rigid_covariance,
    rigid_residuals,
    sampson,
)

CAMERA = Camera(400, 300, 250.0, 260.0, 205.0, 148.0)
OTHER = Camera(640, 480, 500.0, 480.0, 300.0, 250.0)
DRAWS = 150


def moved(pose, step):
    """`pose @ exp(step)`, by rotation and translation one after the other."""
    change = np.eye(4)
    change[:3, :3], change[:3, 3] = Rotation.from_rotvec(step[:3]).as_matrix(), step[3:]
    return pose @ change


def posed(random):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=random.integers(2**31)).as_matrix()
    pose[:3, 3] = random.normal(size=3) * 3
    return pose


def cloud(random, count):
    """Points before `CAMERA`."""
    return CAMERA.unproject(random.uniform([20, 20], [380, 280], (count, 2)), random.uniform(1.5, 5, count))


def sideways(random):
    """A motion between two cameras that see the same, with a translation of length 1."""
    motion = moved(np.eye(4), np.concatenate([random.normal(size=3) * 0.1, random.normal(size=3)]))
    motion[:3, 3] /= np.linalg.norm(motion[:3, 3])
    return motion


def numerical(residuals, pose, step=1e-6):
    columns = [
        (residuals(moved(pose, step * axis))[0] - residuals(moved(pose, -step * axis))[0]) / (2 * step)
        for axis in np.eye(6)
    ]
    return np.stack(columns, axis=-1)


def problems(random, count=20):
    """Residuals of each kind as functions of a pose, with some noise, and the pose."""
    points, pose = cloud(random, count), posed(random)
    pixels = CAMERA.project(points)[0] + random.normal(size=(count, 2))
    yield lambda at: reprojection(pixels, transform(pose, points), CAMERA, at), pose
    motion = sideways(random)
    far = points + np.array([0, 0, 2])
    b = OTHER.project(transform(motion, far))[0] + random.normal(size=(count, 2))
    a = CAMERA.project(far)[0]
    yield lambda at: sampson(a, b, CAMERA, OTHER, at), motion
    noisy = transform(pose, points) + 0.1 * random.normal(size=(count, 3))
    yield lambda at: rigid_residuals(points, noisy, at), pose


@given(st.integers(0, 2**31))
def test_jacobians_are_the_numerical_ones(seed):
    for residuals, pose in problems(np.random.default_rng(seed)):
        jacobian = residuals(pose)[1]
        assert np.allclose(jacobian, numerical(residuals, pose), rtol=1e-4, atol=1e-5 * np.abs(jacobian).max())


@given(st.integers(0, 2**31))
def test_sampson_is_the_distance_to_the_nearest_pixels_that_fit(seed):
    """To first order: the shortest change of the four coordinates that fits the fundamental matrix."""
    random = np.random.default_rng(seed)
    motion, points = sideways(random), cloud(random, 1) + np.array([0, 0, 2])
    pixels = np.stack([CAMERA.project(points)[0][0], CAMERA.project(transform(motion, points))[0][0]])
    noisy = pixels + 0.01 * random.normal(size=(2, 2))
    (error,) = sampson(noisy[:1], noisy[1:], CAMERA, CAMERA, motion)[0][0]
    x, y, z = motion[:3, 3]
    essential = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ motion[:3, :3]
    inverse = np.linalg.inv(CAMERA.matrix)
    fundamental = inverse.T @ essential @ inverse

    def fits(change):
        a, b = (np.append(pixel, 1) for pixel in noisy + change.reshape(2, 2))
        return b @ fundamental @ a

    gradient = np.array([(fits(step) - fits(-step)) / 2e-3 for step in 1e-3 * np.eye(4)])
    nearest = -fits(np.zeros(4)) * gradient / (gradient @ gradient)
    assert abs(fits(nearest)) <= 1e-2 * abs(fits(np.zeros(4))) + 1e-12
    assert abs(error) == pytest.approx(np.linalg.norm(nearest), rel=1e-4, abs=1e-9)


@given(st.integers(0, 2**31))
def test_offset_undoes_a_step(seed):
    random = np.random.default_rng(seed)
    step = random.normal(size=6) * 0.5
    pose = posed(random)
    assert np.allclose(offset(pose, moved(pose, step)), step, atol=1e-9)


def test_deviations_are_those_of_simple_covariances():
    metres, degrees = deviations(np.diag([0.01**2, 0, 0, 0.03**2, 0, 0.04**2]))
    assert metres == pytest.approx(0.05)
    assert degrees == pytest.approx(np.degrees(0.01))


def test_scipy_has_the_same_curvature_at_its_optimum():
    """With the scale held at the floor, the covariance is the floor's square times the inverse of SciPy's JᵀJ."""
    random = np.random.default_rng(1)
    points, pose = cloud(random, 40), posed(random)
    world = transform(pose, points)
    pixels = CAMERA.project(points)[0] + 0.3 * random.normal(size=(40, 2))
    fit = least_squares(
        lambda step: reprojection(pixels, world, CAMERA, moved(pose, step))[0].ravel(), np.zeros(6), jac="3-point"
    )
    best = moved(pose, fit.x)
    turned = np.linalg.norm(fit.x[:3])
    assert turned < 0.01  # so that SciPy's steps, from the true pose, are those from the best one to a hundredth
    covariance = absolute_covariance(pixels, world, CAMERA, best, floor=5.0)
    assert np.allclose(covariance, 25 * np.linalg.inv(fit.jac.T @ fit.jac), rtol=0.03, atol=1e-8)


def test_points_on_a_symmetric_cross_have_the_closed_form():
    """Points at ±r on each axis: a rotation has the variance σ²/(4r²), a translation σ²/6."""
    points = np.concatenate([2 * np.eye(3), -2 * np.eye(3)])
    covariance = rigid_covariance(points, points, np.ones(6), np.eye(4), floor=0.1)
    assert np.allclose(covariance, np.diag([0.01 / 16] * 3 + [0.01 / 6] * 3), rtol=1e-4)


def test_inliers_of_one_spot_count_as_one():
    random = np.random.default_rng(2)
    points, pose = cloud(random, 30), posed(random)
    pixels, world = CAMERA.project(points)[0], transform(pose, points)
    once = absolute_covariance(pixels, world, CAMERA, pose)
    spots = np.repeat(np.arange(30), 5)
    often = absolute_covariance(np.repeat(pixels, 5, 0), np.repeat(world, 5, 0), CAMERA, pose, spots)
    assert np.allclose(often, once, rtol=1e-4)
    alone = absolute_covariance(np.repeat(pixels, 5, 0), np.repeat(world, 5, 0), CAMERA, pose)
    assert np.allclose(alone, once / 5, rtol=1e-4)


def test_what_the_inliers_leave_free_is_as_wide_as_before_any_match():
    """Points on a line through the camera's origin along x: the rotation about x is not known."""
    points = np.array([[x, 0.0, 0.0] for x in np.linspace(-2, 2, 9)])
    covariance = rigid_covariance(points, points, np.ones(9), np.eye(4))
    assert covariance[0, 0] == pytest.approx(WIDEST[0] ** 2)
    assert covariance[1, 1] < 1e-4


def refined(residuals, start):
    """The pose of least squares, near `start`, by SciPy with its own derivatives."""
    step = least_squares(lambda step: residuals(moved(start, step))[0].ravel(), np.zeros(6), method="lm").x
    return moved(start, step)


def absolute(random, truth, points):
    pixels = CAMERA.project(points)[0] + 1.5 * random.normal(size=(len(points), 2))
    world = transform(truth, points)
    pose = refined(lambda at: reprojection(pixels, world, CAMERA, at), truth)
    return pose, absolute_covariance(pixels, world, CAMERA, pose)


def relative(random, truth, points):
    far = points + np.array([0, 0, 1.5])
    a = CAMERA.project(far)[0] + random.normal(size=(len(points), 2))
    b = OTHER.project(transform(truth, far))[0] + random.normal(size=(len(points), 2))
    pose = refined(lambda at: sampson(a, b, CAMERA, OTHER, at), truth)
    # Sampson's error knows neither the length nor the sign of a translation; points before both cameras tell the sign.
    pose[:3, 3] *= np.sign(pose[:3, 3] @ truth[:3, 3]) / np.linalg.norm(pose[:3, 3])
    return pose, relative_covariance(a, b, CAMERA, OTHER, pose)


def rigid(random, truth, points):
    depth = points[:, 2]
    noisy = transform(truth, points) + 0.02 * depth[:, None] * random.normal(size=points.shape)
    pose = align(points, noisy)
    return pose, rigid_covariance(points, noisy, depth, pose)


def rigid_in_spots(random, truth, points):
    """Five patches of each landmark, whose position is off for all of them."""
    spots = np.repeat(np.arange(len(points)), 5)
    near = points[spots] + random.uniform(-0.05, 0.05, (len(spots), 3))
    noisy = transform(truth, near) + 0.05 * random.normal(size=points.shape)[spots]
    pose = align(near, noisy)
    return pose, rigid_covariance(near, noisy, np.ones(len(spots)), pose, spots)


@pytest.mark.parametrize(
    ("estimated", "freedom"),
    [(absolute, 6), (relative, 5), (rigid, 6), (rigid_in_spots, 6)],
    ids=["absolute", "relative", "rigid", "rigid in spots"],
)
def test_estimates_under_noise_spread_as_predicted(estimated, freedom):
    """The sample covariance of many estimates is the predicted one, and NEES has the mean of its degrees of freedom."""
    random = np.random.default_rng(3)
    truth = sideways(random) if freedom == 5 else posed(random)
    points = cloud(random, 80)
    drawn = [estimated(random, truth, points) for _ in range(DRAWS)]
    steps = np.array([offset(pose, truth) for pose, _ in drawn])
    predicted = np.mean([covariance for _, covariance in drawn], axis=0)
    for own in (covariance for _, covariance in drawn[:5]):
        assert np.linalg.matrix_rank(own, tol=1e-9 * np.linalg.norm(own)) == freedom
    # Whitened by what is predicted, the sample covariance is the identity, within the width of a Wishart's eigenvalues.
    values, vectors = np.linalg.eigh(predicted)
    whitened = (steps @ vectors[:, -freedom:]) / np.sqrt(values[-freedom:])
    spread = np.linalg.eigvalsh(np.cov(whitened.T))
    edge = np.sqrt(freedom / DRAWS)
    assert (1 - edge) ** 2 * 0.85 < spread.min()
    assert spread.max() < (1 + edge) ** 2 * 1.15
    nees = [step @ np.linalg.pinv(own, rcond=1e-9) @ step for step, (_, own) in zip(steps, drawn, strict=True)]
    # The scale is the inliers' own and varies by some percent, hence a tenth more than the interval of a chi-square.
    low, high = chi2.ppf([0.0005, 0.9995], freedom * DRAWS) / DRAWS
    assert 0.9 * low < np.mean(nees) < 1.1 * high


def test_residuals_below_the_floor_have_the_floor():
    random = np.random.default_rng(4)
    points, pose = cloud(random, 30), posed(random)
    exact = absolute_covariance(CAMERA.project(points)[0], transform(pose, points), CAMERA, pose, floor=0.5)
    coarse = absolute_covariance(CAMERA.project(points)[0], transform(pose, points), CAMERA, pose, floor=1.0)
    assert np.allclose(coarse, 4 * exact, rtol=1e-4)


def test_a_few_wrong_inliers_hardly_change_the_scale():
    random = np.random.default_rng(5)
    points, pose = cloud(random, 100), posed(random)
    pixels = CAMERA.project(points)[0] + random.normal(size=(100, 2))
    before = deviations(absolute_covariance(pixels, transform(pose, points), CAMERA, pose))
    pixels[:10] += 50
    after = deviations(absolute_covariance(pixels, transform(pose, points), CAMERA, pose))
    assert after == pytest.approx(before, rel=0.25)


def test_the_position_of_the_world_does_not_matter():
    random = np.random.default_rng(6)
    points, pose = cloud(random, 30), posed(random)
    far = pose.copy()
    far[:3, 3] += 1000
    pixels = CAMERA.project(points)[0] + random.normal(size=(30, 2))
    here, there = (absolute_covariance(pixels, transform(each, points), CAMERA, each) for each in (pose, far))
    assert np.allclose(here, there, rtol=1e-6, atol=1e-12)
    assert np.allclose(transform(invert(far), transform(far, points)), points)
