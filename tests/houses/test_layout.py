"""Plans: sizes, rooms, and that one can walk from every room to every other."""

from itertools import pairwise

import numpy as np
import pytest

from locus.houses.floor_plan import INNER_WALL
from locus.houses.planning import draw_plan


@pytest.fixture(scope="module")
def plans():
    return [draw_plan(np.random.default_rng(seed)) for seed in range(60)]


def test_houses_have_three_to_seven_rooms_and_40_to_150_square_metres(plans):
    assert {len(plan.rooms) for plan in plans} == {3, 4, 5, 6, 7}
    assert all(40 <= sum(room.area for room in plan.rooms) <= 150 for plan in plans)
    assert {room.use for plan in plans for room in plan.rooms} == {
        "living", "kitchen", "bedroom", "bathroom", "study", "corridor", "dining",
    }  # fmt: skip


def test_rooms_do_not_overlap_and_leave_walls_between_them(plans):
    for plan in plans:
        for i, a in enumerate(plan.rooms):
            for b in plan.rooms[i + 1 :]:
                gap_x = max(b.inner[0] - a.inner[2], a.inner[0] - b.inner[2])
                gap_y = max(b.inner[1] - a.inner[3], a.inner[1] - b.inner[3])
                assert max(gap_x, gap_y) > INNER_WALL - 1e-6


def test_every_room_is_reached_through_doors(plans):
    for plan in plans:
        reached = {0}
        for _ in plan.rooms:
            reached |= {room for p in plan.passages if set(p.rooms) & reached for room in p.rooms}
        assert reached == set(range(len(plan.rooms)))


def test_holes_lie_within_their_wall_and_apart(plans):
    for plan in plans:
        for room in plan.rooms:
            for side in room.sides:
                spans = sorted((hole.s0, hole.s1) for hole in side.holes)
                assert all(0 < s0 < s1 < side.length for s0, s1 in spans)
                assert all(a[1] < b[0] for a, b in pairwise(spans))


def test_the_two_ends_of_a_door_meet(plans):
    for plan in plans:
        for passage in plan.passages:
            ends = []
            for number, side_number in zip(passage.rooms, passage.sides, strict=True):
                side = plan.rooms[number].sides[side_number]
                along = side.along(*passage.centre)
                assert any(abs((hole.s0 + hole.s1) / 2 - along) < 1e-6 for hole in side.holes)
                ends.append(side.at(along))
            assert np.linalg.norm(np.subtract(*ends)) == pytest.approx(INNER_WALL, abs=1e-6)


def test_most_rooms_have_daylight(plans):
    rooms = [room for plan in plans for room in plan.rooms if room.use != "corridor"]
    lit = [any(hole.kind == "window" for side in room.sides for hole in side.holes) for room in rooms]
    assert np.mean(lit) > 0.9
