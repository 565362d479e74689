"""The free floor of a house, for its cameras."""

import numpy as np

from locus.houses.classes import CLASS_ID
from locus.houses.house import House
from locus.houses.placing import BODY, CELL, block, within
from locus.houses.things import boxes_of
from locus.render.cameras import Ground


def free_ground(house: House) -> Ground:
    """Free cells of all rooms, joined through doors."""
    rooms = house.plan.rooms
    x0, y0 = min(room.inner[0] for room in rooms), min(room.inner[1] for room in rooms)
    x1, y1 = max(room.inner[2] for room in rooms), max(room.inner[3] for room in rooms)
    y = y0 + (np.arange(int((y1 - y0) / CELL) + 1) + 0.5) * CELL
    x = x0 + (np.arange(int((x1 - x0) / CELL) + 1) + 0.5) * CELL
    free = np.zeros((len(y), len(x)), bool)
    area = np.full(free.shape, -1)
    for number, room in enumerate(rooms):
        left, bottom, right, top = room.inner
        free |= within(x, y, (left + BODY, bottom + BODY, right - BODY, top - BODY))
        area[within(x, y, room.inner)] = number
    for passage in house.plan.passages:
        (cx, cy), lane, through = passage.centre, max(passage.width / 2 - BODY, CELL), BODY + 0.16
        half_x, half_y = (lane, through) if passage.sides[0] in (0, 2) else (through, lane)
        free |= within(x, y, (cx - half_x, cy - half_y, cx + half_x, cy + half_y))
    doors = [boxes_of(thing.parts) for thing in house.things if thing.semantic == CLASS_ID["door"]]
    block(free, x, y, np.concatenate([thing.boxes for thing in house.placed] + doors))
    return Ground((x0, y0), CELL, free, area)
