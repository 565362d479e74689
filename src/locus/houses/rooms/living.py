"""The living room."""

import numpy as np

from locus.houses.furniture import devices, lamps, seating, storage, tables, textiles
from locus.houses.placing import Placed, Space, facing
from locus.houses.rooms import common
from locus.houses.rooms.common import Household
from locus.houses.rooms.dining import dining_group


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    sofa = home.make("sofa", lambda: seating.sofa(rng, style))
    # The television wall first: the longest stretch of wall, the sofa looks at it from across.
    stand = space.along_wall(
        home.make("tv stand", lambda: storage.sideboard(rng, style, "tv stand")), _by_length(space), prefer=0.5
    )
    group = None
    if stand:
        placed, side, along = stand
        television = home.make("television", lambda: devices.television(rng, style))
        space.on_shelf(placed, television, turn=0.03, at=(0.0, -0.02))
        common.clutter(space, home, placed, 2)
        for way in (-1, 1):
            if rng.random() < 0.35:
                speaker = home.again("speaker", lambda: devices.speaker(rng, style))
                x, y = side.at(along + way * (placed.boxes[0, 3:5] - placed.boxes[0, :2]).max() / 2 + way * 0.25, 0.25)
                space.put(speaker, x, y, 0.0, facing(side))
        away = rng.uniform(2.3, 3.2)
        across = _width_from(space, side)
        away = min(away, across - sofa.size()[1] / 2 - 0.03)
        if across - away - sofa.size()[1] / 2 < 0.7:
            away = across - sofa.size()[1] / 2 - 0.03
        for shift in (0.0, 0.25, -0.25, 0.5, -0.5, 0.8, -0.8):
            x, y = side.at(along + shift, away)
            group = space.put(sofa, x, y, 0.0, facing(side) + np.pi)
            if group:
                break
    if group is None:
        found = space.along_wall(sofa, prefer=0.5)
        group = found[0] if found else space.anywhere(sofa, 40)
    if group:
        _around_sofa(space, home, group)
    common.dress_windows(space, home)
    if space.room.area > 26 and rng.random() < 0.6:
        dining_group(space, home, 4)
    shelf = space.along_wall(home.make("bookshelf", lambda: storage.bookshelf(rng, style)))
    if shelf:
        common.fill_bookshelf(space, home, shelf[0])
    if rng.random() < 0.5:
        second = space.along_wall(home.again("bookshelf", lambda: storage.bookshelf(rng, style)))
        if second:
            common.fill_bookshelf(space, home, second[0])
    if rng.random() < 0.25:
        piano = space.along_wall(devices.piano(rng, style))
        common.clutter(space, home, piano[0] if piano else None, 3)
    if rng.random() < 0.6:
        board = space.along_wall(home.make("sideboard", lambda: storage.sideboard(rng, style)))
        common.clutter(space, home, board[0] if board else None, 5)
    space.along_wall(home.make("armchair", lambda: seating.armchair(rng, style)), gap=0.1)
    common.hang_ceiling_lamp(space, home, 0.1 if space.height < 2.55 else rng.uniform(0.3, 0.5))
    common.fill_walls(space, home, 7)
    common.floor_clutter(space, home, 5)


def _by_length(space: Space) -> list:
    """Sides ordered by the length of wall without doors and low windows, longest first."""
    return sorted(space.room.sides, key=lambda side: sum(hole.s1 - hole.s0 for hole in side.holes) - side.length)


def _width_from(space: Space, side) -> float:
    x0, y0, x1, y1 = space.room.inner
    return (x1 - x0) if side.normal[0] else (y1 - y0)


def _around_sofa(space: Space, home: Household, sofa: Placed) -> None:
    """A low table before it, a rug below, chairs at an angle, a lamp and a side table beside, cushions on it."""
    rng, style = home.rng, home.style
    yaw = float(np.arctan2(sofa.matrix[1, 0], sofa.matrix[0, 0]))

    def before(x: float, y: float) -> tuple[float, float]:
        world = sofa.matrix @ np.array([x, y, 0, 1])
        return float(world[0]), float(world[1])

    if rng.random() < 0.85:
        deep = rng.uniform(1.2, 1.7)
        x, y = before(0, 0.52 + deep / 2)
        common.lay_rug(space, home, x, y, rng.uniform(1.8, 2.6), deep, yaw)
    table = None
    for away in (0.95, 1.1, 0.85):
        x, y = before(rng.uniform(-0.15, 0.15), away)
        table = space.put(
            home.make("coffee table", lambda: tables.coffee_table(rng, style)), x, y, space.floor_height(x, y, 0.6), yaw
        )
        if table:
            break
    common.clutter(space, home, table, 4)
    for way in rng.permutation([-1, 1]):
        if rng.random() < 0.75:
            chair = home.again("armchair", lambda: seating.armchair(rng, style))
            for out in (1.55, 1.75, 1.95):
                x, y = before(float(way) * out, rng.uniform(0.9, 1.3))
                if space.put(
                    chair, x, y, space.floor_height(x, y, 0.5), yaw + float(way) * (np.pi / 2 + rng.normal(0, 0.12))
                ):
                    break
    low, high = (sofa.boxes[:, :3].min(axis=0), sofa.boxes[:, 3:].max(axis=0))
    half = float(np.max((high - low)[:2])) / 2
    for way in (-1, 1):
        model = tables.side_table(rng, style) if rng.random() < 0.5 else lamps.floor_lamp(rng, style, home.lit())
        model = home.make(model.kind, lambda m=model: m)
        x, y = before(way * (half + model.size()[0] / 2 + 0.06), -0.15)
        thing = space.put(model, x, y, space.floor_height(x, y, 0.3), yaw)
        if thing and model.kind == "side table":
            space.on_shelf(
                thing, home.make("table lamp", lambda: lamps.table_lamp(rng, style, home.lit())), at=(0.0, 0.0)
            )
    for _ in range(int(rng.integers(1, 5))):
        space.on_shelf(sofa, home.make("cushion", lambda: textiles.cushion_loose(rng, style)), turn=0.15)
    if rng.random() < 0.3:
        x, y = before(rng.uniform(-1.2, 1.2), 1.75)
        space.put(seating.pouf(rng, style), x, y, space.floor_height(x, y, 0.4), yaw)
