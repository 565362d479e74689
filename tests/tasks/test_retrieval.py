"""Frames of a map ranked by what they show, with perfect features and with features that know only the image."""

from dataclasses import replace

import numpy as np
import pytest

from locus.landmarks import LandmarkMap
from locus.tasks.frame_ranking import rank_frames
from tests.landmarks import places
from tests.scenes import room


@pytest.fixture(scope="module")
def model():
    return places.model()


@pytest.fixture(scope="module")
def shots():
    """Three of a view that hardly moves, and three of the other side of the room."""
    here = [room.look((1.5 + 0.01 * k, 0.9, 1.7), (-0.6, -0.4, 0.5)) for k in range(3)]
    there = [room.look((-1.5 - 0.01 * k, -0.9, 1.7), (0.6, 0.4, 0.5)) for k in range(3)]
    return [room.shoot(f"{k}", pose) for k, pose in enumerate([*here, *there])]


def test_a_shift_of_the_image_is_followed(model, shots, monkeypatch):
    """The same camera with another principal point: all that it sees is six patches further to the left."""
    world = LandmarkMap.build(model, places.seen(places.scene(shots)))
    assert rank_frames(world, places.features(shots[1])).stuck > 0.8
    monkeypatch.setattr(room, "CX", room.CX - 24)
    monkeypatch.setattr(places, "CAMERA", replace(places.CAMERA, cx=room.CX))
    rows, columns = places.GRID
    by_chance = 7 * 7 / (rows * columns)  # three patches to each side
    for side in ([0, 1, 2], [3, 4, 5]):
        shifted = room.shoot("shifted", shots[side[1]].world_from_camera)
        ranking = rank_frames(world, places.features(shifted))
        assert sorted(ranking.frame[:3]) == side
        assert ranking.score[2] > 2 * ranking.score[3]
        assert ranking.stuck < by_chance


def test_features_that_know_only_the_place_in_the_image_are_stuck(model, shots):
    at = np.stack(np.meshgrid(np.arange(20.0), np.arange(15.0)), axis=-1) * 0.1
    positional = places.perfect(np.concatenate([at, np.zeros((15, 20, 1))], axis=-1))
    seen = places.seen(places.scene(shots[:3]))
    world = LandmarkMap.build(model, replace(seen, features=positional.expand(1, 3, -1, -1, -1).contiguous()))
    assert rank_frames(world, positional[None]).stuck > 0.95
