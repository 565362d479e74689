"""Bedrooms, for grown-ups and for children."""

import numpy as np

from locus.houses.furniture import decor, lamps, seating, sleeping, storage, tables, textiles, toys
from locus.houses.placing import Placed, Space, facing
from locus.houses.rooms import common
from locus.houses.rooms.common import Household
from locus.houses.rooms.study import desk_group


def furnish(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    child = rng.random() < 0.35 or space.room.area < 9
    order = sorted(space.room.sides, key=lambda side: sum(hole.s1 - hole.s0 for hole in side.holes))
    bed = space.along_wall(home.make("bed", sleeping.bed, child), order, prefer=0.1 if child else 0.5)
    if bed is None and not child:
        bed = space.along_wall(sleeping.bed(rng, style, single=True))
    if bed:
        _beside_bed(space, home, bed, child)
    wardrobe = space.along_wall(home.make("wardrobe", storage.wardrobe))
    if wardrobe:
        for _ in range(2):
            space.on_shelf(wardrobe, decor.carton(rng, style, 0.4))
    chest = space.along_wall(home.make("chest of drawers", storage.chest_of_drawers))
    if chest:
        common.clutter(space, home, chest, 4)
        common.hang_mirror(space, home, chest, (0.4, 0.7), (0.5, 0.8), 1.6)
    if child or rng.random() < 0.35:
        desk_group(space, home)
    if rng.random() < 0.6:
        space.along_wall(home.again("chair", seating.chair), gap=0.05)
    if rng.random() < 0.5:
        common.stand_bookshelf(space, home, again=True)
    common.dress_windows(space, home)
    common.hang_ceiling_lamp(space, home, 0.1 if space.height < 2.5 else rng.uniform(0.3, 0.5))
    common.fill_walls(space, home, 6)
    common.floor_clutter(space, home, 3)
    if child:
        for _ in range(5):
            space.anywhere(home.make("toy", toys.toy))


def _beside_bed(space: Space, home: Household, bed: Placed, child: bool) -> None:
    """Nightstands with lamps beside it, cushions on it, perhaps a bench at its foot and a rug."""
    rng, style = home.rng, home.style
    assert bed.wall is not None
    side, along = bed.wall
    half = float((bed.boxes[:, 3:5].max(axis=0) - bed.boxes[:, :2].min(axis=0))[0 if side.right[0] else 1]) / 2
    stand = home.again("nightstand", tables.nightstand)
    lamp = home.again("table lamp", lamps.table_lamp, home.lamps_on)
    wide, deep, _ = stand.size()
    for way in (-1, 1):
        x, y = side.at(along + way * (half + wide / 2 + 0.04), deep / 2 + 0.03)
        placed = space.put(stand, x, y, 0.0, facing(side))
        if placed:
            space.on_shelf(placed, lamp, at=(0.0, -0.05))
            common.clutter(space, home, placed, 2)
    for _ in range(int(rng.integers(0, 4))):
        space.on_shelf(bed, home.make("cushion", textiles.cushion_loose))
    if child:
        space.on_shelf(bed, toys.toy(rng, style))
    elif rng.random() < 0.4:
        x, y = side.at(along, 2.08 + 0.3)
        bench = space.put(seating.bench(rng, style), x, y, 0.0, facing(side) + np.pi)
        common.clutter(space, home, bench, 1)
    if rng.random() < 0.75:
        if rng.random() < 0.5:
            x, y = side.at(along, 2.75)
            common.lay_rug(space, home, x, y, rng.uniform(1.4, 2.2), rng.uniform(0.8, 1.1), facing(side))
        else:
            x, y = side.at(along + (half + 0.55) * rng.choice([-1, 1]), 1.3)
            common.lay_rug(space, home, x, y, 0.8, rng.uniform(1.3, 1.8), facing(side))
