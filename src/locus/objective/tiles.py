"""The pairs that matter, as tiles of neighbouring patches by neighbouring landmarks; the others are never touched."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .sets import squared_distances

# What a tile may hold: nothing of the universe, negatives alone, negatives and absent pairs, or anything.
ABSENT, NEGATIVE, CUT, MIXED = 0, 1, 2, 3
PATCHES_PER_BLOCK = 256
LANDMARKS_PER_BLOCK = 64
SLACK = 1e-4  # bounds on distances are trusted up to rounding


@dataclass(frozen=True)
class Tile:
    patches: slice
    landmarks: slice
    kinds: tuple[int, ...]  # one for each radius


@dataclass(frozen=True)
class Points:
    """Patches or landmarks, sorted so that neighbours in space are neighbours in memory; invalid ones are left out."""

    order: Int[Tensor, "k"]
    position: Float[Tensor, "3 k"]
    environment: Int[Tensor, "k"]
    frame: Int[Tensor, "k"]

    @classmethod
    def sorted(cls, position: Tensor, environment: Tensor, frame: Tensor) -> "Points":
        order = position.isfinite().all(dim=1).nonzero().squeeze(1)
        order = order[morton_code(position[order]).argsort(stable=True)]
        order = order[environment[order].argsort(stable=True)]
        return cls(order, position[order].T.contiguous(), environment[order], frame[order])


def morton_code(position: Float[Tensor, "k 3"]) -> Int[Tensor, "k"]:
    """Where a point lies on a space-filling curve: the bits of its three cell numbers (of 1024) interleaved."""
    if not len(position):
        return position.new_zeros(0, dtype=torch.int64)
    low = position.amin(dim=0)
    side = (position.amax(dim=0) - low).amax().clamp(min=1e-9)
    cell = ((position - low) * (1023 / side)).long()
    code = torch.zeros_like(cell[:, 0])
    for bit in range(10):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return code


@dataclass(frozen=True)
class Layout:
    """Patches, landmarks and radii of one batch, and its tiles. Holds nothing of size n x m."""

    patches: Points
    landmarks: Points
    own_patch: Int[Tensor, "m"]  # where among the sorted patches each sorted landmark comes from, or -1
    inner: Float[Tensor, "radii m"]  # squared radii of the positive set and of the universe
    outer: Float[Tensor, "radii m"]
    exclude_same_frame: bool

    def squared_distances(self, tile: Tile) -> Float[Tensor, "landmarks patches"]:
        """Infinite for pairs that are in no set: a landmark with its own patch, and pairs of one frame if excluded."""
        squared = squared_distances(self.landmarks.position[:, tile.landmarks], self.patches.position[:, tile.patches])
        if self.exclude_same_frame:
            same = self.landmarks.frame[tile.landmarks, None] == self.patches.frame[tile.patches]
            squared.masked_fill_(same, math.inf)
        if MIXED in tile.kinds:
            own = self.own_patch[tile.landmarks] - tile.patches.start
            row = ((own >= 0) & (own < squared.shape[1])).nonzero().squeeze(1)
            squared[row, own[row]] = math.inf
        return squared

    def tiles(self, pairs_at_once: int) -> list[Tile]:
        """Tiles that hold any pair of the universe, each within one environment and of at most `pairs_at_once`."""
        tiles = []
        patch_ranges = _ranges(self.patches.environment)
        for environment, columns in _ranges(self.landmarks.environment).items():
            if environment in patch_ranges:
                tiles += self._tiles(patch_ranges[environment], columns, pairs_at_once)
        return tiles

    def _tiles(self, rows: slice, columns: slice, pairs_at_once: int) -> list[Tile]:
        kinds = self._kinds(rows, columns)  # (radii, patch blocks, landmark blocks)
        tiles = []
        for block, start in enumerate(range(columns.start, columns.stop, LANDMARKS_PER_BLOCK)):
            stop = min(start + LANDMARKS_PER_BLOCK, columns.stop)
            longest = max(1, pairs_at_once // ((stop - start) * PATCHES_PER_BLOCK))
            here = kinds[:, :, block]
            changes = (here[:, 1:] != here[:, :-1]).any(axis=0).nonzero()[0] + 1
            for first, last in pairwise([0, *changes.tolist(), here.shape[1]]):
                kind = tuple(here[:, first].tolist())
                if any(kind):
                    for run in range(first, last, longest):
                        begin = rows.start + run * PATCHES_PER_BLOCK
                        end = rows.start + min(run + longest, last) * PATCHES_PER_BLOCK
                        tiles.append(Tile(slice(begin, min(end, rows.stop)), slice(start, stop), kind))
        return tiles

    def _kinds(self, rows: slice, columns: slice) -> np.ndarray:
        """What each pair of blocks can hold, by the nearest and the farthest two points of their bounding boxes."""
        low, high = _boxes(self.patches.position[:, rows], PATCHES_PER_BLOCK)
        low_landmark, high_landmark = _boxes(self.landmarks.position[:, columns], LANDMARKS_PER_BLOCK)
        low, high = low[:, :, None], high[:, :, None]
        low_landmark, high_landmark = low_landmark[:, None], high_landmark[:, None]
        nearest = torch.maximum(low - high_landmark, low_landmark - high).clamp(min=0).square().sum(dim=0)
        farthest = torch.maximum(high - low_landmark, high_landmark - low).square().sum(dim=0)
        inner = _boxes(self.inner[:, columns], LANDMARKS_PER_BLOCK)[1][:, None]  # the largest of each block
        smallest_outer, outer = (o[:, None] for o in _boxes(self.outer[:, columns], LANDMARKS_PER_BLOCK))
        holds_positives = nearest * (1 - SLACK) <= inner
        is_whole = (farthest * (1 + SLACK) < smallest_outer) & (not self.exclude_same_frame)
        kinds = torch.where(holds_positives, MIXED, torch.where(is_whole, NEGATIVE, CUT))
        return kinds.masked_fill_(nearest * (1 - SLACK) > outer, ABSENT).cpu().numpy()


def _ranges(environment: Int[Tensor, "k"]) -> dict[int, slice]:
    names, counts = environment.unique_consecutive(return_counts=True)
    ends = counts.cumsum(0).tolist()
    return {name: slice(start, end) for name, start, end in zip(names.tolist(), [0, *ends], ends, strict=False)}


def _boxes(values: Float[Tensor, "d k"], size: int) -> tuple[Float[Tensor, "d blocks"], Float[Tensor, "d blocks"]]:
    """The smallest and the largest of every `size` columns; the last block is filled up with its last column."""
    missing = -values.shape[1] % size
    blocks = torch.cat([values, values[:, -1:].expand(-1, missing)], dim=1).unflatten(1, (-1, size))
    return blocks.amin(dim=2), blocks.amax(dim=2)
