"""Drawing a floor plan at random: dividing a rectangle into rooms, then doors, then windows."""

from itertools import combinations

import numpy as np

from locus.houses.floor_plan import INNER_WALL, PRIVACY, FloorPlan, Hole, Passage, Rectangle, Room, RoomSide

# Square metres that a room of each use would like to have, and the least length of its shorter side.
WISHES = {
    "living": (25.0, 3.3),
    "kitchen": (12.0, 2.4),
    "bedroom": (14.0, 2.7),
    "bathroom": (6.0, 1.8),
    "study": (10.5, 2.4),
    "dining": (13.0, 2.8),
    "corridor": (7.0, 1.2),
}

CORE = ["living", "kitchen", "bedroom", "bathroom"]
PROGRAMMES = {
    3: [["living", "kitchen", "bedroom"], ["living", "bedroom", "bathroom"], ["living", "kitchen", "study"]],
    4: [CORE],
    5: [[*CORE, "study"], [*CORE, "dining"], [*CORE, "corridor"]],
    6: [
        [*CORE, "corridor", "study"],
        [*CORE, "corridor", "bedroom"],
        ["living", "kitchen", "dining", "bedroom", "bathroom", "study"],
    ],
    7: [
        [*CORE, "corridor", "study", "dining"],
        ["living", "kitchen", "bedroom", "bedroom", "bathroom", "corridor", "study"],
        ["living", "kitchen", "dining", "bedroom", "bedroom", "bathroom", "corridor"],
    ],
}


def draw_plan(rng: np.random.Generator) -> FloorPlan:
    """A plan of 3 to 7 rooms and 40 to 150 m²; drawn again until every room has a decent shape and can be reached."""
    options = PROGRAMMES[int(rng.choice([3, 4, 5, 6, 7], p=[0.1, 0.2, 0.25, 0.25, 0.2]))]
    while True:
        uses = options[rng.integers(len(options))]
        rectangles = _divide(rng, uses)
        if rectangles is None:
            continue
        rooms = _rooms(uses, rectangles)
        if not all(_decent(room) for room in rooms) or not 40 <= sum(room.area for room in rooms) <= 150:
            continue
        height = rng.uniform(2.4, 2.9)
        passages = _passages(rng, rooms, rectangles)
        if passages is None:
            continue
        for passage in passages:
            for room, side in zip(passage.rooms, passage.sides, strict=True):
                wall = rooms[room].sides[side]
                wall.holes.append(passage.hole(wall))
        _windows(rng, rooms, height)
        return FloorPlan(rooms, passages, height)


def _decent(room: Room) -> bool:
    x0, y0, x1, y1 = room.inner
    short, long = sorted((x1 - x0, y1 - y0))
    return short >= WISHES[room.use][1] and (room.use == "corridor" or long / short < 2.1)


def _divide(rng: np.random.Generator, uses: list[str]) -> list[Rectangle] | None:
    """Cells that tile the house, in the order of `uses`."""
    wish = [WISHES[use][0] * rng.uniform(0.8, 1.35) for use in uses]
    total = sum(wish)
    aspect = rng.uniform(1.0, 1.7)
    width, depth = (total * aspect) ** 0.5, (total / aspect) ** 0.5
    cells: dict[int, Rectangle] = {}
    if "corridor" not in uses:
        _slice(rng, [int(k) for k in rng.permutation(len(uses))], wish, (0.0, 0.0, width, depth), cells)
        return [cells[k] for k in range(len(uses))]
    corridor = uses.index("corridor")
    others = [int(k) for k in rng.permutation(len(uses)) if k != corridor]
    left = 0.0
    if rng.random() < 0.6:
        # The living room takes one whole end of the house.
        living = uses.index("living")
        left = wish[living] / depth
        cells[living] = (0.0, 0.0, left, depth)
        others.remove(living)
    if len(others) < 2:
        return None
    half = max(1, len(others) // 2)
    lower, upper = others[:half], others[half:]
    hall = rng.uniform(1.25, 1.7)
    share = sum(wish[k] for k in lower) / sum(wish[k] for k in others)
    split = share * (depth - hall)
    cells[corridor] = (left, split, width, split + hall)
    for row, y0, y1 in ((lower, 0.0, split), (upper, split + hall, depth)):
        x = left
        for k in row:
            wide = (width - left) * wish[k] / sum(wish[j] for j in row)
            cells[k] = (x, y0, x + wide, y1)
            x += wide
    return [cells[k] for k in range(len(uses))]


def _slice(
    rng: np.random.Generator, keys: list[int], wish: list[float], where: Rectangle, cells: dict[int, Rectangle]
) -> None:
    if len(keys) == 1:
        cells[keys[0]] = where
        return
    half = len(keys) // 2 if len(keys) < 4 else int(rng.integers(1, len(keys)))
    first, second = keys[:half], keys[half:]
    share = sum(wish[k] for k in first) / sum(wish[k] for k in keys)
    x0, y0, x1, y1 = where
    if x1 - x0 > y1 - y0:
        cut = x0 + share * (x1 - x0)
        parts = (x0, y0, cut, y1), (cut, y0, x1, y1)
    else:
        cut = y0 + share * (y1 - y0)
        parts = (x0, y0, x1, cut), (x0, cut, x1, y1)
    _slice(rng, first, wish, parts[0], cells)
    _slice(rng, second, wish, parts[1], cells)


def _rooms(uses: list[str], cells: list[Rectangle]) -> list[Room]:
    left, bottom = min(c[0] for c in cells), min(c[1] for c in cells)
    right, top = max(c[2] for c in cells), max(c[3] for c in cells)
    rooms = []
    for use, (x0, y0, x1, y1) in zip(uses, cells, strict=True):
        outer = [abs(y0 - bottom) < 1e-6, abs(x1 - right) < 1e-6, abs(y1 - top) < 1e-6, abs(x0 - left) < 1e-6]
        inset = [0.0 if out else INNER_WALL / 2 for out in outer]
        x0, y0, x1, y1 = x0 + inset[3], y0 + inset[0], x1 - inset[1], y1 - inset[2]
        wide, deep = x1 - x0, y1 - y0
        sides = [
            RoomSide((x1, y0), (-1.0, 0.0), (0.0, 1.0), wide, outer[0]),
            RoomSide((x1, y1), (0.0, -1.0), (-1.0, 0.0), deep, outer[1]),
            RoomSide((x0, y1), (1.0, 0.0), (0.0, -1.0), wide, outer[2]),
            RoomSide((x0, y0), (0.0, 1.0), (1.0, 0.0), deep, outer[3]),
        ]
        rooms.append(Room(use, (x0, y0, x1, y1), sides))
    return rooms


def _shared(a: Rectangle, b: Rectangle) -> tuple[int, float, float, float] | None:
    """The side of `a` at which `b` lies, its coordinate, and the interval that both share."""
    for side, (mine, other, low, high) in enumerate(
        ((a[1], b[3], 0, 2), (a[2], b[0], 1, 3), (a[3], b[1], 0, 2), (a[0], b[2], 1, 3))
    ):
        start, end = max(a[low], b[low]), min(a[high], b[high])
        if abs(mine - other) < 1e-6 and end - start > 0:
            return side, mine, start, end
    return None


def _passages(rng: np.random.Generator, rooms: list[Room], cells: list[Rectangle]) -> list[Passage] | None:
    """Doors that make every room reachable, through rooms that mind it least, and wide openings between day rooms."""
    links = {}
    for a, b in combinations(range(len(rooms)), 2):
        shared = _shared(cells[a], cells[b])
        if shared and shared[3] - shared[2] > 1.35:
            links[a, b] = shared
    privacy = [PRIVACY[room.use] for room in rooms]
    reached = {min(range(len(rooms)), key=lambda k: privacy[k])}
    chosen = []
    while len(reached) < len(rooms):
        edges = [(a, b) for a, b in links if (a in reached) != (b in reached)]
        if not edges:
            return None
        edge = min(edges, key=lambda e: (privacy[e[0]] if e[0] in reached else privacy[e[1]], e))
        parent = edge[0] if edge[0] in reached else edge[1]
        if rooms[parent].use in ("bathroom", "bedroom"):
            return None
        chosen.append(edge)
        reached |= set(edge)
    open_uses = ({"living", "dining"}, {"living", "kitchen"}, {"kitchen", "dining"}, {"living", "corridor"})
    passages = []
    for a, b in sorted(links):
        day_rooms = {rooms[a].use, rooms[b].use} in open_uses
        if (a, b) not in chosen and not (day_rooms and rng.random() < 0.6):
            continue
        side, fixed, start, end = links[a, b]
        room_for = end - start - 0.3
        wide = day_rooms and room_for > 1.2 and rng.random() < 0.75
        width = float(rng.uniform(1.1, min(2.2, room_for))) if wide else rng.uniform(0.82, 0.95)
        low, high = start + 0.15 + width / 2, end - 0.15 - width / 2
        # Doors sit near corners, so that their leaf opens along a wall.
        middle = rng.uniform(low, high) if wide else (low + 0.06 if rng.random() < 0.5 else high - 0.06)
        centre = (middle, fixed) if side in (0, 2) else (fixed, middle)
        height = rng.uniform(2.1, 2.25) if wide else 2.05
        passages.append(Passage("opening" if wide else "door", (a, b), (side, (side + 2) % 4), centre, width, height))
    return passages


def _windows(rng: np.random.Generator, rooms: list[Room], height: float) -> None:
    top = min(2.25, height - 0.2)
    for room in rooms:
        outer = sorted((side for side in room.sides if side.outer), key=lambda side: -side.length)
        for rank, side in enumerate(outer):
            if rank and rng.random() < 0.35:
                continue
            if room.use == "bathroom":
                spans, sill = [min(rng.uniform(0.6, 1.0), side.length - 0.8)], 1.25
            elif room.use == "kitchen":
                spans, sill = [min(rng.uniform(0.9, 1.5), side.length - 0.8)], 1.1
            else:
                french = room.use in ("living", "dining") and rank == 0 and rng.random() < 0.4
                sill = 0.06 if french else rng.uniform(0.8, 0.95)
                count = 2 if side.length > 4.6 and rng.random() < 0.6 else 1
                widest = min(2.4, side.length / count - 1.0)
                if widest < 0.7:
                    continue
                spans = [float(rng.uniform(min(1.1, widest), widest))] * count
            if spans[0] < 0.5 or side.length < 1.4:
                continue
            for k, span in enumerate(spans):
                middle = side.length * (k + 0.5) / len(spans) + rng.uniform(-0.1, 0.1)
                side.holes.append(Hole("window", middle - span / 2, middle + span / 2, sill, top))
