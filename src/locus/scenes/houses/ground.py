"""The free floor of a house, for its cameras."""

import numpy as np

from locus.scenes.render.cameras import Ground
from locus.scenes.houses.house import House
from locus.scenes.houses.model import boxes_of
from locus.scenes.houses.placing import CELL

# A camera keeps this far from what it could bump into: walls, furniture, door frames.
BODY = 0.24
TALL = 1.75
CLEARED = 0.12
"""Things lower than this (rugs, thresholds) are stepped over."""


def free_ground(house: House) -> Ground:
    """Free cells of all rooms, joined through doors."""
    rooms = house.plan.rooms
    x0, y0 = min(room.inner[0] for room in rooms), min(room.inner[1] for room in rooms)
    x1, y1 = max(room.inner[2] for room in rooms), max(room.inner[3] for room in rooms)
    rows, columns = int((y1 - y0) / CELL) + 1, int((x1 - x0) / CELL) + 1
    y = (y0 + (np.arange(rows) + 0.5) * CELL)[:, None]
    x = (x0 + (np.arange(columns) + 0.5) * CELL)[None]
    free = np.zeros((rows, columns), bool)
    area = np.full((rows, columns), -1)
    for number, room in enumerate(rooms):
        rx0, ry0, rx1, ry1 = room.inner
        free |= (x > rx0 + BODY) & (x < rx1 - BODY) & (y > ry0 + BODY) & (y < ry1 - BODY)
        area[(x > rx0) & (x < rx1) & (y > ry0) & (y < ry1)] = number
    for passage in house.plan.passages:
        cx, cy = passage.centre
        lane = max(passage.width / 2 - BODY, CELL)
        through = 0.06 + BODY + 0.1
        level = passage.sides[0] in (0, 2)
        half_x, half_y = (lane, through) if level else (through, lane)
        free |= (np.abs(x - cx) < half_x) & (np.abs(y - cy) < half_y)
    doors = [thing for thing in house.things if thing.semantic == _door_class()]
    solid = [thing.boxes for thing in house.placed] + [boxes_of(thing.parts) for thing in doors]
    for bx0, by0, bz0, bx1, by1, bz1 in np.concatenate(solid):
        if bz1 > CLEARED and bz0 < TALL and min(bx1 - bx0, by1 - by0) < 50:
            free &= ~((x > bx0 - BODY) & (x < bx1 + BODY) & (y > by0 - BODY) & (y < by1 + BODY))
    return Ground((x0, y0), CELL, free, area)


def _door_class() -> int:
    from locus.scenes.houses.classes import CLASS_ID

    return CLASS_ID["door"]
