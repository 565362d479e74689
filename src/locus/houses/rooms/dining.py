"""The dining room, and tables with chairs anywhere."""

import numpy as np

from locus.houses.furniture import kitchenware, seating, storage, tables
from locus.houses.placing import Placed, Space
from locus.houses.rooms import common
from locus.houses.rooms.common import Household


def furnish(space: Space, home: Household) -> None:
    x0, y0, x1, y1 = space.room.inner
    table = dining_group(space, home, 6 if max(x1 - x0, y1 - y0) > 3.6 else 4, centred=True)
    if table:
        common.hang_ceiling_lamp(space, home, home.rng.uniform(0.6, 0.9), table.at(0, 0)[:2])
    else:
        common.hang_ceiling_lamp(space, home, 0.1)
    common.dress_windows(space, home)
    board = space.along_wall(home.make("sideboard", storage.sideboard), prefer=0.5)
    common.clutter(space, home, board, 6)
    if home.rng.random() < 0.6:
        common.stand_bookshelf(space, home, again=True)
    common.fill_walls(space, home, 6)
    common.floor_clutter(space, home, 4)


def dining_group(space: Space, home: Household, seats: int, centred: bool = False) -> Placed | None:
    """A table with chairs around it, some pulled out, and things on it; a rug below at times."""
    rng, style = home.rng, home.style
    table = home.make("dining table", tables.dining_table, seats)
    width, depth, _ = table.size()
    x0, y0, x1, y1 = space.room.inner
    turned = (x1 - x0) < (y1 - y0)
    yaw = np.pi / 2 if turned else 0.0
    reach_x, reach_y = (depth / 2 + 0.62, width / 2 + 0.3) if turned else (width / 2 + 0.3, depth / 2 + 0.62)
    cx, cy = space.room.centre
    if centred and rng.random() < 0.6:
        common.lay_rug(space, home, cx, cy, width + 1.1, depth + 1.1, yaw)
    floor = space.floor_height(cx, cy, 0.0) if centred else 0.0
    for attempt in range(14):
        if centred and attempt < 4:
            x, y = cx + rng.normal(0, 0.08 * attempt + 0.03), cy + rng.normal(0, 0.08 * attempt + 0.03)
        elif x1 - x0 > 2 * reach_x and y1 - y0 > 2 * reach_y:
            x, y = rng.uniform(x0 + reach_x, x1 - reach_x), rng.uniform(y0 + reach_y, y1 - reach_y)
        else:
            x, y = cx, cy
        placed = space.put(table, x, y, floor, yaw)
        if placed:
            break
    else:
        return None
    _seat(space, home, placed, width, depth, seats)
    for _ in range(int(rng.integers(2, 5))):
        space.on_shelf(placed, home.make("dishes", kitchenware.dishes), turn=1.0)
    common.clutter(space, home, placed, 2)
    if rng.random() < 0.4:
        space.on_shelf(placed, kitchenware.fruit_bowl(rng, style))
    return placed


def _seat(space: Space, home: Household, table: Placed, width: float, depth: float, seats: int) -> None:
    """Chairs around a table, each moved out until it fits."""
    rng = home.rng
    chair = home.again("chair", seating.chair)
    spots: list[tuple[float, float, float]] = []
    per_side = max(1, (seats - (0 if seats < 6 else 2)) // 2) if width > depth * 1.15 else 1
    for k in range(per_side):
        x = (k - (per_side - 1) / 2) * width / per_side * 0.9
        spots += [(x, depth / 2, np.pi), (x, -depth / 2, 0.0)]
    if seats >= 6 or width <= depth * 1.15:
        spots += [(width / 2, 0.0, np.pi / 2), (-width / 2, 0.0, -np.pi / 2)]
    for x, y, turn in spots:
        if rng.random() < 0.06:
            continue
        away = chair.size()[1] / 2 + rng.uniform(-0.12, 0.15)
        jitter = rng.normal(0, 0.12)
        for more in (0.0, 0.12, 0.25, 0.36):
            out = away + more
            cx, cy, _ = table.at(x + out * np.sin(turn), y - out * np.cos(turn))
            if space.on_floor(chair, cx, cy, table.yaw + turn + jitter, 0.3):
                break
