"""Motions with perfect features, with exact matches of random points, and where matches cannot tell one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.stats import binom, chi2
from torch.nn.functional import normalize

from locus.errors import LocusError
from locus.evaluation.calibration import squared_error
from locus.geometry import Camera, pose_error, transform
from locus.scenes.patches import points_at
from locus.tasks.five_point import Rays, directions
from locus.tasks.matching import Matches, match
from locus.tasks.probability import inflation
from locus.tasks.relative_pose import by_chance, relative_pose
from locus.tasks.uncertainty import offset
from tests.scenes import room
from tests.tasks.views import CAMERA, SIZE, direction_error, motion, perfect

WIDE = Camera(400, 300, 250.0, 260.0, 205.0, 148.0)


def matched(pixels_a, pixels_b, camera_a=WIDE, camera_b=WIDE, grid=(30, 40)):
    """Pixels as matches of patches of 10 pixels."""
    count = np.arange(len(pixels_a))
    sizes = [(camera.width, camera.height) for camera in (camera_a, camera_b)]
    return Matches(pixels_a, pixels_b, np.linspace(1, 0.5, len(count)), count, count, *sizes, grid, grid)


def turned(degrees, axis, translation):
    pose = np.eye(4)
    axis = np.array(axis, float) / np.linalg.norm(axis)
    pose[:3, :3] = Rotation.from_rotvec(np.radians(degrees) * axis).as_matrix()
    pose[:3, 3] = translation
    return pose


def seen(points_a, b_from_a, camera_b=WIDE, noise=0.0, wrong=0, seed=0):
    """Matches of points in camera A's frame, as camera B sees them, the last `wrong` of them replaced by chance."""
    random = np.random.default_rng(seed)
    points_b = transform(b_from_a, points_a)
    a, b = WIDE.project(points_a)[0], camera_b.project(points_b)[0]
    b = b + noise * random.normal(size=b.shape)
    if wrong:
        b[-wrong:] = random.uniform(0, [camera_b.width, camera_b.height], (wrong, 2))
    return matched(a, b, WIDE, camera_b), points_b


def cloud(count=120, seed=0):
    random = np.random.default_rng(seed)
    return WIDE.unproject(random.uniform([20, 20], [380, 280], (count, 2)), random.uniform(1.5, 5, count))


MOTION = turned(20, (0.2, 1, 0.1), (-0.8, 0.1, 0.3))


@pytest.mark.parametrize("pair", [(0, 1), (3, 4), (8, 10), (12, 13)])
@pytest.mark.parametrize("solver", ["5-point", "3d-3d"])
def test_perfect_features_give_the_pose_to_a_degree(pair, solver):
    shots = room.shots(20)
    a, b = (shots[i] for i in pair)
    matches = match(perfect(a), perfect(b), SIZE, SIZE)
    points = [points_at(shot.depth, CAMERA, pixels) for shot, pixels in ((a, matches.pixels_a), (b, matches.pixels_b))]
    found = relative_pose(matches, CAMERA, CAMERA, *(points if solver == "3d-3d" else ()))
    assert found.solver == solver
    truth = motion(a, b)
    assert pose_error(found.b_from_a, truth)[1] <= 1
    assert direction_error(found.b_from_a, truth) <= 3
    assert found.probability > 0.5
    assert found.direction_known
    assert found.metric == (solver == "3d-3d")
    if found.metric:
        assert pose_error(found.b_from_a, truth)[0] < 0.03
    else:
        assert np.linalg.norm(found.b_from_a[:3, 3]) == pytest.approx(1)


def test_two_different_cameras_and_a_third_of_the_matches_wrong():
    other = Camera(640, 480, 500.0, 480.0, 300.0, 250.0)
    matches, _ = seen(cloud(), MOTION, other, noise=0.3, wrong=40)
    found = relative_pose(matches, WIDE, other, threshold=1.5)
    assert pose_error(found.b_from_a, MOTION)[1] < 0.6
    assert direction_error(found.b_from_a, MOTION) < 3
    assert found.inliers[:80].mean() > 0.9
    assert found.inliers[80:].mean() < 0.2
    assert found.reason == ""


def test_the_same_seed_gives_the_same_answer():
    matches, _ = seen(cloud(), MOTION, noise=0.5, wrong=40)
    first, second = (relative_pose(matches, WIDE, WIDE, seed=3).b_from_a for _ in range(2))
    assert np.array_equal(first, second)


@given(st.integers(0, 2**31))
def test_cheirality_is_that_of_the_points_themselves(seed):
    random = np.random.default_rng(seed)
    pose = turned(random.uniform(5, 170), random.normal(size=3), random.normal(size=3))
    points_a = random.normal(size=(30, 3)) * 3
    points_b = transform(pose, points_a)
    # Rays at depth 1: a point behind a camera is seen in the opposite direction.
    rays = Rays(points_a / points_a[:, 2:], points_b / points_b[:, 2:])
    assert np.array_equal(rays.in_front(pose), (points_a[:, 2] > 0) & (points_b[:, 2] > 0))


def test_after_a_pure_rotation_the_direction_is_said_to_be_unknown():
    rotation = turned(12, (0.1, 1, 0), (0, 0, 0))
    matches, _ = seen(cloud(), rotation, noise=0.3, wrong=20)
    found = relative_pose(matches, WIDE, WIDE)
    assert pose_error(found.b_from_a, rotation)[1] < 0.5
    assert not found.direction_known
    assert not found.b_from_a[:3, 3].any()
    assert "direction of the translation is not known" in found.reason
    assert "same image position" not in found.reason


@pytest.mark.parametrize("count", [5, 6, 7, 8, 9])
def test_a_few_matches_of_a_pure_rotation_name_no_direction(count):
    rotation = turned(12, (0.1, 1, 0), (0, 0, 0))
    for seed in range(10):
        matches, _ = seen(cloud(count, seed), rotation, seed=seed)
        found = relative_pose(matches, WIDE, WIDE, seed=seed)
        assert not found.direction_known
        assert (found.b_from_a is not None) == (count >= 8)
        if found.b_from_a is not None:
            assert pose_error(found.b_from_a, rotation)[1] < 0.1


@pytest.mark.parametrize(("count", "known"), [(7, False), (8, True)])
def test_eight_exact_matches_of_a_motion_are_enough(count, known):
    found = relative_pose(seen(cloud(count), MOTION)[0], WIDE, WIDE, min_probability=0.0)
    assert found.direction_known == known
    if known:
        assert direction_error(found.b_from_a, MOTION) < 0.1
    else:
        assert found.reason == "7 of 7 matches agree on a motion; to tell it from a rotation takes 8"


def test_depth_tells_a_pure_rotation():
    rotation = turned(12, (0.1, 1, 0), (0, 0, 0))
    points = cloud()
    matches, points_b = seen(points, rotation)
    found = relative_pose(matches, WIDE, WIDE, points, points_b)
    assert pose_error(found.b_from_a, rotation) == pytest.approx((0, 0), abs=1e-6)
    assert found.metric
    assert found.direction_known


def test_matches_that_are_all_stuck_look_like_no_motion_and_it_is_said():
    pixels, _ = WIDE.project(cloud())
    found = relative_pose(matched(pixels, pixels), WIDE, WIDE)
    assert pose_error(found.b_from_a, np.eye(4))[1] == pytest.approx(0, abs=1e-6)
    assert "same image position" in found.reason


@pytest.mark.parametrize(
    ("translation", "poses"), [((0.4, 0.1, -1.0), 2), ((-0.8, 0.1, 0.3), 1)], ids=["towards", "along"]
)
def test_going_towards_a_plane_leaves_two_poses_going_along_it_only_the_right(translation, poses):
    """The other pose swaps the plane's normal for the translation: its wall is in front if one goes towards it."""
    truth = turned(10, (0.2, 1, 0.1), translation)
    pixels = np.random.default_rng(4).uniform([20, 20], [380, 280], (150, 2))
    rays = directions(WIDE, pixels)
    wall = rays * (-3 / (rays @ [0.3, 0.2, -1.0]))[:, None]  # slanted, three metres away
    matches, _ = seen(wall, truth, noise=0.1)
    found = relative_pose(matches, WIDE, WIDE, threshold=1.0)
    fitting = [found.b_from_a, *([] if found.alternative is None else [found.alternative])]
    assert ("plane" in found.reason) == (len(fitting) == 2)
    assert min(pose_error(pose, truth)[1] for pose in fitting) < 1.5
    if poses == 2:
        assert pose_error(*fitting)[1] > 3
    else:
        assert len(fitting) == 1


def test_depth_tells_a_plane():
    wall = cloud() * [1, 1, 0] + [0, 0, 3]
    matches, points_b = seen(wall, MOTION)
    found = relative_pose(matches, WIDE, WIDE, wall, points_b)
    assert pose_error(found.b_from_a, MOTION) == pytest.approx((0, 0), abs=1e-4)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_fewer_than_five_matches_give_no_pose(count):
    matches, _ = seen(cloud(count), MOTION)
    found = relative_pose(matches, WIDE, WIDE)
    assert found.b_from_a is None
    assert "5-point needs 5" in found.reason
    assert found.probability is None
    assert found.inliers.shape == (count,)
    assert not found.direction_known


def test_five_matches_fit_anything_and_so_tell_nothing():
    matches, _ = seen(cloud(5), MOTION)
    assert "chance" in relative_pose(matches, WIDE, WIDE).reason


def test_many_matches_with_one_spot_count_as_one():
    matches, _ = seen(cloud(), MOTION)
    same = Matches(
        matches.pixels_a,
        np.repeat(matches.pixels_b[:1], 120, axis=0),
        matches.scores,
        matches.patches_a,
        np.zeros(120, int),
        matches.size_a,
        matches.size_b,
        matches.grid_a,
        matches.grid_b,
    )
    assert "120 matches of 1 distinct patches" in relative_pose(same, WIDE, WIDE).reason


def test_matches_without_depth_are_counted_out():
    points = cloud()
    matches, points_b = seen(points, MOTION)
    points_b[2:] = np.nan
    found = relative_pose(matches, WIDE, WIDE, points, points_b)
    assert found.reason == "120 matches, 2 with depth in both images; 3D–3D needs 3"
    points_b = transform(MOTION, points)
    points_b[::3] = np.nan
    found = relative_pose(matches, WIDE, WIDE, points, points_b)
    assert pose_error(found.b_from_a, MOTION) == pytest.approx((0, 0), abs=1e-6)
    assert np.array_equal(found.inliers, np.isfinite(points_b).all(axis=1))


def test_points_on_a_line_leave_the_rotation_about_it_open():
    line = np.linspace([-1, 0.2, 2], [1, 0.1, 4], 40) + 0.01 * np.random.default_rng(0).normal(size=(40, 3))
    matches, points_b = seen(line, MOTION)
    assert "on a line" in relative_pose(matches, WIDE, WIDE, line, points_b).reason


@pytest.mark.parametrize("solver", ["5-point", "3d-3d"])
def test_matches_by_chance_give_no_pose(solver):
    """Two views that share nothing."""
    refused = 0
    for seed in range(5):
        random = np.random.default_rng(seed)
        points_a, points_b = cloud(60, seed), cloud(60, seed + 100)
        matches = matched(*(WIDE.project(points)[0] for points in (points_a, random.permutation(points_b))))
        points_b = random.permutation(points_b)
        found = relative_pose(matches, WIDE, WIDE, *((points_a, points_b) if solver == "3d-3d" else ()))
        refused += found.b_from_a is None
    assert refused >= 4


@pytest.mark.parametrize("scale", [0, 1])
def test_views_without_overlap_and_all_equal_features_give_no_pose(scale):
    generator = torch.Generator().manual_seed(5)
    a, b = (normalize(1 + scale * torch.randn(1, 12, 16, 32, generator=generator), dim=-1) for _ in range(2))
    found = relative_pose(match(a, b, SIZE, SIZE), CAMERA, CAMERA)
    assert found.b_from_a is None
    assert found.reason


def test_chance_is_bounded_by_the_binomial():
    """What is refused is what a fixed motion, tried as often as there are samples, would reach once."""
    for count, agreeing, chance in [(60, 12, 0.03), (60, 25, 0.03), (200, 30, 0.1), (20, 8, 0.001)]:
        tries = 10 * np.prod(np.arange(count - 4, count + 1)) / 120
        expected = tries * binom.sf(agreeing - 6, count - 5, chance)
        if expected > 1:
            assert by_chance(count, agreeing, 5, chance, solutions=10)
    assert not by_chance(60, 40, 5, 0.03, solutions=10)
    assert by_chance(60, 5, 5, 0.03)


def test_points_are_looked_up_where_the_pixels_are():
    depth = np.zeros((room.HEIGHT, room.WIDTH))
    depth[10:20, 30:40] = 2.0
    pixels = np.array([[35.2, 15.7], [5.0, 5.0], [float(room.WIDTH), float(room.HEIGHT)]])
    points = points_at(depth, CAMERA, pixels)
    assert np.allclose(points[0], 2 * directions(CAMERA, pixels[:1])[0])
    assert np.isnan(points[1:]).all()


@pytest.mark.parametrize(("solver", "freedom"), [("5-point", 5), ("3d-3d", 6)])
def test_errors_of_the_solvers_are_as_large_as_their_covariance_says(solver, freedom):
    """NEES of estimates under independent noise, without the inflation that was measured with patches."""
    unit = MOTION.copy()
    unit[:3, 3] /= np.linalg.norm(unit[:3, 3])
    values = []
    for seed in range(60):
        points = cloud(seed=seed)
        matches, points_b = seen(points, MOTION, noise=1.0, seed=seed)
        noise = 0.01 * points[:, 2:] * np.random.default_rng(seed).normal(size=points.shape)
        known = (points, points_b + noise) if solver == "3d-3d" else ()
        found = relative_pose(matches, WIDE, WIDE, *known, threshold=0.5 if known else 5.0)
        assert 0 < found.probability < 1
        truth = MOTION if found.metric else unit
        by_residuals = found.covariance / inflation(solver)
        values.append(squared_error(offset(found.b_from_a, truth), by_residuals, freedom))
    low, high = chi2.ppf([0.0005, 0.9995], freedom * len(values)) / len(values)
    assert 0.9 * low < np.mean(values) < 1.15 * high


def test_without_a_direction_there_is_no_covariance_and_the_probability_is_that_of_the_rotation():
    matches, _ = seen(cloud(), turned(12, (0.1, 1, 0), (0, 0, 0)), noise=0.3, wrong=20)
    found = relative_pose(matches, WIDE, WIDE)
    assert found.b_from_a is not None
    assert found.covariance is None
    assert found.evidence.kind == "rotation"
    assert found.evidence.degrees == pytest.approx(0.05, abs=0.04)
    assert 0.5 < found.probability < 1


def test_what_does_not_fit_is_refused():
    matches, _ = seen(cloud(), MOTION)
    with pytest.raises(LocusError, match="image B of 400×300 pixels, its camera is for 80×60"):
        relative_pose(matches, WIDE, CAMERA)
