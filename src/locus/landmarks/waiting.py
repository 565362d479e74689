"""Patches of a growing map whose spot has no landmark yet: they wait for another frame to show it."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.landmarks.cells import Cell, Cells
from locus.landmarks.observations import ObservedPatches

MOST = 32  # of a cell, the newest: a spot that has so many and no landmark will hardly get one

Described = tuple[ObservedPatches, Float[ndarray, "_ c"]]
"""Patches and their features."""


class WaitingPatches:
    """By the cell they are in."""

    def __init__(self, radius: float) -> None:
        self._cells = Cells(radius)
        self._patches: dict[Cell, Described] = {}

    def add(self, patches: ObservedPatches, features: Float[ndarray, "n c"]) -> None:
        """Those of whole cells: what waited in them before is not kept."""
        rows: dict[Cell, list[int]] = {}
        for row, cell in enumerate(self._cells.of(patches.point)):
            rows.setdefault(cell, []).append(row)
        for cell, of_cell in rows.items():
            newest = np.array(of_cell)[np.argsort(patches.frame[of_cell], kind="stable")[-MOST:]]
            self._patches[cell] = patches.take(newest), features[newest]

    def taken(self, points: Float[ndarray, "n 3"]) -> list[Described]:
        """Those near points, which wait no longer."""
        return [self._patches.pop(cell) for cell in self._cells.around(points) if cell in self._patches]
