"""A model: one piece of furniture or household thing in its own coordinates."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from locus.houses.motions import moved, shift
from locus.render.lights import Lamp
from locus.render.surfaces import Surface


def boxes_of(parts: list[Surface]) -> Float[np.ndarray, "b 6"]:
    """Per part: its least and its greatest corner."""
    return np.array([[*part.vertices.min(axis=0), *part.vertices.max(axis=0)] for part in parts], float)


@dataclass(frozen=True)
class Shelf:
    """A level rectangle on which other things can stand."""

    x0: float
    y0: float
    x1: float
    y1: float
    z: float
    headroom: float = 1.0

    @classmethod
    def on_top(cls, width: float, depth: float, z: float, headroom: float, inset: float = 0.0) -> "Shelf":
        """The top of something with its middle at the origin, but for a margin along its edges."""
        x, y = width / 2 - inset, depth / 2 - inset
        return cls(-x, -y, x, y, z, headroom)


@dataclass(frozen=True, eq=False)
class Item:
    """Origin: the middle of its footprint, on the floor. z is up, +y is its front (its back goes to the wall).
    For what hangs on a wall the back is at y = 0."""

    kind: str
    parts: list[Surface]
    shelves: list[Shelf] = field(default_factory=list)
    lamps: list[Lamp] = field(default_factory=list)

    @cached_property
    def part_boxes(self) -> Float[np.ndarray, "b 6"]:
        return boxes_of(self.parts)

    def bounds(self) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
        return self.part_boxes[:, :3].min(axis=0), self.part_boxes[:, 3:].max(axis=0)

    def size(self) -> Float[np.ndarray, " 3"]:
        low, high = self.bounds()
        return high - low

    def centred(self) -> "Item":
        """The same model with its origin in the middle of its footprint and its lowest point at 0."""
        low, high = self.bounds()
        dx, dy, dz = -(low[0] + high[0]) / 2, -(low[1] + high[1]) / 2, -low[2]
        return replace(
            self,
            parts=moved(self.parts, shift(dx, dy, dz)),
            shelves=[Shelf(s.x0 + dx, s.y0 + dy, s.x1 + dx, s.y1 + dy, s.z + dz, s.headroom) for s in self.shelves],
            lamps=[lamp.moved(shift(dx, dy, dz)) for lamp in self.lamps],
        )
