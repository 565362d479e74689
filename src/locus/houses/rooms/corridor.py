"""The corridor."""

import numpy as np

from locus.houses.furniture import seating, storage, tables
from locus.houses.placing import Space
from locus.houses.rooms import common
from locus.houses.rooms.common import Household


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    common.dress_windows(space, home)
    x0, y0, x1, y1 = space.room.inner
    if rng.random() < 0.75:
        yaw = 0.0 if x1 - x0 > y1 - y0 else np.pi / 2
        common.lay_rug(space, home, *space.room.centre, max(x1 - x0, y1 - y0) * 0.7, 0.75, yaw)
    console = space.along_wall(home.make("console table", tables.console_table))
    if console:
        common.clutter(space, home, console, 3)
        common.hang_mirror(space, home, console, (0.4, 0.6), (0.6, 0.9), 1.6)
    common.clutter(space, home, space.along_wall(home.make("shoe rack", storage.shoe_rack)), 1)
    space.hang(home.make("coat rack", storage.coat_rack), 1.7)
    if rng.random() < 0.5:
        space.along_wall(seating.bench(rng, style))
    common.hang_ceiling_lamp(space, home, 0.1)
    common.fill_walls(space, home, 7)
    common.floor_clutter(space, home, 2)
