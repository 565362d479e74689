"""The kitchen."""

import numpy as np

from locus.houses import finishes
from locus.houses.floor_plan import RoomSide
from locus.houses.furniture import decor, kitchenware, seating
from locus.houses.furniture import kitchen_units as units
from locus.houses.items import Item
from locus.houses.placing import Placed, Space, facing
from locus.houses.rooms import common
from locus.houses.rooms.common import Household
from locus.houses.rooms.dining import dining_group
from locus.houses.solids import panel

LOW = 1.42
"""Height of the lower edge of wall cabinets."""


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    look = units.KitchenLook(rng, style)
    runs = _free_runs(space)
    if runs:
        _row(space, home, look, *runs[0])
    others = [run for run in _free_runs(space) if run[2] - run[1] > 1.3]
    if others and space.room.area > 9 and rng.random() < 0.6:
        _plain_row(space, home, look, *others[0])
    common.dress_windows(space, home)
    x0, y0, x1, y1 = space.room.inner
    if min(x1 - x0, y1 - y0) > 3.1 and rng.random() < 0.55:
        _island(space, home, look)
    else:
        dining_group(space, home, 2 if space.room.area < 11 else 4)
    space.along_wall(home.make("bin", decor.waste_bin))
    common.hang_ceiling_lamp(space, home, 0.1)
    space.hang(home.make("clock", decor.clock), 1.85)
    common.fill_walls(space, home, 4)
    common.floor_clutter(space, home, 2)


def _free_runs(space: Space) -> list[tuple[RoomSide, float, float]]:
    """Stretches of wall along which a row of units can stand, longest first; a high window may lie above."""
    runs = []
    for side in space.room.sides:
        starts = np.arange(0.02, side.length - 0.07, 0.05)
        cells = [space.clear(side, s, s + 0.05, units.WORKTOP, 0.68) for s in starts]
        edges = np.flatnonzero(np.diff([0, *cells, 0]))
        runs += [(side, 0.02 + 0.05 * a, 0.02 + 0.05 * b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return sorted(((side, float(a), float(b)) for side, a, b in runs if b - a > 1.2), key=lambda run: run[1] - run[2])


def _stand(space: Space, side: RoomSide, along: float, item: Item, away: float) -> Placed | None:
    return space.put(item, *side.at(along, away), 0.0, facing(side), True)


def _row(space: Space, home: Household, look: units.KitchenLook, side: RoomSide, start: float, end: float) -> None:
    """Fridge at one end, then a counter with sink and hob, oven below the hob, hood and cabinets above."""
    rng, style = home.rng, home.style
    end = min(end, start + 4.4)
    fridge = home.make("fridge", units.fridge)
    wide = float(fridge.size()[0])
    left = rng.random() < 0.5
    if end - start > 2.2:
        along = start + wide / 2 if left else end - wide / 2
        if _stand(space, side, along, fridge, float(fridge.size()[1]) / 2 + 0.02):
            start, end = (start + wide + 0.02, end) if left else (start, end - wide - 0.02)
    length = end - start
    middle = (start + end) / 2
    # Local x of the counter runs against the side's direction (the model looks away from the wall).
    sink_x, hob_x = (-length * 0.25, length * 0.25) if rng.random() < 0.5 else (length * 0.25, -length * 0.25)
    sink_width = min(0.6, length / 2 - 0.35)
    hole = (sink_x - sink_width / 2, sink_x + sink_width / 2)
    counter = _stand(space, side, middle, units.counter(rng, style, look, length, hole), units.DEPTH / 2 + 0.015)
    if counter is None:
        return
    _let_in(space, counter, units.sink(rng, look, sink_width - 0.002), sink_x, 0.0, units.WORKTOP + 0.0005)
    plate = units.hob(rng, look)
    hob = _let_in(space, counter, plate, hob_x, 0.0, units.WORKTOP + 0.001)
    _let_in(space, counter, units.oven(rng, look), hob_x, units.DEPTH / 2 - 0.02, 0.2)
    if hob and rng.random() < 0.7:
        top = units.WORKTOP + 0.002 + float(plate.size()[2])
        _let_in(space, counter, home.make("pot", kitchenware.pot), hob_x - 0.13, 0.11, top)
    _backsplash(space, home, side, start, end)
    if not any(hole.kind == "window" for hole in side.holes) or rng.random() < 0.3:
        hood = units.cooker_hood(look, space.height - LOW - 0.13)
        space.hang(hood, LOW + 0.12, (side, middle - hob_x), True)
    _cabinets(space, home, look, side, start, end)
    _worktop_things(space, home, counter, int(rng.integers(4, 9)))


def _plain_row(
    space: Space, home: Household, look: units.KitchenLook, side: RoomSide, start: float, end: float
) -> None:
    end = min(end, start + 2.6)
    row = units.counter(home.rng, home.style, look, end - start, None)
    counter = _stand(space, side, (start + end) / 2, row, units.DEPTH / 2 + 0.015)
    if counter:
        _backsplash(space, home, side, start, end)
        _cabinets(space, home, look, side, start, end)
        _worktop_things(space, home, counter, 4)


def _let_in(space: Space, counter: Placed, item: Item, x: float, y: float, z: float) -> Placed | None:
    """Built into or onto the counter, without asking whether it meets the counter."""
    index = space.placed.index(counter)
    space.placed.pop(index)
    thing = space.put(item, *counter.at(x, y, z), counter.yaw, True)
    space.placed.insert(index, counter)
    return thing


def _backsplash(space: Space, home: Household, side: RoomSide, start: float, end: float) -> None:
    """Tiles on the wall above the worktop; part of the wall, so nothing is asked."""
    tiles = finishes.tiles(home.rng, floor=False)
    top = LOW + 0.1
    for hole in side.holes:
        if hole.kind == "window" and hole.s0 < end and hole.s1 > start:
            top = min(top, hole.z0 - 0.04)
    low, right = units.WORKTOP, np.array([*side.right, 0.0]) * (end - start)
    corner = (*side.at(start, 0.004), low)
    space.wall_parts.append(panel(corner, right, (0, 0, top - low), tiles, step=0.14))


def _cabinets(space: Space, home: Household, look: units.KitchenLook, side: RoomSide, start: float, end: float) -> None:
    """As many wall cabinets as fit between hood and windows."""
    along = start + 0.02
    while along + 0.4 < end:
        for width in (1.0, 0.8, 0.6, 0.4):
            if along + width >= end:
                continue
            if space.hang(units.cabinet(home.style, look, width - 0.004), LOW, (side, along + width / 2)):
                along += width
                break
        else:
            along += 0.1


def _worktop_things(space: Space, home: Household, counter: Placed, count: int) -> None:
    makers = (
        ("kettle", kitchenware.kettle),
        ("microwave", kitchenware.microwave),
        ("toaster", kitchenware.toaster),
        ("pot", kitchenware.pot),
        ("dishes", kitchenware.dishes),
        ("bottle", kitchenware.bottle),
        ("bottle", kitchenware.bottle),
        ("fruit bowl", kitchenware.fruit_bowl),
        ("dishes", kitchenware.dishes),
    )
    for k in home.rng.permutation(len(makers))[:count]:
        space.on_shelf(counter, home.make(*makers[k]))


def _island(space: Space, home: Household, look: units.KitchenLook) -> None:
    rng, style = home.rng, home.style
    x0, y0, x1, y1 = space.room.inner
    yaw = 0.0 if x1 - x0 > y1 - y0 else np.pi / 2
    item = units.island(rng, style, look)
    cx, cy = space.room.centre
    for _ in range(10):
        x, y = cx + rng.normal(0, 0.25), cy + rng.normal(0, 0.25)
        island = space.put(item, x, y, 0.0, yaw + rng.choice([0, np.pi]))
        if island is None:
            continue
        _worktop_things(space, home, island, 4)
        stool = seating.stool(rng, style, high=True)
        width, depth, _ = item.size()
        for along in np.linspace(-width / 2 + 0.3, width / 2 - 0.3, max(2, int(width / 0.55))):
            x, y, _ = island.at(along, -depth / 2 - rng.uniform(-0.02, 0.12))
            space.put(stool, x, y, 0.0, rng.uniform(0, 6))
        return
