"""The floor that is left free: to walk on while a room is furnished, and for the cameras afterwards."""

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from locus.houses.floor_plan import FloorPlan, Rectangle
from locus.render.cameras import Ground

CELL = 0.08
BODY = 0.24
"""Half of the width that a person or a camera needs to pass: it keeps this far from walls and furniture."""
TALL = 1.75
FLOOR_LEFT = 0.08
"""Share of a room's floor, margins along walls included, that must stay free to stand on."""
STEPPED_OVER = 0.12
"""Things lower than this (rugs, thresholds) are no obstacle."""

Boxes = Float[np.ndarray, "b 6"]


def passable(inner: Rectangle, doors: list[tuple[float, float]], boxes: Boxes) -> bool:
    """Whether one can walk from each door to every other and to the floor that is left, and enough is left."""
    x0, y0, x1, y1 = inner
    rows, columns = max(1, int((y1 - y0) / CELL)), max(1, int((x1 - x0) / CELL))
    y, x = y0 + (np.arange(rows) + 0.5) * CELL, x0 + (np.arange(columns) + 0.5) * CELL
    free = _within(x, y, (x0 + BODY, y0 + BODY, x1 - BODY, y1 - BODY))
    # A little more than the cameras will need, whose cells may lie differently.
    _block(free, x, y, boxes, BODY + CELL / 2)
    labels, _ = ndimage.label(free)
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    largest = int(np.argmax(sizes))
    for door_x, door_y in doors:
        row, column = int((door_y - y0) / CELL), int((door_x - x0) / CELL)
        near = labels[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4]
        if not largest or largest not in near:
            return False
    return bool(sizes[largest] > FLOOR_LEFT * free.size)


def free_ground(plan: FloorPlan, boxes: Boxes) -> Ground:
    """Free cells of all rooms, joined through doors."""
    rooms = plan.rooms
    x0, y0 = min(room.inner[0] for room in rooms), min(room.inner[1] for room in rooms)
    x1, y1 = max(room.inner[2] for room in rooms), max(room.inner[3] for room in rooms)
    y = y0 + (np.arange(int((y1 - y0) / CELL) + 1) + 0.5) * CELL
    x = x0 + (np.arange(int((x1 - x0) / CELL) + 1) + 0.5) * CELL
    free = np.zeros((len(y), len(x)), bool)
    area = np.full(free.shape, -1)
    for number, room in enumerate(rooms):
        left, bottom, right, top = room.inner
        free |= _within(x, y, (left + BODY, bottom + BODY, right - BODY, top - BODY))
        area[_within(x, y, room.inner)] = number
    for passage in plan.passages:
        (cx, cy), lane, through = passage.centre, max(passage.width / 2 - BODY, CELL), BODY + 0.16
        half_x, half_y = (lane, through) if passage.sides[0] in (0, 2) else (through, lane)
        free |= _within(x, y, (cx - half_x, cy - half_y, cx + half_x, cy + half_y))
    _block(free, x, y, boxes, BODY)
    return Ground((x0, y0), CELL, free, area)


def _within(
    x: Float[np.ndarray, " columns"], y: Float[np.ndarray, " rows"], rectangle: Rectangle
) -> Bool[np.ndarray, "rows columns"]:
    """Which cells, with centres x and y, lie inside a rectangle."""
    x0, y0, x1, y1 = rectangle
    return ((y > y0) & (y < y1))[:, None] & ((x > x0) & (x < x1))[None]


def _block(
    free: Bool[np.ndarray, "rows columns"],
    x: Float[np.ndarray, " columns"],
    y: Float[np.ndarray, " rows"],
    boxes: Boxes,
    body: float,
) -> None:
    """Mark cells that are closer than `body` to a box as not free."""
    for x0, y0, z0, x1, y1, z1 in boxes:
        if z1 > STEPPED_OVER and z0 < TALL:
            left, right = np.searchsorted(x, (x0 - body, x1 + body))
            low, high = np.searchsorted(y, (y0 - body, y1 + body))
            free[low:high, left:right] = False
