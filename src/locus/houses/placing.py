"""Placing: where models stand, hang and lie. Nothing may intersect, doors stay free, and one can walk to every door."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from locus.houses.layout import Plan, Room, Side
from locus.houses.things import Model, Shelf
from locus.render.lights import Lamp
from locus.render.parts import Part

TOUCH = 0.003
"""Boxes may share this much: things touch what they stand on."""
CELL = 0.08
BODY = 0.24
"""Half of the width that a person or a camera needs to pass: it keeps this far from walls and furniture."""
TALL = 1.75
FLOOR_LEFT = 0.08
"""Share of a room's floor, margins along walls included, that must stay free to stand on."""
STEPPED_OVER = 0.12
"""Things lower than this (rugs, thresholds) are no obstacle."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A model in its place."""

    kind: str
    parts: list[Part]
    boxes: Float[np.ndarray, "b 6"]
    """Per part: its least and its greatest corner."""
    shelves: list[Shelf]
    """In the model's own coordinates; `matrix` carries them to the world."""
    lamps: list[Lamp]
    matrix: Float[np.ndarray, "4 4"]
    room: int


def pose(x: float, y: float, z: float, yaw: float) -> Float[np.ndarray, "4 4"]:
    matrix = np.eye(4)
    matrix[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    matrix[:3, 3] = (x, y, z)
    return matrix


def facing(side: Side) -> float:
    """The yaw with which a model's front looks away from a wall."""
    return float(np.arctan2(side.normal[1], side.normal[0]) - np.pi / 2)


def _moved_boxes(boxes: Float[np.ndarray, "b 6"], matrix: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "b 6"]:
    """Boxes around moved boxes; around more than the parts themselves if turned by no right angle."""
    centre, half = (boxes[:, :3] + boxes[:, 3:]) / 2, (boxes[:, 3:] - boxes[:, :3]) / 2
    centre = centre @ matrix[:3, :3].T + matrix[:3, 3]
    half = half @ np.abs(matrix[:3, :3]).T
    return np.concatenate([centre - half, centre + half], axis=1)


@dataclass
class Space:
    """One room while it is being furnished."""

    room: Room
    number: int
    height: float
    rng: np.random.Generator
    placed: list[Placed] = field(default_factory=list)
    reserved: list[tuple[float, ...]] = field(default_factory=list)
    """Boxes that only flat or hanging things may enter: before doors, before windows."""
    solid: list[tuple[float, ...]] = field(default_factory=list)
    """Boxes that nothing may enter: door leaves, frames, window holes."""
    doors: list[tuple[float, float]] = field(default_factory=list)
    """Points on the floor, just inside each door, between which one must be able to walk."""
    wall_parts: list[Part] = field(default_factory=list)
    """What is fixed to the walls and belongs to them: tiles above a worktop."""

    def put(
        self, model: Model, x: float, y: float, z: float = 0.0, yaw: float = 0.0, over_reserved: bool = False
    ) -> Placed | None:
        """Place a model there if it fits."""
        matrix = pose(x, y, z, yaw)
        boxes = _moved_boxes(model.part_boxes, matrix)
        x0, y0, x1, y1 = self.room.inner
        low, high = boxes[:, :3].min(axis=0), boxes[:, 3:].max(axis=0)
        inside = low[0] >= x0 - 1e-3 and low[1] >= y0 - 1e-3 and high[0] <= x1 + 1e-3 and high[1] <= y1 + 1e-3
        if not inside or high[2] > self.height + 1e-3 or self._meets(boxes, over_reserved):
            return None
        lamps = [
            Lamp(tuple((matrix @ np.array([*lamp.position, 1.0]))[:3].tolist()), lamp.radius, lamp.power)
            for lamp in model.lamps
        ]
        parts = [part.moved(matrix) for part in model.parts]
        thing = Placed(model.kind, parts, boxes, model.shelves, lamps, matrix, self.number)
        self.placed.append(thing)
        if z < 0.05 and high[2] > 0.05 and not self._passable():
            self.placed.pop()
            return None
        return thing

    def _meets(self, boxes: Float[np.ndarray, "b 6"], over_reserved: bool) -> bool:
        others = [thing.boxes for thing in self.placed]
        if self.solid:
            others.append(np.array(self.solid, float))
        if self.reserved and not over_reserved:
            others.append(np.array(self.reserved, float))
        if not others:
            return False
        other = np.concatenate(others)
        apart = (boxes[:, None, :3] + TOUCH > other[None, :, 3:]) | (boxes[:, None, 3:] - TOUCH < other[None, :, :3])
        return not apart.any(axis=2).all()

    def _passable(self) -> bool:
        """Whether one can walk from each door to every other and to the floor that is left, and enough is left."""
        if not self.doors:
            return True
        x0, y0, x1, y1 = self.room.inner
        rows, columns = max(1, int((y1 - y0) / CELL)), max(1, int((x1 - x0) / CELL))
        y, x = y0 + (np.arange(rows) + 0.5) * CELL, x0 + (np.arange(columns) + 0.5) * CELL
        free = within(x, y, (x0 + BODY, y0 + BODY, x1 - BODY, y1 - BODY))
        obstacles = [thing.boxes for thing in self.placed] + ([np.array(self.solid)] if self.solid else [])
        # A little more than the cameras will need, whose cells may lie differently.
        block(free, x, y, np.concatenate(obstacles), BODY + CELL / 2)
        labels, _ = ndimage.label(free)
        common: set[int] | None = None
        for door_x, door_y in self.doors:
            row, column = int((door_y - y0) / CELL), int((door_x - x0) / CELL)
            near = labels[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4]
            reached = {int(k) for k in np.unique(near) if k}
            common = reached if common is None else common & reached
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        largest = int(np.argmax(sizes))
        return common is not None and largest in common and bool(sizes[largest] > FLOOR_LEFT * free.size)

    def clear(self, side: Side, s0: float, s1: float, z0: float, z1: float, deep: float) -> bool:
        """Whether nothing stands, and nothing is reserved, along a piece of wall."""
        return not self._meets(np.array([_region(side, s0, s1, z0 + 0.05, z1, 0.03, deep)]), False)

    def along_wall(
        self,
        model: Model,
        sides: list[Side] | None = None,
        gap: float = 0.02,
        prefer: float | None = None,
        z: float = 0.0,
    ) -> tuple[Placed, Side, float] | None:
        """Stand with the back to a wall; `prefer` is the share of the wall's length to try first."""
        low, high = model.bounds()
        wide = high[0] - low[0]
        sides = self.sides() if sides is None else sides
        for side in sides:
            lowest, highest = wide / 2 + 0.03, side.length - wide / 2 - 0.03
            if highest < lowest:
                continue
            tries = np.arange(lowest, highest + 1e-6, 0.1)
            if prefer is None:
                # People push furniture into corners or put it in the middle; rarely anywhere.
                tries = np.concatenate([[lowest, highest], self.rng.permutation(tries)])
                if self.rng.random() < 0.5:
                    tries = tries[np.r_[1, 0, 2 : len(tries)]]
            else:
                tries = tries[np.argsort(np.abs(tries - prefer * side.length), kind="stable")]
            for along in tries:
                x, y = side.at(float(along), gap - low[1])
                thing = self.put(model, x, y, z, facing(side))
                if thing:
                    return thing, side, float(along)
        return None

    def sides(self) -> list[Side]:
        """The room's sides in random order."""
        return [self.room.sides[k] for k in self.rng.permutation(4)]

    def hang(
        self,
        model: Model,
        z: float,
        sides: list[Side] | None = None,
        along: float | None = None,
        over_reserved: bool = False,
    ) -> Placed | None:
        """Hang a model on a wall with its origin at height z."""
        low, high = model.bounds()
        for side in self.sides() if sides is None else sides:
            lowest, highest = -low[0] + 0.05, side.length - high[0] - 0.05
            if highest < lowest:
                continue
            tries = [along] if along is not None else self.rng.uniform(lowest, highest, 8)
            for s in tries:
                x, y = side.at(float(s), 0.002)
                thing = self.put(model, x, y, z, facing(side), over_reserved)
                if thing:
                    return thing
        return None

    def on_shelf(
        self,
        carrier: Placed,
        model: Model,
        shelf: Shelf | None = None,
        turn: float = 0.3,
        at: tuple[float, float] | None = None,
    ) -> Placed | None:
        """Put a model on something, at a random place (or at a given one in the carrier's coordinates)."""
        if not carrier.shelves:
            return None
        shelf = shelf or carrier.shelves[self.rng.integers(len(carrier.shelves))]
        low, high = model.bounds()
        if high[2] - low[2] > shelf.headroom:
            return None
        reach = np.maximum(np.abs(low), np.abs(high))
        for _ in range(6):
            yaw = self.rng.normal(0, turn)
            grow = abs(np.cos(yaw)) + abs(np.sin(yaw)) * 0.6
            rx, ry = reach[0] * grow, reach[1] * grow
            if at is not None:
                x, y = at
            elif shelf.x1 - shelf.x0 < 2 * rx or shelf.y1 - shelf.y0 < 2 * ry:
                return None
            else:
                x = self.rng.uniform(shelf.x0 + rx, shelf.x1 - rx)
                y = self.rng.uniform(shelf.y0 + ry, shelf.y1 - ry)
            world = carrier.matrix @ np.array([x, y, shelf.z - low[2] + 0.0005, 1.0])
            carrier_yaw = float(np.arctan2(carrier.matrix[1, 0], carrier.matrix[0, 0]))
            thing = self.put(model, float(world[0]), float(world[1]), float(world[2]), carrier_yaw + yaw, True)
            if thing:
                return thing
        return None

    def anywhere(self, model: Model, tries: int = 12, margin: float = 0.05) -> Placed | None:
        """Lie or stand somewhere on the floor."""
        low, high = model.bounds()
        reach = float(np.hypot(*np.maximum(np.abs(low[:2]), np.abs(high[:2])))) + margin
        x0, y0, x1, y1 = self.room.inner
        if x1 - x0 < 2 * reach or y1 - y0 < 2 * reach:
            return None
        for _ in range(tries):
            x, y = self.rng.uniform(x0 + reach, x1 - reach), self.rng.uniform(y0 + reach, y1 - reach)
            thing = self.put(
                model, float(x), float(y), self.floor_height(float(x), float(y), reach), self.rng.uniform(0, 2 * np.pi)
            )
            if thing:
                return thing
        return None

    def floor_height(self, x: float, y: float, reach: float) -> float:
        """The top of a rug, where one lies within `reach`."""
        height = 0.0
        for thing in self.placed:
            if thing.kind == "rug":
                x0, y0, _, x1, y1, z1 = thing.boxes[0]
                if x0 - reach < x < x1 + reach and y0 - reach < y < y1 + reach:
                    height = max(height, z1)
        return float(height)


def within(
    x: Float[np.ndarray, " columns"], y: Float[np.ndarray, " rows"], rectangle: tuple[float, float, float, float]
) -> Bool[np.ndarray, "rows columns"]:
    """Which cells, with centres x and y, lie inside a rectangle (x0, y0, x1, y1)."""
    x0, y0, x1, y1 = rectangle
    return ((y > y0) & (y < y1))[:, None] & ((x > x0) & (x < x1))[None]


def block(
    free: Bool[np.ndarray, "rows columns"],
    x: Float[np.ndarray, " columns"],
    y: Float[np.ndarray, " rows"],
    boxes: Float[np.ndarray, "b 6"],
    body: float = BODY,
) -> None:
    """Mark cells that are closer than `body` to a box as not free."""
    for x0, y0, z0, x1, y1, z1 in boxes:
        if z1 > STEPPED_OVER and z0 < TALL:
            left, right = np.searchsorted(x, (x0 - body, x1 + body))
            low, high = np.searchsorted(y, (y0 - body, y1 + body))
            free[low:high, left:right] = False


def open_space(plan: Plan, number: int, rng: np.random.Generator) -> Space:
    """The room before anything stands in it: its doors and windows kept free."""
    room = plan.rooms[number]
    space = Space(room, number, plan.height, rng)
    for side in room.sides:
        for hole in side.holes:
            middle = (hole.s0 + hole.s1) / 2
            margin = 0.09
            space.solid.append(
                _region(side, hole.s0 - margin, hole.s1 + margin, hole.z0 - 0.06, hole.z1 + margin, 0.0, 0.025)
            )
            if hole.kind == "window":
                space.reserved.append(_region(side, hole.s0 - 0.15, hole.s1 + 0.15, hole.z0, plan.height, 0.0, 0.3))
                if hole.z0 < 0.3:
                    space.reserved.append(_region(side, hole.s0, hole.s1, 0.05, 2.0, 0.0, 0.5))
            else:
                space.reserved.append(_region(side, hole.s0 - 0.05, hole.s1 + 0.05, 0.05, 2.05, 0.0, 0.7))
                space.doors.append(side.at(middle, 0.35))
    return space


def _region(side: Side, s0: float, s1: float, z0: float, z1: float, near: float, far: float) -> tuple[float, ...]:
    ax, ay = side.at(s0, near)
    bx, by = side.at(s1, far)
    return (min(ax, bx), min(ay, by), z0, max(ax, bx), max(ay, by), z1)
