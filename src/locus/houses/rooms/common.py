"""What all rooms share: windows dressed, walls filled, lamps hung, surfaces and corners cluttered; and items that recur
in one house."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from locus.houses.furniture import decor, devices, kitchenware, lamps, plants, storage, textiles, toys
from locus.houses.items import Item, Shelf
from locus.houses.placing import Placed, Space
from locus.houses.style import Style

Maker = Callable[..., Item]
"""Makes an item from a random generator, the household's style, and perhaps more."""


@dataclass
class Household:
    """One house while it is being furnished."""

    rng: np.random.Generator
    style: Style
    lamps_on: float
    """The chance that a lamp is lit."""
    outside_models: dict[str, list[Callable[[], Item]]]
    """Makers of items from a user's folder, by kind."""
    recurring: dict[str, Item] = field(default_factory=dict)

    def make(self, kind: str, maker: Maker, *arguments: object) -> Item:
        """An item of a kind: from the user's folder now and then, if it has any; else a generated one."""
        choices = self.outside_models.get(kind)
        if choices and self.rng.random() < 0.6:
            return choices[self.rng.integers(len(choices))]()
        return maker(self.rng, self.style, *arguments)

    def again(self, kind: str, maker: Maker, *arguments: object) -> Item:
        """The very item that another room has, if there is one: people buy things twice."""
        if kind in self.recurring and self.rng.random() < 0.65:
            return self.recurring[kind]
        item = self.make(kind, maker, *arguments)
        self.recurring.setdefault(kind, item)
        return item

    def make_or_again(self, kind: str, maker: Maker, *arguments: object) -> Item:
        """From the user's folder, or the very item that another room has."""
        return self.make(kind, lambda *_: self.again(kind, maker, *arguments))


def dress_windows(space: Space, home: Household) -> None:
    """Radiators below windows, curtains or blinds before them."""
    rng, style = home.rng, home.style
    wet = space.room.use in ("bathroom", "kitchen")
    for side in space.room.sides:
        for hole in side.holes:
            if hole.kind != "window":
                continue
            wall, width = (side, (hole.s0 + hole.s1) / 2), hole.s1 - hole.s0
            if hole.z0 > 0.6 and space.room.use != "kitchen" and rng.random() < 0.7:
                space.hang(devices.radiator(rng, style, min(width, 1.3)), 0.0, wall)
            pick = rng.random()
            if not wet and pick < 0.75:
                foot = 0.02 if hole.z0 < 0.3 or rng.random() < 0.6 else hole.z0 - 0.15
                top = min(hole.z1 + 0.12, space.height - 0.06)
                space.hang(home.make("curtain", textiles.curtains, width + 0.7, foot, top), 0.0, wall, True)
            elif pick < (0.5 if wet else 0.9):
                drawn = rng.uniform(0.15, 0.5) if wet else rng.uniform(0.1, 0.6)
                blind = textiles.blind(rng, style, width + 0.1, hole.z1 - hole.z0, drawn)
                space.hang(blind, hole.z1 + 0.14, wall, True)


def fill_walls(space: Space, home: Household, count: int) -> None:
    """Pictures alone or in a row, a clock, wall shelves."""
    rng, style = home.rng, home.style
    for _ in range(count):
        pick = rng.random()
        if pick < 0.72:
            picture = decor.picture(rng, style) if rng.random() < 0.8 else home.again("picture", decor.picture)
            space.hang(picture, rng.uniform(1.45, 1.65))
        elif pick < 0.87:
            shelf = space.hang(storage.wall_shelf(rng, style), rng.uniform(1.3, 1.6))
            if shelf:
                space.on_shelf(shelf, small_thing(home, 0.35))
        elif not any(thing.kind == "clock" for thing in space.placed):
            space.hang(home.make("clock", decor.clock), rng.uniform(1.7, 1.9))


def hang_mirror(
    space: Space, home: Household, above: Placed, widths: tuple[float, float], heights: tuple[float, float], z: float
) -> None:
    mirror = decor.wall_mirror(home.rng, home.style, home.rng.uniform(*widths), home.rng.uniform(*heights))
    space.hang(mirror, z, above.wall)


def hang_ceiling_lamp(space: Space, home: Household, drop: float, at: tuple[float, float] | None = None) -> None:
    x, y = at or space.room.centre
    space.put(home.make("ceiling lamp", lamps.ceiling_lamp, home.lamps_on, drop), x, y, space.height - 0.002, 0.0, True)


SMALL_THINGS: tuple[tuple[str, Maker, tuple], ...] = (
    ("vase", plants.vase, ()),
    ("book", decor.books, ()),
    ("book", decor.books, ()),
    ("plant", plants.small_plant, ()),
    ("candle", decor.candle, ()),
    ("picture", decor.photo_frame, ()),
    ("box", decor.carton, (0.26,)),
    ("toy", toys.toy, ()),
    ("dishes", kitchenware.dishes, ()),
)


def small_thing(home: Household, largest: float = 0.6) -> Item:
    """Something for a shelf, a table or a windowsill."""
    for _ in range(5):
        kind, maker, arguments = SMALL_THINGS[home.rng.integers(len(SMALL_THINGS))]
        item = (home.make_or_again if kind == "vase" else home.make)(kind, maker, *arguments)
        if item.size()[2] < largest:
            return item
    return decor.candle(home.rng, home.style)


def clutter(space: Space, home: Household, carrier: Placed | None, count: int, shelf: Shelf | None = None) -> None:
    """Small things on something, if it found room."""
    if carrier is None:
        return
    for _ in range(count):
        space.on_shelf(carrier, small_thing(home), shelf)


def floor_clutter(space: Space, home: Household, count: int) -> None:
    """Plants in corners, baskets and boxes along walls, toys about."""
    rng, style = home.rng, home.style
    for _ in range(count):
        pick = rng.random()
        if pick < 0.4:
            space.along_wall(home.make_or_again("plant", plants.large_plant), gap=0.05)
        elif pick < 0.55:
            space.along_wall(home.make_or_again("basket", decor.basket), gap=0.04)
        elif pick < 0.75:
            space.along_wall(decor.carton(rng, style, 0.5), gap=0.04)
        else:
            space.anywhere(home.make("toy", toys.toy))


def stand_bookshelf(space: Space, home: Household, again: bool = False) -> None:
    """A bookshelf, with small things where it has no books."""
    carrier = space.along_wall((home.again if again else home.make)("bookshelf", storage.bookshelf))
    if carrier is None:
        return
    for shelf in carrier.shelves:
        for _ in range(2):
            space.on_shelf(carrier, small_thing(home, shelf.headroom), shelf)


def lay_rug(space: Space, home: Household, x: float, y: float, width: float, depth: float, yaw: float) -> None:
    """A rug with its middle there, made smaller and moved where the room is too small."""
    x0, y0, x1, y1 = space.room.inner
    turned = abs(np.cos(yaw)) <= 0.7
    across, along = (depth, width) if turned else (width, depth)
    across, along = min(across, x1 - x0 - 0.3), min(along, y1 - y0 - 0.3)
    x = float(np.clip(x, x0 + across / 2 + 0.1, x1 - across / 2 - 0.1))
    y = float(np.clip(y, y0 + along / 2 + 0.1, y1 - along / 2 - 0.1))
    wide, deep = (along, across) if turned else (across, along)
    space.put(home.make("rug", textiles.rug, wide, deep), x, y, 0.0, yaw, True)
