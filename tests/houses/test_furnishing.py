"""Furnished houses: what stands where. Intersections are measured on the meshes' own boxes, part by part."""

import numpy as np
import pytest
from scipy import ndimage

from locus.houses.classes import CLASS_ID, THINGS
from locus.houses.house import build

from .conftest import built

SEEDS = (3, 5)
# Built into each other: a sink is let into its counter, an oven stands in it.
BUILT_IN = {"sink", "hob", "oven", "pot"}


@pytest.fixture(scope="module")
def houses():
    return [built(seed) for seed in SEEDS]


def part_boxes(thing):
    return np.array([[*part.vertices.min(axis=0), *part.vertices.max(axis=0)] for part in thing.parts])


def test_things_do_not_intersect(houses):
    for house in houses:
        boxes = [part_boxes(thing) for thing in house.placed]
        for i, a in enumerate(house.placed):
            for j in range(i):
                b = house.placed[j]
                if a.kind in BUILT_IN or b.kind in BUILT_IN:
                    continue
                depth = np.minimum(boxes[i][:, None, 3:], boxes[j][None, :, 3:]) - np.maximum(
                    boxes[i][:, None, :3], boxes[j][None, :, :3]
                )
                assert depth.min(axis=2).max() < 0.01, f"{a.kind} and {b.kind} in house {house.seed}"


def test_things_stay_in_their_room_and_out_of_the_floor(houses):
    for house in houses:
        for thing in house.placed:
            boxes = part_boxes(thing)
            x0, y0, x1, y1 = house.plan.rooms[thing.room].inner
            assert (boxes[:, :2] > np.array([x0, y0]) - 0.01).all()
            assert (boxes[:, 3:5] < np.array([x1, y1]) + 0.01).all()
            assert boxes[:, 2].min() > -0.005
            assert boxes[:, 5].max() < house.plan.height + 0.005


def test_things_stand_on_something_or_hang(houses):
    """The lowest point of everything that does not hang touches the floor, a rug, or the top of something."""
    hanging = {"curtain", "radiator", "wall shelf", "coat rack", "kitchen cabinet", "cooker hood", "towel", "mirror"}
    hanging |= {"picture", "clock", "ceiling lamp", "sink", "oven"}
    for house in houses:
        boxes = np.concatenate([part_boxes(thing) for thing in house.placed])
        for thing in house.placed:
            if thing.kind in hanging:
                continue
            own = part_boxes(thing)
            foot = own[:, 2].min()
            low, high = own[:, :2].min(axis=0), own[:, 3:5].max(axis=0)
            below = (boxes[:, :2] < high).all(axis=1) & (boxes[:, 3:5] > low).all(axis=1)
            supports = np.append(boxes[below, 5], 0.0)
            assert np.abs(supports - foot).min() < 0.03, f"{thing.kind} floats at {foot:.3f} in house {house.seed}"


def test_all_doors_can_be_walked_through(houses):
    for house in houses:
        ground = house.ground()
        labels, _ = ndimage.label(ground.free)
        largest = int(np.argmax(np.bincount(labels[ground.free])))
        for number in range(len(house.plan.rooms)):
            assert (labels[ground.area == number] == largest).any(), f"room {number} of house {house.seed}"


def test_houses_hold_at_least_thirty_kinds_and_each_house_many(houses):
    assert len({thing.kind for house in houses for thing in house.placed}) >= 45
    assert all(len({thing.kind for thing in house.placed}) >= 30 for house in houses)


@pytest.mark.slow
def test_every_kind_occurs_somewhere():
    seen = {thing.kind for seed in range(24) for thing in build(seed).placed} | {"door", "window"}
    assert set(THINGS) == seen


def test_instances_of_a_kind_differ_between_houses(houses):
    for kind in ("chair", "bookshelf", "dining table"):
        sizes = [
            tuple(np.ptp(part_boxes(t)[:, :3], axis=0).round(4)) for h in houses for t in h.placed if t.kind == kind
        ]
        assert len(set(sizes)) >= len(houses)


def test_some_things_recur_in_other_rooms(houses):
    """The very same model (the same material objects) stands in two rooms of a house."""
    recurring = 0
    for house in houses:
        places: dict[int, set[int]] = {}
        for thing in house.placed:
            places.setdefault(id(thing.parts[0].material) ^ hash((thing.kind, len(thing.parts))), set()).add(thing.room)
        recurring += sum(len(rooms) > 1 for rooms in places.values())
    assert recurring >= len(houses)


def test_labels_are_one_class_and_one_number_per_thing(houses):
    for house in houses:
        assert [thing.instance for thing in house.things] == list(range(1, len(house.things) + 1))
        assert all(thing.semantic in CLASS_ID.values() for thing in house.things)


def test_normals_point_the_way_faces_turn(houses):
    for house in houses:
        for thing in house.placed:
            for part in thing.parts:
                corners = part.vertices[part.faces]
                cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
                area = np.linalg.norm(cross, axis=1)
                along = (cross * part.normals[part.faces].mean(axis=1)).sum(axis=1)[area > 1e-8] / area[area > 1e-8]
                assert (along < -0.2).mean() < 0.02 if len(along) else True, thing.kind
