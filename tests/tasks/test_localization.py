"""Localization with perfect features, and the defined answers where there is nothing to go by."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from locus.errors import LocusError
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap, MapError, merge
from locus.tasks.landmark_matches import likely_environments, match_landmarks
from locus.tasks.localize import localize, localize_features
from locus.tasks.uncertainty import deviations
from tests.landmarks import places
from tests.scenes import room

RGBD = pytest.mark.parametrize("with_depth", [True, False], ids=["RGB-D", "RGB"])


@pytest.fixture(scope="module")
def model():
    return places.model()


@pytest.fixture(scope="module")
def world(model):
    return LandmarkMap.build(model, places.seen(places.scene(room.shots(16))))


@pytest.fixture(scope="module")
def both(model, world):
    """A room and a hall of the same shape that looks different."""
    return merge([world, LandmarkMap.build(model, places.seen(places.scene(room.shots(8), "hall"), world=1))])


@pytest.fixture(scope="module")
def queries():
    return places.wanderer(6)


def locate(world, shot, with_depth=True, of_world=0, **options):
    depth = shot.depth.astype(np.float32) if with_depth else None
    return localize_features(world, places.features(shot, world=of_world), places.CAMERA, depth, **options)


def only(world, rows):
    """The map with some of its landmarks."""
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    return replace(world, landmarks=world.landmarks.take(rows), sightings=world.sightings[:, rows])


@RGBD
def test_perfect_features_give_the_pose(world, queries, with_depth):
    """Landmarks are 15 cm apart and a patch is as wide, so a single view is good to a fraction of that."""
    answers = [locate(world, shot, with_depth) for shot in queries]
    pairs = zip(answers, queries, strict=True)
    errors = np.array([pose_error(answer.world_from_camera, shot.world_from_camera) for answer, shot in pairs])
    assert np.median(errors[:, 0]) < 0.05
    assert np.median(errors[:, 1]) < 1
    assert errors[:, 0].max() < 0.1
    assert errors[:, 1].max() < 2.5
    for answer in answers:
        assert answer.here
        assert answer.reason == ""
        assert 0.5 < answer.confidence <= 1
        assert answer.inliers.mean() > 0.5


@RGBD
def test_inliers_are_where_the_pose_puts_them(world, queries, with_depth):
    answer = locate(world, queries[0], with_depth)
    matches = answer.matches
    assert len(matches) == len(answer.inliers)
    truth = places.shown(queries[0]).reshape(-1, 3)[matches.patch[answer.inliers]]
    away = np.linalg.norm(world.landmarks.position[matches.landmark[answer.inliers]] - truth, axis=1)
    assert np.median(away) < places.RADIUS


@RGBD
def test_the_right_place_is_named(both, queries, with_depth):
    for number, name in enumerate(("room", "hall")):
        for shot in queries[:2]:
            answer = locate(both, shot, with_depth, of_world=number)
            assert answer.environment == name
            assert pose_error(answer.world_from_camera, shot.world_from_camera)[0] < 0.15
            assert (both.landmarks.environment[answer.matches.landmark] == number).all()
            assert likely_environments(both, places.features(shot, world=number))[0] == number


@RGBD
def test_an_image_of_another_place_is_not_here(both, queries, with_depth):
    for shot in queries[:3]:
        answer = locate(both, shot, with_depth, of_world=7)
        assert not answer.here
        assert answer.world_from_camera is None
        assert answer.environment is None
        assert answer.reason.startswith("not here: ")


def test_the_threshold_is_the_least_confidence(world, queries):
    answer = locate(world, queries[0])
    assert locate(world, queries[0], min_confidence=answer.confidence).here
    above = locate(world, queries[0], min_confidence=answer.confidence + 0.01)
    assert not above.here
    assert f"confidence of {answer.confidence:.2f}" in above.reason
    assert above.confidence == answer.confidence


@RGBD
def test_the_same_seed_gives_the_same_answer(world, queries, with_depth):
    one, other = (locate(world, queries[1], with_depth, seed=3) for _ in range(2))
    assert np.array_equal(one.world_from_camera, other.world_from_camera)
    assert np.array_equal(one.inliers, other.inliers)
    assert one.confidence == other.confidence


@RGBD
def test_features_that_are_all_equal_are_nowhere(model, world, queries, with_depth):
    depth = queries[0].depth.astype(np.float32) if with_depth else None
    equal = torch.nn.functional.normalize(torch.ones(1, *places.GRID, places.DIMENSION), dim=-1)
    answer = localize_features(world, equal, places.CAMERA, depth)
    assert not answer.here
    assert answer.confidence == 0
    assert "agree on no pose" in answer.reason
    seen = places.seen(places.scene(room.shots(4)))
    blind = LandmarkMap.build(model, replace(seen, features=equal.expand(4, -1, -1, -1)[None].contiguous()))
    assert not localize_features(blind, equal, places.CAMERA, depth).here


@RGBD
def test_an_answer_says_how_exact_and_how_likely_it_is(world, queries, with_depth):
    for shot in queries:
        answer = locate(world, shot, with_depth)
        metres, degrees = deviations(answer.covariance)
        off = pose_error(answer.world_from_camera, shot.world_from_camera)
        assert np.linalg.eigvalsh(answer.covariance).min() > 0
        assert off[0] < 4 * metres < 2
        assert off[1] < 4 * degrees < 60
        told = answer.described()
        assert np.array_equal(told["covariance"], answer.covariance)
        assert told["probability"] == pytest.approx(answer.probability, abs=1e-4)
        assert f"± {metres:.2f} m" in answer.sentence
        assert f"with probability {answer.probability:.2f}" in answer.sentence


def test_what_is_not_here_has_neither_covariance_nor_probability(world, queries):
    refused = locate(world, queries[0], min_confidence=1.0)
    assert refused.covariance is None
    assert refused.probability is None
    assert "probability" not in refused.described()


def test_no_valid_depth_is_an_answer(world, queries):
    for depth in (0, np.nan):
        nothing = np.full((room.HEIGHT, room.WIDTH), depth, np.float32)
        answer = localize_features(world, places.features(queries[0]), places.CAMERA, nothing)
        assert not answer.here
        assert answer.reason == "not here: 0 matches agree on no pose (on 0 landmarks, 6 must)"
        assert answer.matches.stuck == 0


@RGBD
@pytest.mark.parametrize("count", [0, 3])
def test_a_map_of_a_few_landmarks_answers(world, queries, with_depth, count):
    answer = locate(only(world, np.arange(count)), queries[0], with_depth)
    assert not answer.here
    assert answer.reason.startswith("not here: ")


def test_what_does_not_fit_is_refused(model, world, queries):
    features = places.features(queries[0])
    with pytest.raises(LocusError, match="depth map is 40×30, the camera 80×60"):
        localize_features(world, features, places.CAMERA, np.ones((30, 40), np.float32))
    with pytest.raises(MapError, match=f"rows of {places.DIMENSION}"):
        localize_features(world, features[..., :5], places.CAMERA)
    with pytest.raises(LocusError, match="2 scales, the map 1"):
        localize_features(world, features.expand(2, -1, -1, -1), places.CAMERA)
    with pytest.raises(MapError, match="build the map again"):
        localize(world, places.model(seed=1), queries[0].image, places.CAMERA)
    with pytest.raises(LocusError, match="another aspect ratio"):
        localize(world, model, queries[0].image[:, :50], places.CAMERA)


def test_an_image_is_localized_with_a_model(model, tmp_path, monkeypatch):
    """From pixels to a pose, with the features of a network that knows every patch it has seen."""
    shots = room.shots(16)
    known = {shot.image.tobytes(): places.features(shot) for shot in shots}
    monkeypatch.setattr(type(model), "features", lambda self, image: known[image.tobytes()])
    world = LandmarkMap.build(model, places.seen(places.scene(shots)))
    world = LandmarkMap.load(world.save(tmp_path))
    for depth in (shots[3].depth.astype(np.float32), None):
        answer = world.localize(model, shots[3].image, places.CAMERA, depth)
        metres, degrees = pose_error(answer.world_from_camera, shots[3].world_from_camera)
        assert metres < 0.06
        assert degrees < 1.2
        assert answer.environment == "room"


@RGBD
def test_a_camera_that_only_turned_is_found(model, with_depth):
    """All frames of the map and the query are taken from one spot."""
    eye = np.array([-1.2, 0.9, 1.6])
    turned = [room.look(tuple(eye), (0.8 + x, -0.6 + y, z)) for x in (0, 0.5) for y in (0, 0.4) for z in (0.4, 0.8)]
    world = LandmarkMap.build(
        model, places.seen(places.scene([room.shoot(f"{k}", pose) for k, pose in enumerate(turned)]))
    )
    shot = room.shoot("query", room.look(tuple(eye), (1.1, -0.3, 0.6)))
    metres, degrees = pose_error(locate(world, shot, with_depth).world_from_camera, shot.world_from_camera)
    assert metres < 0.1
    assert degrees < 2.5


@RGBD
def test_a_map_of_one_wall_is_enough(model, with_depth):
    shots = [room.shoot(f"{x}", room.look((x, -1.2, 1.3), (x / 2, 1.5, 1.6))) for x in np.linspace(-1.4, 1.2, 8)]
    world = LandmarkMap.build(model, places.seen(places.scene(shots)))
    wall = only(world, np.abs(world.landmarks.position[:, 1] - 1.5) < 1e-3)
    assert len(wall) > 50
    shot = room.shoot("query", room.look((0.2, -1.1, 1.5), (-0.3, 1.5, 1.7)))
    metres, degrees = pose_error(locate(wall, shot, with_depth).world_from_camera, shot.world_from_camera)
    # Of a plane straight ahead, pixels alone tell a step aside from a turn badly.
    assert metres < (0.1 if with_depth else 0.5)
    assert degrees < (2.5 if with_depth else 10)


@pytest.fixture(scope="module")
def one_view(model):
    """A map of a view that hardly moves: every landmark was always at the same place in the image."""
    poses = [room.look((1.5 + 0.01 * k, 0.9, 1.7), (-0.6, -0.4, 0.5)) for k in range(3)]
    return [room.shoot(f"{k}", pose) for k, pose in enumerate(poses)]


def test_a_shift_of_the_image_is_followed(model, one_view, monkeypatch):
    """The same camera with another principal point: all that it sees is six patches further to the left."""
    world = LandmarkMap.build(model, places.seen(places.scene(one_view)))
    pose = one_view[1].world_from_camera
    assert locate(world, one_view[1]).matches.stuck > 0.9
    monkeypatch.setattr(room, "CX", room.CX - 24)
    monkeypatch.setattr(places, "CAMERA", replace(places.CAMERA, cx=room.CX))
    shot = room.shoot("shifted", pose)
    rows, columns = places.GRID
    by_chance = 7 * 7 / (rows * columns)  # three patches to each side
    for with_depth in (True, False):
        moved = locate(world, shot, with_depth)
        metres, degrees = pose_error(moved.world_from_camera, pose)
        assert metres < 0.1
        assert degrees < 2.5
        assert moved.matches.stuck < by_chance


def test_features_that_know_only_the_place_in_the_image_are_stuck(model, one_view):
    at = np.stack(np.meshgrid(np.arange(20.0), np.arange(15.0)), axis=-1) * 0.1
    positional = places.perfect(np.concatenate([at, np.zeros((15, 20, 1))], axis=-1))
    seen = places.seen(places.scene(one_view))
    world = LandmarkMap.build(model, replace(seen, features=positional.expand(1, 3, -1, -1, -1).contiguous()))
    pose = one_view[0].world_from_camera.copy()
    pose[:3, :3] = pose[:3, :3] @ Rotation.from_euler("y", 25, degrees=True).as_matrix()
    turned = room.shoot("turned", pose)
    answer = localize_features(world, positional[None], places.CAMERA, turned.depth.astype(np.float32))
    assert answer.matches.stuck > 0.95
    assert match_landmarks(world, positional, (room.WIDTH, room.HEIGHT)).stuck > 0.95


def test_a_match_three_patches_right_and_three_down_of_its_landmark_is_not_stuck(world, queries):
    """Stuck is a Euclidean distance, as it is for matches of two images."""
    rows, columns = places.GRID
    matches = match_landmarks(world, places.features(queries[0])[0], (columns, rows))
    moved = matches.pixel - world.landmarks.seen_at[matches.landmark] * [columns, rows]  # in patches
    distance = np.hypot(*moved.T)
    diagonal = (np.abs(moved).max(axis=1) <= 3) & (distance > 3)
    assert diagonal.any()
    assert matches.stuck == pytest.approx((distance <= 3).mean())


def test_matches_without_depth_do_not_count_as_stuck(world, queries):
    depth = queries[0].depth.astype(np.float32)
    depth[:, : room.WIDTH // 2] = 0
    matches = localize_features(world, places.features(queries[0]), places.CAMERA, depth).matches
    assert (matches.pixel[:, 0] > room.WIDTH / 2).all()
    assert matches.stuck == pytest.approx(matches.stuck_mask.mean())


def test_depth_of_another_unit_is_said(world, queries):
    """Five times too far, nothing fits; but by colour alone the image is found, so it is the depth that is wrong."""
    far = 5 * queries[0].depth.astype(np.float32)
    answer = localize_features(world, places.features(queries[0]), places.CAMERA, far)
    assert not answer.here
    assert "by colour alone it is in room, but its depth is 4.89 times what the map has" in answer.reason
    assert "is it in metres?" in answer.reason
    assert "depth" not in locate(world, queries[0], of_world=1).reason


def test_millimetres_and_intrinsics_of_another_image_are_told_in_python(model, world, queries):
    image = np.zeros((places.CAMERA.height, places.CAMERA.width, 3), np.uint8)
    depth = (1000 * queries[0].depth).astype(np.uint16)
    with pytest.raises(LocusError, match="depth is in metres, a float32 array, not uint16; divide millimetres by 1000"):
        localize(world, model, image, places.CAMERA, depth)
    small = replace(places.CAMERA, cx=places.CAMERA.cx / 2, cy=places.CAMERA.cy / 2)
    with pytest.warns(UserWarning, match="were images resized or cropped after the calibration"):
        localize(world, model, image, small)
