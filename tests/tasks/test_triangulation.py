"""Triangulation against closed forms, OpenCV and SciPy."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

from locus.geometry import Camera, invert, transform
from locus.tasks.triangulation import Sightings, sighted, triangulate

CAMERA = Camera(640, 480, 500.0, 510.0, 320.0, 240.0)
PIXEL = 1 / 500.0  # radians
ANGLE = np.radians(3)


@pytest.fixture
def random():
    return np.random.default_rng(1)


def poses(random, count):
    """The first camera is the world's origin; the others are half a metre away and turned a little."""
    made = np.tile(np.eye(4), (count, 1, 1))
    for pose in made[1:]:
        pose[:3, :3] = Rotation.from_rotvec(random.normal(scale=0.1, size=3)).as_matrix()
        away = random.normal(size=3) * [1, 1, 0.2]
        pose[:3, 3] = 0.5 * away / np.linalg.norm(away)
    return made


def seen(points, world_from_cameras, noise=0.0, random=None):
    """Sightings of world points, which are all keypoints of the first camera, in the others; and all pixels."""
    pixels = [CAMERA.project(transform(invert(pose), points))[0] for pose in world_from_cameras]
    if random is not None:
        pixels[1:] = [each + random.normal(scale=noise, size=each.shape) for each in pixels[1:]]
    parts = [
        sighted(np.arange(len(points)), pixels[0], at, CAMERA, CAMERA, invert(pose) @ world_from_cameras[0])
        for at, pose in zip(pixels[1:], world_from_cameras[1:], strict=True)
    ]
    return Sightings(*(np.concatenate(each) for each in zip(*parts, strict=True))), pixels


def some_points(random, count=50):
    return random.uniform((-0.8, -0.6, 2.0), (0.8, 0.6, 4.0), (count, 3))


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_exact_sightings_give_exact_depth(seed, views):
    random = np.random.default_rng(seed)
    points = some_points(random)
    sightings, _ = seen(points, poses(random, views))
    inverse = triangulate(sightings, len(points) + 1, PIXEL, np.radians(0.01))
    np.testing.assert_allclose(1 / inverse[:-1], points[:, 2], rtol=1e-6)
    assert np.isnan(inverse[-1])  # a keypoint that nothing else shows


def test_two_views_agree_with_opencv(random):
    points, cameras = some_points(random), poses(random, 2)
    sightings, pixels = seen(points, cameras, 0.3, random)
    projections = [CAMERA.matrix @ invert(pose)[:3] for pose in cameras]
    homogeneous = cv2.triangulatePoints(*projections, pixels[0].T, pixels[1].T)
    ours = 1 / triangulate(sightings, len(points), 2 * PIXEL, ANGLE)
    theirs = homogeneous[2] / homogeneous[3]
    assert np.isfinite(ours).all()
    # OpenCV shares the error between both views, we leave it all to the other one.
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)
    assert np.median(np.abs(ours - points[:, 2])) < 1.1 * np.median(np.abs(theirs - points[:, 2]))


def test_many_views_reach_the_least_squares_of_scipy(random):
    points = some_points(random, 20)
    sightings, _ = seen(points, poses(random, 5), 0.5, random)
    found = triangulate(sightings, len(points), 10 * PIXEL, ANGLE)
    for number, inverse in enumerate(found):
        rows = np.flatnonzero(sightings.keypoint == number)

        def squares(value, rows=rows):
            at = sightings.ray[rows] + value * sightings.offset[rows]
            sines = np.linalg.norm(np.cross(at, sightings.seen[rows]), axis=1) / np.linalg.norm(at, axis=1)
            return np.sum(sines**2)

        best = minimize_scalar(squares, bounds=(0.1, 1.0), method="bounded", options={"xatol": 1e-10})
        assert inverse == pytest.approx(best.x, rel=1e-4)


def test_wrong_matches_are_outvoted(random):
    points, cameras = some_points(random), poses(random, 6)
    sightings, _ = seen(points, cameras, 0.2, random)
    wrong = sightings.keypoint.size // 5  # all of one camera
    other = sightings.seen.copy()
    other[:wrong] = np.roll(other[:wrong], 1, axis=0)
    found = 1 / triangulate(sightings._replace(seen=other), len(points), 2 * PIXEL, ANGLE)
    assert np.median(np.abs(found - points[:, 2])) < 0.01
    assert np.mean(np.abs(found - points[:, 2]) < 0.05) > 0.95


def test_nothing_is_told_by_a_camera_that_turns_or_hardly_moves(random):
    points, cameras = some_points(random), poses(random, 4)
    cameras[:, :3, 3] = 0
    assert np.isnan(triangulate(seen(points, cameras)[0], len(points), PIXEL, ANGLE)).all()
    cameras[1:, :3, 3] = (0.05, 0, 0)  # seen from 2 m: 1.4°
    assert np.isnan(triangulate(seen(points, cameras)[0], len(points), PIXEL, ANGLE)).all()
    assert np.isfinite(triangulate(seen(points, cameras)[0], len(points), PIXEL, np.radians(0.5))).all()


def test_rays_that_meet_behind_the_cameras_or_pass_each_other_have_no_point(random):
    points, cameras = some_points(random), poses(random, 2)
    cameras[1] = np.eye(4)
    cameras[1, 0, 3] = 0.5
    sightings, _ = seen(points, cameras)
    behind = sightings._replace(offset=-sightings.offset)
    assert np.isnan(triangulate(behind, len(points), PIXEL, ANGLE)).all()
    aside = sightings.seen + np.array([0, 0.02, 0])  # ten pixels off the epipolar line
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    assert np.isnan(triangulate(sightings._replace(seen=aside), len(points), PIXEL, ANGLE)).all()


def test_no_sightings_are_no_depth():
    none = Sightings(np.zeros(0, int), *np.zeros((3, 0, 3)))
    assert np.isnan(triangulate(none, 4, PIXEL, ANGLE)).all()
