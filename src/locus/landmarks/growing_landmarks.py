"""Landmarks of one environment while more are added, and more is seen of them; no others are touched then."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
from jaxtyping import Float, Float32, Int64
from numpy import ndarray
from scipy.sparse import csc_matrix, csr_matrix, hstack, identity

from locus.landmarks.arrays import Landmarks
from locus.landmarks.cells import Cells
from locus.landmarks.describe import pooled
from locus.landmarks.search import GrowingIndex
from locus.rows import joined


class GrowingLandmarks:
    """Landmarks by row; those near a point, and those like a feature, are found in logarithmic time."""

    def __init__(self, landmarks: Landmarks, sightings: csr_matrix, radii: tuple[float, ...]) -> None:
        dimension = landmarks.mean.shape[1]
        self._room, self._count = landmarks.take(np.zeros(0, int)), 0
        self._cells = [Cells(radius) for radius in radii]
        self._indices = [GrowingIndex(dimension) for _ in radii]
        self._indexed: list[int] = []  # patches that each had when its embedding was last indexed
        self.shown_by: list[list[tuple[int, int]]] = []
        """Of each landmark, the frames that show it, and how many of their patches do."""
        self.shows: Counter[int] = Counter()
        """How many landmarks each frame shows."""
        self.append(landmarks, csr_matrix(sightings.T))

    def __len__(self) -> int:
        return self._count

    def position(self, rows: Int64[ndarray, " n"]) -> Float32[ndarray, "n 3"]:
        return self._room.position[rows]

    def near(self, scale: int, points: Float[ndarray, "n 3"]) -> Int64[ndarray, " k"]:
        """Rows of all landmarks of a scale within its radius of a point, and of some a little farther."""
        return self._cells[scale].near(points)

    def similar(
        self, scale: int, features: Float32[ndarray, "q c"]
    ) -> tuple[Float32[ndarray, " k"], Int64[ndarray, " k"]]:
        """Of each feature, the similarity and row of the most similar landmark of a scale; none if it has none."""
        return self._indices[scale].search(features)

    def append(self, new: Landmarks, sightings: csr_matrix) -> None:
        """More landmarks, and how many patches of each frame show them: (new, frames)."""
        rows = np.arange(self._count, self._count + len(new))
        self._count += len(new)
        if self._count > len(self._room):  # twice the room each time, so that rows are copied about once
            self._room = joined([self._room, new.take(np.zeros(self._count, int))])
        self._write(rows, new)
        for scale, cells in enumerate(self._cells):
            mine = rows[new.scale == scale]
            cells.add(mine, self.position(mine))
        self.shown_by += [[] for _ in rows]
        self._indexed += [0] * len(rows)
        self._sighted(rows, sightings)

    def see(self, rows: Int64[ndarray, " n"], seen: Landmarks, sightings: csr_matrix) -> None:
        """What frames show of landmarks, added to them."""
        some = self._room.take(rows)
        twice = csr_matrix(hstack([identity(len(rows), np.int32)] * 2))
        now = pooled(joined([some, seen]), np.arange(len(rows)), twice)
        for scale, cells in enumerate(self._cells):
            mine = some.scale == scale
            cells.move(rows[mine], some.position[mine], now.position[mine])
        self._write(rows, now)
        self._sighted(rows, sightings)

    def _write(self, rows: Int64[ndarray, " n"], values: Landmarks) -> None:
        for field in fields(values):
            getattr(self._room, field.name)[rows] = getattr(values, field.name)

    def _sighted(self, rows: Int64[ndarray, " n"], sightings: csr_matrix) -> None:
        shown = sightings.tocoo()
        for row, frame, count in zip(rows[shown.row].tolist(), shown.col.tolist(), shown.data.tolist(), strict=True):
            self.shown_by[row].append((frame, count))
        self.shows.update(shown.col.tolist())
        # An embedding that has hardly changed need not be indexed again.
        changed = np.array([row for row in rows.tolist() if self._room.patches[row] >= 2 * self._indexed[row]], int)
        for row in changed.tolist():
            self._indexed[row] = max(1, int(self._room.patches[row]))
        for scale, index in enumerate(self._indices):
            mine = changed[self._room.scale[changed] == scale]
            index.add(mine, self._room.take(mine).embedding)

    def now(self, frames: int) -> tuple[Landmarks, csr_matrix]:
        """All landmarks, and their sightings (frames, landmarks)."""
        shown = [sorted(each) for each in self.shown_by]
        ends = np.cumsum([0, *map(len, shown)])
        frame, count = np.array([pair for each in shown for pair in each], np.int32).reshape(-1, 2).T
        sightings = csr_matrix(csc_matrix((count, frame, ends), (frames, self._count)))
        views = np.diff(ends).astype(np.int32)
        return replace(self._room.take(np.arange(self._count)), views=views), sightings

    def widen(self, classes: int) -> None:
        """Make room for the votes of more classes."""
        votes = self._room.votes
        self._room = replace(self._room, votes=np.pad(votes, ((0, 0), (0, classes - votes.shape[1]))))
