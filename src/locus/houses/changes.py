"""A house visited again: some things moved, some gone, some new, and other light."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from locus.geometry import invert
from locus.houses.classes import CLASS_ID
from locus.houses.house import House, draw_outside, draw_weather
from locus.houses.items import Item, boxes_of
from locus.houses.motions import Motion, moved
from locus.houses.placing import Placed, Space, open_space
from locus.render.lights import Lights
from locus.render.surfaces import Thing

FIXED = {
    "curtain", "radiator", "kitchen counter", "kitchen cabinet", "kitchen island", "oven",
    "toilet", "washbasin", "bathtub", "shower",
}  # fmt: skip
LEAST = 0.25  # metres that a thing which changes must measure, or nobody would notice
FAR = 0.5  # metres that a thing which is moved must be moved at least
FLOOR = 0.05  # metres above the floor: a rug may lie between

Box = Float[np.ndarray, " 6"]


@dataclass(frozen=True, eq=False)
class HouseChange:
    """One thing that is not what it was."""

    what: Literal["moved", "gone", "new"]
    kind: str
    instance: int
    before: Box | None
    """Its least and its greatest corner, metres in the house; None if it was not there."""
    after: Box | None
    after_from_before: Motion | None = None
    """How it was moved, in the house's coordinates."""

    def described(self) -> dict[str, Any]:
        """For machines."""
        boxes = {"before": self.before, "after": self.after, "after_from_before": self.after_from_before}
        told = {name: None if value is None else value.round(4).tolist() for name, value in boxes.items()}
        return {"change": self.what, "class": self.kind, "instance": self.instance, **told}


def changed(house: House, moves: int, rng: np.random.Generator, other: House) -> tuple[House, list[HouseChange]]:
    """The house with so many things moved, half as many gone, and as many new from another house; the light is another.

    Things keep their instance numbers. There are fewer changes where fewer things stand freely or find a free place.
    """
    shell = house.things[: len(house.things) - len(house.placed)]
    now = {len(shell) + 1 + number: thing for number, thing in enumerate(house.placed)}
    candidates = [instance for instance, thing in now.items() if _free(thing, house.placed)]
    waiting = [candidates[number] for number in rng.permutation(len(candidates))]
    changes: list[HouseChange] = []
    stays: list[int] = []
    while waiting and len(changes) < moves:
        instance = waiting.pop()
        before = now.pop(instance)
        rooms = [before.room, *rng.permutation(len(house.plan.rooms)).tolist()]
        tried = (_put(_space(house, now, room, rng), before) for room in rooms)
        after = next((place for place in tried if place is not None and _moved(before, place) >= FAR), None)
        now[instance] = after or before
        if after is None:
            stays.append(instance)
        else:
            motion = after.matrix @ invert(before.matrix)
            changes.append(HouseChange("moved", after.kind, instance, _box(before), _box(after), motion))
    for instance in (waiting + stays)[: moves // 2]:
        gone = now.pop(instance)
        changes.append(HouseChange("gone", gone.kind, instance, _box(gone), None))
    strangers = [thing for thing in other.placed if _free(thing, other.placed)]
    added = 0
    for number in rng.permutation(len(strangers)):
        if added == moves // 2:
            break
        space = _space(house, now, int(rng.integers(len(house.plan.rooms))), rng)
        if (new := _put(space, strangers[number])) is not None:
            added += 1
            instance = len(house.things) + added
            now[instance] = new
            changes.append(HouseChange("new", new.kind, instance, None, _box(new)))
    placed = [now[instance] for instance in sorted(now)]
    things = [*shell, *(Thing(CLASS_ID[now[instance].kind], instance, now[instance].parts) for instance in sorted(now))]
    outside = draw_outside(rng, draw_weather(rng), house.lights.windows)
    lights = Lights(outside, house.lights.windows, [lamp for thing in placed for lamp in thing.lamps])
    return replace(house, things=things, placed=placed, lights=lights), changes


def _free(thing: Placed, things: list[Placed]) -> bool:
    """Whether people could move it: it stands on the floor, with nothing on it, and is large enough to be noticed."""
    low, high = _box(thing)[:3], _box(thing)[3:]
    if thing.kind in FIXED or low[2] > FLOOR or high[2] < FLOOR or (high - low).max() < LEAST:
        return False
    raised = [_box(each) for each in things if each is not thing and FLOOR < _box(each)[2] < high[2] + FLOOR]
    return not any((box[:2] < high[:2]).all() and (box[3:5] > low[:2]).all() for box in raised)


def _space(house: House, now: dict[int, Placed], room: int, rng: np.random.Generator) -> Space:
    """A room as it is furnished now."""
    space = open_space(house.plan, room, rng)
    doors = [boxes_of(thing.parts) for thing in house.things if thing.semantic == CLASS_ID["door"] and thing.parts]
    space.solid += [tuple(box) for boxes in doors for box in boxes]
    space.placed = [thing for thing in now.values() if thing.room == room]
    return space


def _put(space: Space, thing: Placed) -> Placed | None:
    """Another place for a thing: against a wall if it stood against one."""
    own = invert(thing.matrix)
    item = Item(thing.kind, moved(thing.parts, own), thing.shelves, [lamp.moved(own) for lamp in thing.lamps])
    return space.along_wall(item) if thing.wall else space.anywhere(item)


def _moved(before: Placed, after: Placed) -> float:
    return float(np.linalg.norm(after.matrix[:3, 3] - before.matrix[:3, 3]))


def _box(thing: Placed) -> Box:
    return np.concatenate([thing.boxes[:, :3].min(axis=0), thing.boxes[:, 3:].max(axis=0)])
