"""The corridor."""

import numpy as np

from locus.houses.furniture import decor, seating, storage, tables
from locus.houses.placing import Space
from locus.houses.rooms import common
from locus.houses.rooms.common import Household


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    common.dress_windows(space, home)
    x0, y0, x1, y1 = space.room.inner
    long_x = x1 - x0 > y1 - y0
    if rng.random() < 0.75:
        cx, cy = space.room.centre
        common.lay_rug(space, home, cx, cy, max(x1 - x0, y1 - y0) * 0.7, 0.75, 0.0 if long_x else np.pi / 2)
    console = space.along_wall(home.make("console table", lambda: tables.console_table(rng, style)))
    if console:
        placed, side, along = console
        common.clutter(space, home, placed, 3)
        space.hang(decor.wall_mirror(rng, style, rng.uniform(0.4, 0.6), rng.uniform(0.6, 0.9)), 1.6, [side], along)
    rack = space.along_wall(home.make("shoe rack", lambda: storage.shoe_rack(rng, style)))
    common.clutter(space, home, rack[0] if rack else None, 1)
    space.hang(home.make("coat rack", lambda: storage.coat_rack(rng, style)), 1.7)
    if rng.random() < 0.5:
        space.along_wall(seating.bench(rng, style))
    common.hang_ceiling_lamp(space, home, 0.1)
    common.fill_walls(space, home, 7)
    common.floor_clutter(space, home, 2)
