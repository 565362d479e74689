"""Localization with points: made-up keypoints and descriptors, so that the truth is known to the millimetre."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from locus.errors import LocusError, WeightsError
from locus.geometry import invert, pose_error, transform
from locus.keypoints import Keypoints
from locus.keypoints.fusion import PlacedKeypoints
from locus.keypoints.lightglue import assigned
from locus.landmarks import LandmarkMap, merge
from locus.landmarks.points import WHOLE, MapPoints, in_8_bits, starts
from locus.tasks import localize_points, placed_points
from locus.tasks.localize import localize, localize_features
from tests.landmarks import places
from tests.scenes import room

WIDTH, HEIGHT = room.WIDTH, room.HEIGHT
RGBD = pytest.mark.parametrize("with_depth", [True, False], ids=["RGB-D", "RGB"])


class Alike:
    """Matches what looks the same, as a network would."""

    fingerprint = "alike"

    def match(self, a, b):
        cosines = a.keypoints.descriptors @ b.keypoints.descriptors.T
        return assigned(torch.where(cosines > 0.9, cosines - 1, -10.0), 0.5)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setattr(localize_points, "point_matcher", Alike)


@pytest.fixture(scope="module")
def spots():
    """Four hundred spots of the room, seen in its views, each with a look of its own."""
    random = np.random.default_rng(0)
    return _shown(room.shots(16)[0], random, 400)


def _shown(shot, random, count):
    pixels = random.uniform((1, 1), (WIDTH - 1, HEIGHT - 1), (count, 2))
    z = shot.depth[pixels[:, 1].astype(int), pixels[:, 0].astype(int)]
    return transform(shot.world_from_camera, places.CAMERA.unproject(pixels, z.astype(np.float64)))


def looks(count, seed=0):
    return F.normalize(torch.from_numpy(np.random.default_rng(seed).normal(size=(count, 64))).float(), dim=-1)


def seen_by(shot, spots, strangers=0):
    """The spots as keypoints of a shot, exactly where it sees them, and where in the camera's frame they are.

    The first strangers look like other spots: their matches are wrong.
    """
    points = transform(invert(shot.world_from_camera), spots)
    pixels, z = places.CAMERA.project(points)
    kept = np.flatnonzero((z > 0.1) & (pixels > 0).all(axis=1) & (pixels < [WIDTH, HEIGHT]).all(axis=1))
    descriptors = looks(len(spots))[kept]
    descriptors[:strangers] = descriptors[:strangers].roll(1, dims=0)
    keypoints = Keypoints(pixels[kept], np.ones(len(kept)), descriptors, (WIDTH, HEIGHT))
    return PlacedKeypoints(keypoints, torch.zeros(1, len(kept), places.DIMENSION)), kept


def with_points(world, shots, spots):
    parts = [seen_by(shot, spots) for shot in shots]
    count = np.array([len(kept) for _, kept in parts], np.int32)
    pixels = np.concatenate([placed.keypoints.pixels for placed, _ in parts])
    of_points = MapPoints(
        start=starts(count),
        count=count,
        size=np.tile(np.array([[WIDTH, HEIGHT]], np.int32), (len(parts), 1)),
        pixel=(pixels / [WIDTH, HEIGHT] * WHOLE).round().astype(np.uint16),
        position=np.concatenate([spots[kept] for _, kept in parts]).astype(np.float32),
        descriptor=np.concatenate([in_8_bits(placed.keypoints.descriptors.numpy()) for placed, _ in parts]),
        places=np.zeros((int(count.sum()), 1, places.DIMENSION), np.int8),
        detector="made up",
    )
    return replace(world, points=of_points)


@pytest.fixture(scope="module")
def bare():
    return LandmarkMap.build(places.model(), places.seen(places.scene(room.shots(16))))


@pytest.fixture(scope="module")
def world(bare, spots):
    return with_points(bare, room.shots(16), spots)


def depth_at(shot, placed, spots, kept):
    """A depth map that is right at the keypoints, however slanted the surface is around them."""
    depth = shot.depth.astype(np.float32).copy()
    x, y = placed.keypoints.pixels.astype(int).T
    depth[y, x] = transform(invert(shot.world_from_camera), spots[kept])[:, 2]
    return depth


def locate(world, shot, spots, with_depth=False, strangers=0, **options):
    placed, kept = seen_by(shot, spots, strangers=strangers)
    depth = depth_at(shot, placed, spots, kept) if with_depth else None
    return localize_features(world, places.features(shot), places.CAMERA, depth, placed, **options)


@RGBD
@pytest.mark.parametrize("strangers", [0, 40])
def test_points_give_the_pose_to_the_millimetre(world, spots, with_depth, strangers):
    shot = places.wanderer(1)[0]
    found = locate(world, shot, spots, with_depth, strangers)
    metres, degrees = pose_error(found.world_from_camera, shot.world_from_camera)
    assert found.how == "points"
    assert metres < 1e-3
    assert degrees < 0.02
    assert found.environment == "room"
    wrong = found.points.keypoint < strangers
    assert not found.points.inliers[wrong].any()
    assert found.points.inliers[~wrong].mean() > 0.95


def test_an_answer_says_how_it_was_found(world, bare, spots):
    shot = places.wanderer(1)[0]
    for of_map, how in ((world, "points"), (bare, "landmarks")):
        found = locate(of_map, shot, spots)
        told = found.described(shot.world_from_camera)
        assert told["how"] == found.how == how
        assert f"matches with {how} agree" in found.sentence
        assert told["inliers"] == found.agreeing.sum() <= told["matches"] == len(found.agreeing)


def test_matches_name_the_frame_and_the_point_that_they_are_of(world, spots):
    shot = places.wanderer(1)[0]
    placed, kept = seen_by(shot, spots)
    points = locate(world, shot, spots).points
    assert np.allclose(points.position, spots[kept[points.keypoint]], atol=1e-6)
    assert np.array_equal(points.pixel, placed.keypoints.pixels[points.keypoint])
    assert 1 <= len(np.unique(points.frame)) <= localize_points.FRAMES


def test_a_larger_image_than_its_calibration_gives_the_same_pose(world, spots):
    shot = places.wanderer(1)[0]
    placed, _ = seen_by(shot, spots)
    twice = replace(placed.keypoints, pixels=2 * placed.keypoints.pixels, size=(2 * WIDTH, 2 * HEIGHT))
    found = localize_features(world, places.features(shot), places.CAMERA, None, replace(placed, keypoints=twice))
    assert pose_error(found.world_from_camera, shot.world_from_camera)[0] < 1e-3


@RGBD
def test_where_points_do_not_agree_landmarks_stand(world, bare, spots, with_depth):
    shot = places.wanderer(1)[0]
    points = world.points
    shuffled = np.random.default_rng(1).permutation(len(points.position))
    nowhere = replace(world, points=replace(points, position=points.position[shuffled]))
    found, expected = (locate(each, shot, spots, with_depth) for each in (nowhere, bare))
    assert found.how == "landmarks"
    assert np.array_equal(found.world_from_camera, expected.world_from_camera)
    assert found.confidence == expected.confidence


def test_an_image_of_elsewhere_is_not_here(world, spots):
    shot = places.wanderer(1)[0]
    placed, _ = seen_by(shot, spots)
    strange = replace(placed.keypoints, descriptors=looks(len(placed), seed=7))
    found = localize_features(
        world, places.features(shot, world=1), places.CAMERA, None, replace(placed, keypoints=strange)
    )
    assert not found.here
    assert found.how == "landmarks"


def test_an_image_without_keypoints_is_found_by_landmarks(world, spots):
    shot = places.wanderer(1)[0]
    placed, _ = seen_by(shot, spots)
    found = localize_features(world, places.features(shot), places.CAMERA, None, placed[:0])
    assert (found.here, found.how) == (True, "landmarks")


def test_several_environments_keep_their_points(world, bare, spots):
    hall = LandmarkMap.build(places.model(), places.seen(places.scene(room.shots(8), "hall"), world=1))
    both = merge([hall, world])
    assert both.points.count.tolist() == [0] * 8 + world.points.count.tolist()
    shot = places.wanderer(1)[0]
    found = locate(both, shot, spots)
    assert (found.environment, found.how) == ("room", "points")
    assert pose_error(found.world_from_camera, shot.world_from_camera)[0] < 1e-3
    assert merge([hall, bare]).points is None


def test_points_of_different_detectors_are_not_mixed(world):
    hall = replace(world, environments=("hall",), points=replace(world.points, detector="another"))
    with pytest.raises(LocusError, match="different detectors"):
        merge([world, hall])


def test_without_what_matches_points_a_warning_says_so_and_landmarks_are_used(world, monkeypatch):
    shot, model = places.wanderer(1)[0], places.model()

    def lacking():
        raise WeightsError("keypoint networks need kornia")

    monkeypatch.setattr(placed_points, "point_matcher", lacking)
    with pytest.warns(UserWarning, match="points of the map are not used: keypoint networks need kornia"):
        assert localize(world, model, shot.image, places.CAMERA).how == "landmarks"


def test_points_found_with_other_weights_are_not_used(world, monkeypatch):
    class Other:
        fingerprint = "xfeat of another day"

    monkeypatch.setattr(placed_points, "point_matcher", Alike)
    monkeypatch.setattr(placed_points, "point_detector", Other)
    with pytest.warns(UserWarning, match="found with other weights"):
        assert placed_points.query_points(world, np.zeros((4, 4, 3), np.uint8), torch.zeros(1, 2, 2, 128)) is None
