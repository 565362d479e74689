"""The study."""

import numpy as np

from locus.houses.furniture import decor, devices, kitchenware, lamps, seating, storage, tables, textiles
from locus.houses.placing import Space
from locus.houses.rooms import common
from locus.houses.rooms.common import Household


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    desk_group(space, home)
    common.dress_windows(space, home)
    for _ in range(int(rng.integers(2, 4))):
        common.stand_bookshelf(space, home)
    chair = space.along_wall(home.again("armchair", seating.armchair), gap=0.12)
    if chair:
        space.on_shelf(chair, textiles.cushion_loose(rng, style))
        space.along_wall(home.again("floor lamp", lamps.floor_lamp, home.lamps_on), gap=0.06)
    if rng.random() < 0.7:
        width, depth, yaw = rng.uniform(1.4, 2.2), rng.uniform(1.1, 1.5), 0.0 if rng.random() < 0.5 else np.pi / 2
        common.lay_rug(space, home, *space.room.centre, width, depth, yaw)
    if rng.random() < 0.4:
        common.clutter(space, home, space.along_wall(home.make("chest of drawers", storage.chest_of_drawers)), 4)
    space.along_wall(home.make("bin", decor.waste_bin))
    common.hang_ceiling_lamp(space, home, 0.1 if space.height < 2.5 else 0.35)
    common.fill_walls(space, home, 6)
    common.floor_clutter(space, home, 4)


def desk_group(space: Space, home: Household) -> None:
    """A desk with a screen or a laptop, a lamp, clutter, and a chair before it."""
    rng, style = home.rng, home.style
    desk = space.along_wall(home.make("desk", tables.desk), prefer=0.5)
    if desk is None:
        return
    top = desk.shelves[0]
    if rng.random() < 0.7:
        screens = 2 if top.x1 - top.x0 > 1.35 and rng.random() < 0.4 else 1
        screen = home.make("computer screen", devices.computer_screen)
        for k in range(screens):
            x = (k - (screens - 1) / 2) * (screen.size()[0] + 0.02)
            space.on_shelf(desk, screen, top, turn=0.04, at=(x, top.y0 + 0.16))
        space.on_shelf(desk, home.make("keyboard", devices.keyboard), top, turn=0.05, at=(0.0, top.y1 - 0.14))
    else:
        middle = (top.y0 + top.y1) / 2
        space.on_shelf(desk, home.make("laptop", devices.laptop), top, turn=0.1, at=(0.0, middle + 0.03))
    space.on_shelf(desk, home.make("table lamp", lamps.desk_lamp, home.lamps_on), top, turn=0.5)
    common.clutter(space, home, desk, 3, top)
    space.on_shelf(desk, kitchenware.dishes(rng, style), top)
    chair = home.make("office chair", seating.office_chair)
    for away in (0.55, 0.65, 0.8):
        x, y, _ = desk.at(rng.uniform(-0.1, 0.1), away)
        if space.on_floor(chair, x, y, desk.yaw + np.pi + rng.normal(0, 0.3), 0.4):
            return
