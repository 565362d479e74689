"""What all rooms share: windows dressed, walls filled, lamps hung, surfaces and corners cluttered; and models that
recur in one house."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from locus.houses.furniture import decor, devices, kitchenware, lamps, plants, storage, textiles, toys
from locus.houses.placing import Placed, Space
from locus.houses.style import Style
from locus.houses.things import Model, Shelf


@dataclass
class Household:
    """One house while it is being furnished."""

    rng: np.random.Generator
    style: Style
    lamps_on: float
    """The chance that a lamp is lit."""
    outside_models: dict[str, list[Callable[[], Model]]]
    """Makers of models from a user's folder, by kind."""
    recurring: dict[str, Model] = field(default_factory=dict)

    def lit(self) -> bool:
        return bool(self.rng.random() < self.lamps_on)

    def make(self, kind: str, maker: Callable[[], Model]) -> Model:
        """A model of a kind: from the user's folder now and then, if it has any; else a generated one."""
        choices = self.outside_models.get(kind)
        if choices and self.rng.random() < 0.6:
            return choices[self.rng.integers(len(choices))]()
        return maker()

    def again(self, kind: str, maker: Callable[[], Model]) -> Model:
        """The very model that another room has, if there is one: people buy things twice."""
        if kind in self.recurring and self.rng.random() < 0.65:
            return self.recurring[kind]
        model = self.make(kind, maker)
        self.recurring.setdefault(kind, model)
        return model


def dress_windows(space: Space, home: Household) -> None:
    rng, style = home.rng, home.style
    for side in space.room.sides:
        for hole in side.holes:
            if hole.kind != "window":
                continue
            middle, width = (hole.s0 + hole.s1) / 2, hole.s1 - hole.s0
            if hole.z0 > 0.6 and space.room.use != "kitchen" and rng.random() < 0.7:
                space.hang(devices.radiator(rng, style, min(width, 1.3)), 0.0, [side], middle)
            pick = rng.random()
            if space.room.use in ("bathroom", "kitchen"):
                if pick < 0.5:
                    space.hang(
                        textiles.blind(rng, style, width + 0.1, hole.z1 - hole.z0, rng.uniform(0.15, 0.5)),
                        hole.z1 + 0.14,
                        [side],
                        middle,
                        True,
                    )
            elif pick < 0.75:
                foot = 0.02 if hole.z0 < 0.3 or rng.random() < 0.6 else hole.z0 - 0.15
                top = min(hole.z1 + 0.12, space.height - 0.06)
                model = home.make(
                    "curtain", lambda f=foot, t=top, w=width: textiles.curtains(rng, style, w + 0.7, f, t)
                )
                space.hang(model, 0.0, [side], middle, True)
            elif pick < 0.9:
                space.hang(
                    textiles.blind(rng, style, width + 0.1, hole.z1 - hole.z0, rng.uniform(0.1, 0.6)),
                    hole.z1 + 0.14,
                    [side],
                    middle,
                    True,
                )


def fill_walls(space: Space, home: Household, count: int) -> None:
    """Pictures alone or in a row, a clock, wall shelves."""
    rng, style = home.rng, home.style
    for _ in range(count):
        pick = rng.random()
        if pick < 0.72:
            model = (
                decor.picture(rng, style)
                if rng.random() < 0.8
                else home.again("picture", lambda: decor.picture(rng, style))
            )
            space.hang(model, rng.uniform(1.45, 1.65))
        elif pick < 0.87:
            shelf_on_wall(space, home)
        elif not any(thing.kind == "clock" for thing in space.placed):
            space.hang(home.make("clock", lambda: decor.clock(rng, style)), rng.uniform(1.7, 1.9))


def shelf_on_wall(space: Space, home: Household) -> None:
    shelf = space.hang(storage.wall_shelf(home.rng, home.style), home.rng.uniform(1.3, 1.6))
    if shelf:
        space.on_shelf(shelf, small_thing(home, 0.35))


def hang_ceiling_lamp(space: Space, home: Household, drop: float, at: tuple[float, float] | None = None) -> None:
    x, y = at or space.room.centre
    model = home.make("ceiling lamp", lambda: lamps.ceiling_lamp(home.rng, home.style, home.lit(), drop))
    space.put(model, x, y, space.height - 0.002, 0.0, True)


def small_thing(home: Household, largest: float = 0.6) -> Model:
    """Something for a shelf, a table or a windowsill."""
    rng, style = home.rng, home.style
    makers: list[tuple[str, Callable[[], Model]]] = [
        ("vase", lambda: home.again("vase", lambda: plants.vase(rng, style))),
        ("book", lambda: decor.books(rng, style)),
        ("book", lambda: decor.books(rng, style)),
        ("plant", lambda: plants.plant(rng, style, rng.uniform(0.22, 0.42))),
        ("candle", lambda: decor.candle(rng, style)),
        ("picture", lambda: decor.photo_frame(rng, style)),
        ("box", lambda: decor.carton(rng, style, 0.26)),
        ("toy", lambda: toys.toy(rng, style)),
        ("dishes", lambda: kitchenware.dishes(rng, style)),
    ]
    for _ in range(5):
        kind, maker = makers[rng.integers(len(makers))]
        model = home.make(kind, maker)
        if model.size()[2] < largest:
            return model
    return decor.candle(rng, style)


def clutter(space: Space, home: Household, carrier: Placed | None, count: int, shelf: Shelf | None = None) -> None:
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
            model = home.make(
                "plant", lambda: home.again("plant", lambda: plants.plant(rng, style, rng.uniform(0.6, 1.6)))
            )
            space.along_wall(model, gap=0.05)
        elif pick < 0.55:
            space.along_wall(
                home.make("basket", lambda: home.again("basket", lambda: decor.basket(rng, style))), gap=0.04
            )
        elif pick < 0.75:
            space.along_wall(decor.carton(rng, style, 0.5), gap=0.04)
        else:
            space.anywhere(home.make("toy", lambda: toys.toy(rng, style)))


def fill_bookshelf(space: Space, home: Household, carrier: Placed) -> None:
    for shelf in carrier.shelves:
        for _ in range(2):
            space.on_shelf(carrier, small_thing(home, shelf.headroom), shelf)


def lay_rug(space: Space, home: Household, x: float, y: float, width: float, depth: float, yaw: float) -> None:
    x0, y0, x1, y1 = space.room.inner
    across, along = (width, depth) if abs(np.cos(yaw)) > 0.7 else (depth, width)
    across, along = min(across, x1 - x0 - 0.3), min(along, y1 - y0 - 0.3)
    x = float(np.clip(x, x0 + across / 2 + 0.1, x1 - across / 2 - 0.1))
    y = float(np.clip(y, y0 + along / 2 + 0.1, y1 - along / 2 - 0.1))
    wide, deep = (across, along) if abs(np.cos(yaw)) > 0.7 else (along, across)
    space.put(home.make("rug", lambda: textiles.rug(home.rng, home.style, wide, deep)), x, y, 0.0, yaw, True)
