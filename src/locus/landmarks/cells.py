"""Rows by where they are: those near some points are found without looking at any others."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product

import numpy as np
from jaxtyping import Float, Int64
from numpy import ndarray

AROUND = np.array(list(product((-1, 0, 1), repeat=3)))
Cell = tuple[int, int, int]


class Cells:
    """Rows of something in cubes whose sides are as long as the distance that one asks for."""

    def __init__(self, size: float) -> None:
        self.size = size
        self._rows: defaultdict[Cell, set[int]] = defaultdict(set)

    def add(self, rows: Int64[ndarray, " n"], points: Float[ndarray, "n 3"]) -> None:
        for row, cell in zip(rows.tolist(), self.of(points), strict=True):
            self._rows[cell].add(row)

    def move(self, rows: Int64[ndarray, " n"], old: Float[ndarray, "n 3"], new: Float[ndarray, "n 3"]) -> None:
        """Rows that were at other points before."""
        for row, before, now in zip(rows.tolist(), self.of(old), self.of(new), strict=True):
            if before != now:
                self._rows[before].discard(row)
                self._rows[now].add(row)

    def near(self, points: Float[ndarray, "n 3"]) -> Int64[ndarray, " k"]:
        """All rows within `size` of a point, and some a little farther, in order."""
        found = [self._rows[cell] for cell in self.around(points) if cell in self._rows]
        return np.array(sorted(set().union(*found)), np.int64)

    def of(self, points: Float[ndarray, "n 3"]) -> list[Cell]:
        """The cell of each point."""
        return list(map(tuple, np.floor(points.astype(np.float64) / self.size).astype(np.int64).tolist()))

    def around(self, points: Float[ndarray, "n 3"]) -> Iterator[Cell]:
        """The cells of points and those beside them, each once."""
        cells = np.unique(np.array(self.of(points), np.int64).reshape(-1, 3), axis=0)
        return map(tuple, np.unique((cells[:, None] + AROUND).reshape(-1, 3), axis=0).tolist())
