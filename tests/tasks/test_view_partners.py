"""Frames that may share spots, from poses alone."""

import numpy as np
import pytest

from locus.geometry import Camera
from locus.scenes import Frame
from locus.tasks.view_partners import shared_views, view_partners
from tests.scenes import room


class Posed(Frame):
    """All that is asked of a frame: its pose and its camera."""

    def __init__(self, pose, camera=None):
        self.world_from_camera = pose
        self.camera = camera or Camera(640, 480, 400.0, 400.0, 320.0, 240.0)


def walk(count, step=0.4):
    """A camera that is carried sideways and looks ahead."""
    return [Posed(room.look((step * k, 0, 1.5), (step * k, 3, 1.5))) for k in range(count)]


def test_neighbours_on_a_walk_are_partners_and_their_number_is_bounded():
    pairs = view_partners(walk(60), 6)
    assert len(pairs) <= 60 * 6
    assert len(view_partners(walk(120), 6)) < 2.2 * len(pairs)
    assert all(a < b for a, b in pairs)
    assert max(b - a for a, b in pairs) <= 8
    assert {a for pair in pairs for a in pair} == set(range(60))


@pytest.mark.parametrize(
    "frames",
    [
        [Posed(room.look((0, 0, 1.5), (np.cos(a), np.sin(a), 1.5))) for a in np.arange(0, 1, 0.1)],
        [Posed(room.look((0, 0, 1.5), (1, 0, 1.5))), Posed(room.look((-1, 0, 1.5), (-2, 0, 1.5)))],
        [Posed(room.look((0, 0, 1.5), (1, 0, 1.5))), Posed(room.look((500, 0, 1.5), (501, 0, 1.5)))],
        walk(1),
    ],
    ids=["turning", "back to back", "far apart", "one"],
)
def test_frames_that_show_nothing_from_two_directions_have_no_partners(frames):
    assert view_partners(frames, 8) == []


def test_shares_are_of_each_frames_own_spots():
    wide, narrow = walk(2)
    narrow.camera = Camera(640, 480, 1600.0, 1600.0, 320.0, 240.0)
    shared = shared_views([wide, narrow])
    assert shared[1, 0] > shared[0, 1] > 0
    assert (np.diag(shared) == 0).all()  # the same direction
