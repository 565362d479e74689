"""The living room."""

import numpy as np

from locus.houses.furniture import devices, lamps, seating, storage, tables, textiles
from locus.houses.items import Item
from locus.houses.placing import Placed, Space, facing
from locus.houses.rooms import common
from locus.houses.rooms.common import Household
from locus.houses.rooms.dining import dining_group


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    sofa = home.make("sofa", seating.sofa)
    # The television wall first: the longest without doors and windows, the sofa looks at it from across.
    longest = sorted(space.room.sides, key=lambda side: sum(hole.s1 - hole.s0 for hole in side.holes) - side.length)
    stand = space.along_wall(home.make("tv stand", storage.sideboard, "tv stand"), longest, prefer=0.5)
    group = _before_television(space, home, sofa, stand) if stand else None
    group = group or space.along_wall(sofa, prefer=0.5) or space.anywhere(sofa, 40)
    if group:
        _around_sofa(space, home, group)
    common.dress_windows(space, home)
    if space.room.area > 26 and rng.random() < 0.6:
        dining_group(space, home, 4)
    common.stand_bookshelf(space, home)
    if rng.random() < 0.5:
        common.stand_bookshelf(space, home, again=True)
    if rng.random() < 0.25:
        common.clutter(space, home, space.along_wall(devices.piano(rng, style)), 3)
    if rng.random() < 0.6:
        common.clutter(space, home, space.along_wall(home.make("sideboard", storage.sideboard)), 5)
    space.along_wall(home.make("armchair", seating.armchair), gap=0.1)
    common.hang_ceiling_lamp(space, home, 0.1 if space.height < 2.55 else rng.uniform(0.3, 0.5))
    common.fill_walls(space, home, 7)
    common.floor_clutter(space, home, 5)


def _before_television(space: Space, home: Household, sofa: Item, stand: Placed) -> Placed | None:
    """A television on its stand, loudspeakers beside it, and the sofa across from it, if it fits."""
    rng = home.rng
    assert stand.wall is not None
    side, along = stand.wall
    space.on_shelf(stand, home.make("television", devices.television), turn=0.03, at=(0.0, -0.02))
    common.clutter(space, home, stand, 2)
    for way in (-1, 1):
        if rng.random() < 0.35:
            speaker = home.again("speaker", devices.speaker)
            x, y = side.at(along + way * (stand.boxes[0, 3:5] - stand.boxes[0, :2]).max() / 2 + way * 0.25, 0.25)
            space.put(speaker, x, y, 0.0, facing(side))
    x0, y0, x1, y1 = space.room.inner
    farthest = (x1 - x0 if side.normal[0] else y1 - y0) - sofa.size()[1] / 2
    away = min(rng.uniform(2.3, 3.2), farthest - 0.03)
    if farthest - away < 0.7:
        away = farthest - 0.03
    for aside in (0.0, 0.25, -0.25, 0.5, -0.5, 0.8, -0.8):
        placed = space.put(sofa, *side.at(along + aside, away), 0.0, facing(side) + np.pi)
        if placed:
            return placed
    return None


def _around_sofa(space: Space, home: Household, sofa: Placed) -> None:
    """A low table before it, a rug below, chairs at an angle, a lamp and a side table beside, cushions on it."""
    rng, style = home.rng, home.style
    yaw = sofa.yaw
    if rng.random() < 0.85:
        deep = rng.uniform(1.2, 1.7)
        x, y, _ = sofa.at(0, 0.52 + deep / 2)
        common.lay_rug(space, home, x, y, rng.uniform(1.8, 2.6), deep, yaw)
    table = None
    for away in (0.95, 1.1, 0.85):
        x, y, _ = sofa.at(rng.uniform(-0.15, 0.15), away)
        table = space.on_floor(home.make("coffee table", tables.coffee_table), x, y, yaw, 0.6)
        if table:
            break
    common.clutter(space, home, table, 4)
    for way in rng.permutation([-1, 1]):
        if rng.random() < 0.75:
            chair = home.again("armchair", seating.armchair)
            for out in (1.55, 1.75, 1.95):
                x, y, _ = sofa.at(way * out, rng.uniform(0.9, 1.3))
                if space.on_floor(chair, x, y, yaw + way * (np.pi / 2 + rng.normal(0, 0.12)), 0.5):
                    break
    low, high = (sofa.boxes[:, :3].min(axis=0), sofa.boxes[:, 3:].max(axis=0))
    half = float(np.max((high - low)[:2])) / 2
    for way in (-1, 1):
        item = tables.side_table(rng, style) if rng.random() < 0.5 else lamps.floor_lamp(rng, style, home.lamps_on)
        item = home.make(item.kind, lambda *_, drawn=item: drawn)
        x, y, _ = sofa.at(way * (half + item.size()[0] / 2 + 0.06), -0.15)
        thing = space.on_floor(item, x, y, yaw, 0.3)
        if thing and item.kind == "side table":
            space.on_shelf(thing, home.make("table lamp", lamps.table_lamp, home.lamps_on), at=(0.0, 0.0))
    for _ in range(int(rng.integers(1, 5))):
        space.on_shelf(sofa, home.make("cushion", textiles.cushion_loose), turn=0.15)
    if rng.random() < 0.3:
        x, y, _ = sofa.at(rng.uniform(-1.2, 1.2), 1.75)
        space.on_floor(seating.pouf(rng, style), x, y, yaw, 0.4)
