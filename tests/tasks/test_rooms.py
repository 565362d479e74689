"""Free space is parted at doors, and nowhere else."""

import numpy as np

from locus.tasks.rooms import parted, rooms
from locus.tasks.voxels import SIDE, voxels
from tests.landmarks import places
from tests.scenes import room

METRE = round(1 / SIDE)


def plan(door):
    """Two rooms of 4 by 4 m side by side, with a door of this width in metres between them."""
    free = np.zeros((6 * METRE, 10 * METRE), bool)
    free[METRE : 5 * METRE, METRE : 5 * METRE] = True
    free[METRE : 5 * METRE, 5 * METRE + 2 : 9 * METRE] = True
    middle, half = 3 * METRE, round(door / SIDE / 2)
    free[middle - half : middle + half, 5 * METRE : 5 * METRE + 2] = True
    return free


def test_a_door_parts_two_rooms():
    parts = parted(plan(0.9))
    assert parts.max() == 2
    left, right = parts[:, METRE : 5 * METRE][plan(0.9)[:, METRE : 5 * METRE]], parts[:, 5 * METRE + 2 :]
    assert (left == left[0]).mean() > 0.98
    assert (right[right > 0] != left[0]).mean() > 0.98


def test_a_wide_opening_does_not_part_them():
    assert parted(plan(3.0)).max() == 1


def test_walls_are_of_no_room_and_every_free_cell_is_of_one():
    free = plan(0.9)
    parts = parted(free)
    assert not parts[~free].any()
    assert (parts[free] > 0).all()


def test_no_space_is_no_room():
    assert not parted(np.zeros((20, 20), bool)).any()


def test_one_room_is_one_room():
    seen = places.seen(places.scene(room.shots(10)))
    surfaces = voxels(seen)
    found = rooms(surfaces, seen)
    assert found.count == 1
    assert not found.number.any()
