"""The pairs that matter, as tiles of neighbouring patches by neighbouring landmarks; the others are never touched."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .sets import squared_distances

# What a tile may hold: nothing of the universe, negatives alone, negatives and absent pairs, or anything.
ABSENT, NEGATIVE, CUT, MIXED = 0, 1, 2, 3
PATCHES_PER_BLOCK = 64
LANDMARKS_PER_BLOCK = (32, 128)  # small blocks to skip more, large ones to do more at once
COST_OF_A_PATCH = 16  # fetching a patch for one block of landmarks costs as much as so many pairs
SLACK = 1e-4  # bounds on distances are trusted up to rounding


@dataclass(frozen=True)
class Tile:
    patches: Int[Tensor, "patches"]  # in rising order
    landmarks: slice
    kinds: tuple[int, ...]  # one for each radius

    @property
    def pairs(self) -> int:
        return len(self.patches) * (self.landmarks.stop - self.landmarks.start)


@dataclass(frozen=True)
class SortedPoints:
    """Patches or landmarks, sorted so that neighbours in space are neighbours in memory; invalid ones are left out."""

    order: Int[Tensor, "k"]
    position: Float[Tensor, "3 k"]
    environment: Int[Tensor, "k"]
    frame: Float[Tensor, "k"]

    @classmethod
    def sorted(cls, position: Tensor, environment: Tensor, frame: Tensor) -> "SortedPoints":
        order = position.isfinite().all(dim=1).nonzero().squeeze(1)
        order = order[morton_code(position[order]).argsort(stable=True)]
        order = order[environment[order].argsort(stable=True)]
        return cls(order, position[order].T.contiguous(), environment[order], frame[order].to(position.dtype))


def morton_code(position: Float[Tensor, "k 3"]) -> Int[Tensor, "k"]:
    """Where a point lies on a space-filling curve: the bits of its three cell numbers (of 128) interleaved."""
    if not len(position):
        return torch.zeros(0, dtype=torch.int32, device=position.device)
    low = position.amin(dim=0)
    side = (position.amax(dim=0) - low).amax().clamp(min=1e-9)
    cell = ((position - low) * (127 / side)).int().T.contiguous()
    code = torch.zeros_like(cell[0])
    for bit in range(7):
        for axis in range(3):
            code |= (cell[axis] & 1 << bit) << (2 * bit + axis)
    return code


@dataclass(frozen=True)
class Layout:
    """Patches, landmarks and radii of one batch, and its tiles. Holds nothing of size n x m."""

    patches: SortedPoints
    landmarks: SortedPoints
    own_patch: Int[Tensor, "m"]  # where among the sorted patches each sorted landmark comes from, or -1
    inner: Float[Tensor, "radii m"]  # squared radii of the positive set and of the universe
    outer: Float[Tensor, "radii m"]
    exclude_same_frame: bool

    def squared_distances(self, tile: Tile) -> Float[Tensor, "landmarks patches"]:
        """Infinite for pairs that are in no set: a landmark with its own patch, and pairs of one frame if excluded."""
        position = self.patches.position.index_select(1, tile.patches)
        squared = squared_distances(self.landmarks.position[:, tile.landmarks], position)
        if self.exclude_same_frame:
            apart = self.landmarks.frame[tile.landmarks, None] - self.patches.frame[tile.patches]
            squared.addcdiv_(squared.new_tensor(1e-30), apart.square_())  # a mask would take eight times as long
        if MIXED in tile.kinds:
            own = self.own_patch[tile.landmarks]
            column = torch.searchsorted(tile.patches, own).clamp_(max=len(tile.patches) - 1)
            row = (tile.patches[column] == own).nonzero().squeeze(1)
            squared[row, column[row]] = math.inf
        return squared

    def tiles(self, pairs_at_once: int) -> list[Tile]:
        """Tiles that hold any pair of the universe, each within one environment and of about `pairs_at_once`."""
        tiles = []
        patch_ranges = _ranges(self.patches.environment)
        for environment, columns in _ranges(self.landmarks.environment).items():
            if environment in patch_ranges:
                tiles += self._tiles(patch_ranges[environment], columns, pairs_at_once)
        return tiles

    def _tiles(self, rows: slice, columns: slice, pairs_at_once: int) -> list[Tile]:
        def cost(size: int) -> int:
            return int((kinds[size] != ABSENT).any(axis=0).sum()) * (size + COST_OF_A_PATCH)

        kinds = {size: self._kinds(rows, columns, size) for size in LANDMARKS_PER_BLOCK}
        size = min(kinds, key=cost)
        in_block = torch.arange(PATCHES_PER_BLOCK)
        tiles = []
        for block, start in enumerate(range(columns.start, columns.stop, size)):
            landmarks = slice(start, min(start + size, columns.stop))
            alike, which = np.unique(kinds[size][:, :, block], axis=1, return_inverse=True)
            for kind, code in enumerate(alike.T.tolist()):
                if any(code):
                    blocks = torch.from_numpy((which == kind).nonzero()[0])
                    patches = rows.start + (blocks[:, None] * PATCHES_PER_BLOCK + in_block).view(-1)
                    patches = patches[patches < rows.stop].to(self.own_patch.device)
                    step = max(1, pairs_at_once // (landmarks.stop - start))
                    tiles += [Tile(some, landmarks, tuple(code)) for some in patches.split(step)]
        return tiles

    def _kinds(self, rows: slice, columns: slice, size: int) -> np.ndarray:
        """What each pair of blocks can hold, by the nearest and the farthest two points of their bounding boxes."""
        low, high = (box[:, :, None] for box in _boxes(self.patches.position[:, rows], PATCHES_PER_BLOCK))
        low_landmark, high_landmark = (box[:, None] for box in _boxes(self.landmarks.position[:, columns], size))
        nearest = torch.maximum(low - high_landmark, low_landmark - high).clamp(min=0).square().sum(dim=0)
        farthest = torch.maximum(high - low_landmark, high_landmark - low).square().sum(dim=0)
        inner = _boxes(self.inner[:, columns], size)[1][:, None]  # the largest of each block
        smallest_outer, outer = (radii[:, None] for radii in _boxes(self.outer[:, columns], size))
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
