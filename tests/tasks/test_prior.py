import numpy as np
import pytest

from locus.errors import LocusError
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap, merge
from locus.tasks.localize import localize_features
from locus.tasks.prior import AROUND, Prior
from tests.landmarks import places
from tests.scenes import room


@pytest.fixture(scope="module")
def world():
    return LandmarkMap.build(places.model(), places.seen(places.scene(room.shots(16))))


@pytest.fixture(scope="module")
def far(world):
    """The room, and a second one whose frames were taken 100 m away."""
    shots = room.shots(8)
    for shot in shots:
        shot.world_from_camera = shot.world_from_camera + np.array([[0, 0, 0, 100.0]] + [[0.0] * 4] * 3)
    return LandmarkMap.build(places.model(), places.seen(places.scene(shots, "hall"), world=1))


def test_only_frames_around_the_pose_and_what_they_show_are_left(world):
    position = world.frames.world_from_camera[0, :3, 3]
    pose = np.eye(4)
    pose[:3, 3] = position + np.array([AROUND, 0, 0])
    narrow = Prior(pose, metres=1.0).narrowed(world)
    away = np.linalg.norm(world.frames.world_from_camera[:, :3, 3] - pose[:3, 3], axis=1)
    left = np.flatnonzero(away <= AROUND + 1.0)
    assert 0 < len(left) < len(world.frames)
    assert narrow.frame_names == tuple(world.frame_names[row] for row in left)
    shown = {tuple(at) for row in left for at in world.landmarks.position[world.sightings[row].indices]}
    assert {tuple(at) for at in narrow.landmarks.position} == shown
    assert narrow.sightings.sum() == world.sightings[left].sum()


def test_a_right_prior_leaves_the_pose_right(world):
    shot = places.wanderer(1)[0]
    prior = Prior(shot.world_from_camera, metres=0.5, degrees=10)
    found = prior.checked(localize_features(prior.narrowed(world), places.features(shot), places.CAMERA))
    assert pose_error(found.world_from_camera, shot.world_from_camera)[0] < 0.1


@pytest.mark.parametrize(("moved", "turned"), [(1.5, False), (0.0, True)])
def test_an_answer_farther_away_than_the_prior_allows_is_none(world, moved, turned):
    shot = places.wanderer(1)[0]
    pose = shot.world_from_camera.copy()
    pose[0, 3] += moved
    if turned:
        pose[:3, :3] = pose[:3, :3] @ np.diag([-1.0, -1.0, 1.0])
    prior = Prior(pose, metres=1.0, degrees=90)
    found = prior.checked(localize_features(prior.narrowed(world), places.features(shot), places.CAMERA))
    assert not found.here
    assert found.world_from_camera is None
    assert found.covariance is None
    assert "from the prior pose, and 1 m and 90° are allowed" in found.reason


def test_where_the_map_has_nothing_the_answer_says_so(world):
    pose = np.eye(4)
    pose[0, 3] = 50.0
    prior = Prior(pose)
    assert not len(prior.narrowed(world).frames)
    assert not prior.nowhere().here
    assert "within 7 m of the prior pose" in prior.nowhere().reason


def test_of_several_environments_the_prior_must_name_one(world, far):
    both = merge([world, far])
    with pytest.raises(LocusError, match="name the environment"):
        Prior(np.eye(4)).narrowed(both)
    assert Prior(np.eye(4), "room").narrowed(both).environments == ("room",)
    assert not len(Prior(np.eye(4), "hall").narrowed(both).frames)


@pytest.mark.parametrize("limits", [(0.0, 60.0), (np.inf, 60.0), (np.nan, 60.0), (1.0, 181.0), (1.0, -1.0)])
def test_limits_that_mean_nothing_are_refused(limits):
    with pytest.raises(LocusError, match="a prior pose is off by"):
        Prior(np.eye(4), None, *limits)
