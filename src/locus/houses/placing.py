"""Placing: where items stand, hang and lie. Nothing may intersect, doors stay free, and one can walk to every door."""

from dataclasses import dataclass, field

import numpy as np

from locus.houses.floor_plan import FloorPlan, Room, RoomSide
from locus.houses.ground import Boxes, passable
from locus.houses.items import Item, Shelf
from locus.houses.motions import Motion, moved, pose
from locus.render.lights import Lamp
from locus.render.surfaces import Surface

TOUCH = 0.003
"""Boxes may share this much: things touch what they stand on."""

Wall = tuple[RoomSide, float]
"""A side of a room, and how far along it."""


@dataclass(frozen=True, eq=False)
class Placed:
    """An item in its place."""

    kind: str
    parts: list[Surface]
    boxes: Boxes
    """Per part: its least and its greatest corner."""
    shelves: list[Shelf]
    """In the item's own coordinates; `matrix` carries them to the world."""
    lamps: list[Lamp]
    matrix: Motion
    room: int
    wall: Wall | None
    """The wall against which it was stood, if any."""

    @property
    def yaw(self) -> float:
        return float(np.arctan2(self.matrix[1, 0], self.matrix[0, 0]))

    def at(self, x: float, y: float, z: float = 0.0) -> tuple[float, float, float]:
        """A point of its own coordinates, in the world."""
        x, y, z, _ = (self.matrix @ np.array([x, y, z, 1.0])).tolist()
        return x, y, z


def facing(side: RoomSide) -> float:
    """The yaw with which an item's front looks away from a wall."""
    return float(np.arctan2(side.normal[1], side.normal[0]) - np.pi / 2)


def _moved_boxes(boxes: Boxes, matrix: Motion) -> Boxes:
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
    wall_parts: list[Surface] = field(default_factory=list)
    """What is fixed to the walls and belongs to them: tiles above a worktop."""

    def put(
        self,
        item: Item,
        x: float,
        y: float,
        z: float = 0.0,
        yaw: float = 0.0,
        over_reserved: bool = False,
        wall: Wall | None = None,
    ) -> Placed | None:
        """Place an item there if it fits."""
        matrix = pose(x, y, z, yaw)
        boxes = _moved_boxes(item.part_boxes, matrix)
        x0, y0, x1, y1 = self.room.inner
        low, high = boxes[:, :3].min(axis=0), boxes[:, 3:].max(axis=0)
        inside = low[0] >= x0 - 1e-3 and low[1] >= y0 - 1e-3 and high[0] <= x1 + 1e-3 and high[1] <= y1 + 1e-3
        if not inside or high[2] > self.height + 1e-3 or self._meets(boxes, over_reserved):
            return None
        if z < 0.05 and high[2] > 0.05 and not self._passable(boxes):
            return None
        lamps = [lamp.moved(matrix) for lamp in item.lamps]
        parts = moved(item.parts, matrix)
        self.placed.append(Placed(item.kind, parts, boxes, item.shelves, lamps, matrix, self.number, wall))
        return self.placed[-1]

    def _boxes(self, reserved: bool) -> Boxes:
        """All that is in the room."""
        fixed = self.solid + self.reserved if reserved else self.solid
        return np.concatenate([thing.boxes for thing in self.placed] + [np.array(fixed, float).reshape(-1, 6)])

    def _meets(self, boxes: Boxes, over_reserved: bool) -> bool:
        other = self._boxes(reserved=not over_reserved)
        apart = (boxes[:, None, :3] + TOUCH > other[None, :, 3:]) | (boxes[:, None, 3:] - TOUCH < other[None, :, :3])
        return not apart.any(axis=2).all()

    def _passable(self, more: Boxes) -> bool:
        return passable(self.room.inner, self.doors, np.concatenate([self._boxes(reserved=False), more]))

    def clear(self, side: RoomSide, s0: float, s1: float, high: float, deep: float) -> bool:
        """Whether nothing stands, and nothing is reserved, along a piece of wall."""
        return not self._meets(np.array([_region(side, s0, s1, 0.05, high, 0.03, deep)]), False)

    def along_wall(
        self, item: Item, sides: list[RoomSide] | None = None, gap: float = 0.02, prefer: float | None = None
    ) -> Placed | None:
        """Stand with the back to a wall; `prefer` is the share of the wall's length to try first."""
        low, high = item.bounds()
        wide = high[0] - low[0]
        for side in self._sides() if sides is None else sides:
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
            for along in tries.tolist():
                thing = self.put(item, *side.at(along, gap - low[1]), 0.0, facing(side), wall=(side, along))
                if thing:
                    return thing
        return None

    def _sides(self) -> list[RoomSide]:
        """The room's sides in random order."""
        return [self.room.sides[k] for k in self.rng.permutation(4)]

    def hang(self, item: Item, z: float, wall: Wall | None = None, over_reserved: bool = False) -> Placed | None:
        """Hang an item on a wall, or on the given one, with its origin at height z."""
        low, high = item.bounds()
        for side in [wall[0]] if wall else self._sides():
            lowest, highest = -low[0] + 0.05, side.length - high[0] - 0.05
            if highest < lowest:
                continue
            for along in [wall[1]] if wall else self.rng.uniform(lowest, highest, 8).tolist():
                thing = self.put(item, *side.at(along, 0.002), z, facing(side), over_reserved)
                if thing:
                    return thing
        return None

    def on_shelf(
        self,
        carrier: Placed,
        item: Item,
        shelf: Shelf | None = None,
        turn: float = 0.3,
        at: tuple[float, float] | None = None,
    ) -> Placed | None:
        """Put an item on something, at a random point (or at a given one in the carrier's coordinates)."""
        if not carrier.shelves:
            return None
        shelf = shelf or carrier.shelves[self.rng.integers(len(carrier.shelves))]
        low, high = item.bounds()
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
            thing = self.put(item, *carrier.at(x, y, shelf.z - low[2] + 0.0005), carrier.yaw + yaw, True)
            if thing:
                return thing
        return None

    def anywhere(self, item: Item, tries: int = 12) -> Placed | None:
        """Lie or stand somewhere on the floor."""
        low, high = item.bounds()
        reach = float(np.hypot(*np.maximum(np.abs(low[:2]), np.abs(high[:2])))) + 0.05
        x0, y0, x1, y1 = self.room.inner
        if x1 - x0 < 2 * reach or y1 - y0 < 2 * reach:
            return None
        for _ in range(tries):
            x, y = self.rng.uniform(x0 + reach, x1 - reach), self.rng.uniform(y0 + reach, y1 - reach)
            thing = self.on_floor(item, x, y, self.rng.uniform(0, 2 * np.pi), reach)
            if thing:
                return thing
        return None

    def on_floor(self, item: Item, x: float, y: float, yaw: float, reach: float) -> Placed | None:
        """Stand there, on the rug if one lies within `reach`."""
        return self.put(item, x, y, self.floor_height(x, y, reach), yaw)

    def floor_height(self, x: float, y: float, reach: float) -> float:
        """The top of a rug, where one lies within `reach`."""
        height = 0.0
        for thing in self.placed:
            if thing.kind == "rug":
                x0, y0, _, x1, y1, z1 = thing.boxes[0]
                if x0 - reach < x < x1 + reach and y0 - reach < y < y1 + reach:
                    height = max(height, z1)
        return float(height)


def open_space(plan: FloorPlan, number: int, rng: np.random.Generator) -> Space:
    """The room before anything stands in it: its doors and windows kept free."""
    room = plan.rooms[number]
    space = Space(room, number, plan.height, rng)
    for side in room.sides:
        for hole in side.holes:
            s0, s1, margin = hole.s0, hole.s1, 0.09
            space.solid.append(_region(side, s0 - margin, s1 + margin, hole.z0 - 0.06, hole.z1 + margin, 0.0, 0.025))
            if hole.kind == "window":
                space.reserved.append(_region(side, s0 - 0.15, s1 + 0.15, hole.z0, plan.height, 0.0, 0.3))
                if hole.z0 < 0.3:
                    space.reserved.append(_region(side, s0, s1, 0.05, 2.0, 0.0, 0.5))
            else:
                space.reserved.append(_region(side, s0 - 0.05, s1 + 0.05, 0.05, 2.05, 0.0, 0.7))
                space.doors.append(side.at((s0 + s1) / 2, 0.35))
    return space


def _region(side: RoomSide, s0: float, s1: float, z0: float, z1: float, near: float, far: float) -> tuple[float, ...]:
    ax, ay = side.at(s0, near)
    bx, by = side.at(s1, far)
    return (min(ax, bx), min(ay, by), z0, max(ax, bx), max(ay, by), z1)
