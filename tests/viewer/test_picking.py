import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from locus.geometry import Camera
from locus.viewer.picking import Hit, Ray, Screen, first, hit_image, hit_point, hit_sphere

AHEAD = Ray.of((0, 0, 0), (0, 0, 2))
CAMERA = Camera(80, 60, 62.0, 63.0, 41.0, 28.5)
number = st.floats(-3, 3)


def everything(points: np.ndarray) -> np.ndarray:
    return np.ones(len(points), bool)


def test_the_first_surface_hides_those_behind_it():
    points = np.array([[0, 0, 5], [0.001, 0, 2], [0, 0, 8], [1, 0, 1]], np.float32)
    hit = hit_point(AHEAD, points, everything(points), 0.01)
    assert hit == Hit("point", 1, 2.0)


def test_of_one_surface_the_point_closest_to_the_ray_is_meant():
    points = np.array([[0.009, 0, 2], [0.001, 0, 2.02]], np.float32)
    hit = hit_point(AHEAD, points, everything(points), 0.01)
    assert hit is not None
    assert hit.index == 1


def test_points_that_are_hidden_behind_the_eye_or_off_the_ray_are_not_hit():
    points = np.array([[0, 0, 5], [0, 0, -1], [0.3, 0, 2]], np.float32)
    assert hit_point(AHEAD, points, np.array([False, True, True]), 0.01) is None
    assert hit_point(AHEAD, points[:0], everything(points[:0]), 0.01) is None


@given(st.lists(st.tuples(number, number, number), min_size=1, max_size=20), st.integers(0, 1000))
def test_a_hit_sphere_is_met_where_the_quadratic_equation_says_and_no_other_before_it(centres, seed):
    direction = np.random.default_rng(seed).normal(size=3)
    ray, radii = Ray.of((0.1, 0.2, 0.3), tuple(direction)), np.linspace(0.1, 0.5, len(centres))
    fronts = {}
    for index, (centre, radius) in enumerate(zip(centres, radii, strict=True)):
        offset = ray.origin - np.array(centre)
        roots = np.roots([1.0, 2 * ray.direction @ offset, offset @ offset - radius**2])
        if np.isrealobj(roots) and roots.min() > 0:
            fronts[index] = float(roots.min())
    hit = hit_sphere(ray, np.array(centres, float), radii, np.ones(len(centres), bool))
    assert (None if hit is None else hit.distance) == (pytest.approx(min(fronts.values())) if fronts else None)


def test_a_sphere_that_is_not_shown_or_holds_the_eye_is_not_hit():
    centres, radii = np.array([[0, 0, 2.0], [0, 0, 0.1], [0, 0, 4.0]]), np.array([0.5, 0.5, 1.0])
    hit = hit_sphere(AHEAD, centres, radii, np.array([False, True, True]))
    assert hit == Hit("landmark", 2, 3.0)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.integers(0, 1000))
def test_an_image_is_hit_at_the_pixel_that_is_pointed_at(x, y, seed):
    random = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.random(rng=random).as_matrix(), random.normal(size=3)
    screen = Screen.of(CAMERA, pose, 0.3)
    point = screen.points(np.array([[x, y]]))[0]
    eye = pose[:3, 3] + random.normal(size=3)
    hit = hit_image(Ray.of(tuple(eye), tuple(point - eye)), [screen])
    assert hit is not None
    assert hit.at == pytest.approx((x, y), abs=1e-6)
    assert hit.distance == pytest.approx(np.linalg.norm(point - eye))


def test_a_ray_beside_an_image_or_along_it_hits_nothing():
    screen = Screen.of(CAMERA, np.eye(4), 0.3)
    outside = screen.points(np.array([[1.01, 0.5]]))[0]
    assert hit_image(Ray.of((0, 0, 0), tuple(outside)), [screen]) is None
    assert hit_image(Ray.of((0, 0, 0), (1, 0, 0)), [screen]) is None
    assert hit_image(Ray.of((0, 0, 0), (0, 0, -1)), [screen]) is None


def test_an_image_hangs_where_its_camera_sees_it():
    centred = Camera(80, 60, 62.0, 63.0, 40.0, 30.0)
    corner = Screen.of(centred, np.eye(4), 0.3).points(np.array([[0.0, 1.0]]))
    assert np.allclose(centred.project(corner)[0], [0, 60])


def test_the_nearest_of_all_kinds_is_meant():
    near, far = Hit("point", 3, 1.0), Hit("image", 0, 2.0, (0.5, 0.5))
    assert first(far, None, near) == near
    assert first(None, None) is None
