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
        shelf = space.along_wall(home.make("bookshelf", lambda: storage.bookshelf(rng, style)))
        if shelf:
            common.fill_bookshelf(space, home, shelf[0])
    chair = space.along_wall(home.again("armchair", lambda: seating.armchair(rng, style)), gap=0.12)
    if chair:
        space.on_shelf(chair[0], textiles.cushion_loose(rng, style))
        space.along_wall(home.again("floor lamp", lambda: lamps.floor_lamp(rng, style, home.lit())), gap=0.06)
    x, y = space.room.centre
    if rng.random() < 0.7:
        common.lay_rug(
            space, home, x, y, rng.uniform(1.4, 2.2), rng.uniform(1.1, 1.5), 0.0 if rng.random() < 0.5 else np.pi / 2
        )
    if rng.random() < 0.4:
        chest = space.along_wall(home.make("chest of drawers", lambda: storage.chest_of_drawers(rng, style)))
        common.clutter(space, home, chest[0] if chest else None, 4)
    space.along_wall(home.make("bin", lambda: decor.waste_bin(rng, style)))
    common.hang_ceiling_lamp(space, home, 0.1 if space.height < 2.5 else 0.35)
    common.fill_walls(space, home, 6)
    common.floor_clutter(space, home, 4)


def desk_group(space: Space, home: Household) -> None:
    """A desk with a screen or a laptop, a lamp, clutter, and a chair before it."""
    rng, style = home.rng, home.style
    found = space.along_wall(home.make("desk", lambda: tables.desk(rng, style)), prefer=0.5)
    if found is None:
        return
    desk, _, _ = found
    top = desk.shelves[0]
    if rng.random() < 0.7:
        screens = 2 if top.x1 - top.x0 > 1.35 and rng.random() < 0.4 else 1
        screen = home.make("computer screen", lambda: devices.computer_screen(rng, style))
        for k in range(screens):
            x = (k - (screens - 1) / 2) * (screen.size()[0] + 0.02)
            space.on_shelf(desk, screen, top, turn=0.04, at=(float(x), top.y0 + 0.16))
        space.on_shelf(
            desk, home.make("keyboard", lambda: devices.keyboard(rng, style)), top, turn=0.05, at=(0.0, top.y1 - 0.14)
        )
    else:
        space.on_shelf(
            desk,
            home.make("laptop", lambda: devices.laptop(rng, style)),
            top,
            turn=0.1,
            at=(0.0, (top.y0 + top.y1) / 2 + 0.03),
        )
    space.on_shelf(desk, home.make("table lamp", lambda: lamps.desk_lamp(rng, style, home.lit())), top, turn=0.5)
    common.clutter(space, home, desk, 3, top)
    space.on_shelf(desk, kitchenware.dishes(rng, style), top)
    chair = home.make("office chair", lambda: seating.office_chair(rng, style))
    for away in (0.55, 0.65, 0.8):
        world = desk.matrix @ np.array([rng.uniform(-0.1, 0.1), away, 0.0, 1.0])
        yaw = float(np.arctan2(desk.matrix[1, 0], desk.matrix[0, 0])) + np.pi + rng.normal(0, 0.3)
        if space.put(
            chair,
            float(world[0]),
            float(world[1]),
            space.floor_height(float(world[0]), float(world[1]), 0.4),
            float(yaw),
        ):
            return
