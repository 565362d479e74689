"""The dining room, and tables with chairs anywhere."""

import numpy as np

from locus.houses.furniture import kitchenware, seating, storage, tables
from locus.houses.placing import Placed, Space
from locus.houses.rooms import common
from locus.houses.rooms.common import Household
from locus.houses.things import Model


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    x0, y0, x1, y1 = space.room.inner
    table = dining_group(space, home, 6 if max(x1 - x0, y1 - y0) > 3.6 else 4, centred=True)
    if table:
        at = (float(table.matrix[0, 3]), float(table.matrix[1, 3]))
        common.hang_ceiling_lamp(space, home, rng.uniform(0.6, 0.9), at)
    else:
        common.hang_ceiling_lamp(space, home, 0.1)
    common.dress_windows(space, home)
    board = space.along_wall(home.make("sideboard", lambda: storage.sideboard(rng, style)), prefer=0.5)
    common.clutter(space, home, board[0] if board else None, 6)
    if rng.random() < 0.6:
        shelf = space.along_wall(home.again("bookshelf", lambda: storage.bookshelf(rng, style)))
        if shelf:
            common.fill_bookshelf(space, home, shelf[0])
    common.fill_walls(space, home, 6)
    common.floor_clutter(space, home, 4)


def dining_group(space: Space, home: Household, seats: int, centred: bool = False) -> Placed | None:
    """A table with chairs around it, some pulled out, and things on it; a rug below at times."""
    rng, style = home.rng, home.style
    table = home.make("dining table", lambda: tables.dining_table(rng, style, seats))
    width, depth = table.size()[:2]
    x0, y0, x1, y1 = space.room.inner
    turned = (x1 - x0) < (y1 - y0)
    yaw = np.pi / 2 if turned else 0.0
    reach_x, reach_y = (depth / 2 + 0.62, width / 2 + 0.3) if turned else (width / 2 + 0.3, depth / 2 + 0.62)
    cx, cy = space.room.centre
    if centred and rng.random() < 0.6:
        common.lay_rug(space, home, cx, cy, width + 1.1, depth + 1.1, float(yaw))
    floor = space.floor_height(cx, cy, 0.0) if centred else 0.0
    for attempt in range(14):
        if centred and attempt < 4:
            x, y = cx + rng.normal(0, 0.08 * attempt + 0.03), cy + rng.normal(0, 0.08 * attempt + 0.03)
        elif x1 - x0 > 2 * reach_x and y1 - y0 > 2 * reach_y:
            x, y = rng.uniform(x0 + reach_x, x1 - reach_x), rng.uniform(y0 + reach_y, y1 - reach_y)
        else:
            x, y = cx, cy
        placed = space.put(table, float(x), float(y), floor, float(yaw))
        if placed:
            break
    else:
        return None
    _seat(space, home, placed, width, depth, seats)
    for _ in range(int(rng.integers(2, 5))):
        space.on_shelf(placed, home.make("dishes", lambda: kitchenware.dishes(rng, style)), turn=1.0)
    common.clutter(space, home, placed, 2)
    if rng.random() < 0.4:
        space.on_shelf(placed, kitchenware.fruit_bowl(rng, style))
    return placed


def _seat(space: Space, home: Household, table: Placed, width: float, depth: float, seats: int) -> None:
    rng, style = home.rng, home.style
    chair: Model = home.again("chair", lambda: seating.chair(rng, style))
    chair_depth = float(chair.size()[1])
    spots: list[tuple[float, float, float]] = []
    per_side = max(1, (seats - (0 if seats < 6 else 2)) // 2) if width > depth * 1.15 else 1
    for k in range(per_side):
        x = (k - (per_side - 1) / 2) * width / per_side * 0.9
        spots += [(x, depth / 2, np.pi), (x, -depth / 2, 0.0)]
    if seats >= 6 or width <= depth * 1.15:
        spots += [(width / 2, 0.0, np.pi / 2), (-width / 2, 0.0, -np.pi / 2)]
    table_yaw = float(np.arctan2(table.matrix[1, 0], table.matrix[0, 0]))
    for x, y, turn in spots:
        if rng.random() < 0.06:
            continue
        away = chair_depth / 2 + rng.uniform(-0.12, 0.15)
        jitter = rng.normal(0, 0.12)
        for more in (0.0, 0.12, 0.25, 0.36):
            out = away + more
            local = np.array([x + out * np.sin(turn), y - out * np.cos(turn), 0, 1.0])
            world = table.matrix @ local
            floor = space.floor_height(float(world[0]), float(world[1]), 0.3)
            if space.put(chair, float(world[0]), float(world[1]), floor, table_yaw + turn + jitter):
                break
