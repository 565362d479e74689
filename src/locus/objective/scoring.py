"""One tile's pairs: scored, placed on the grid, and told apart by distance. Nearly all the time goes here."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .curves import Grid, nearest_node
from .tiles import ABSENT, CUT, MIXED, NEGATIVE, Layout, Tile

SEGMENT = 32
FEW = 0.25  # if the universe is in no more than this part of the segments, its pairs are listed


@dataclass(frozen=True)
class Pairs:
    """Pairs of one tile at one radius: all, or where few are in the universe, those."""

    tile: Tile
    radius: int
    where: Int[Tensor, "pairs"] | None  # their places in the tile, counted along its rows, unless they are all
    place: Float[Tensor, "pairs"]  # on the grid, in bins; beyond its end if the pair is absent
    positive: Int[Tensor, "positives"]  # which of the pairs

    def located(self, grid: Grid) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Nodes and offsets of all pairs, positives among them taken for absent; and those of the positives."""
        node, offset = nearest_node(self.place)
        positive_node = node[self.positive]
        node[self.positive] = positive_node + grid.bins
        return node, offset, positive_node, offset[self.positive]


def score(tile: Tile, features: Tensor, embeddings: Tensor, layout: Layout, grid: Grid) -> Iterator[Pairs]:
    """The pairs at every radius; `embeddings` are in units of the grid's bins."""
    squared = layout.squared_distances(tile) if max(tile.kinds) > NEGATIVE else features.new_zeros(0)
    first = torch.tensor(-grid.low / grid.width, dtype=features.dtype, device=features.device)
    for radius, kind in enumerate(tile.kinds):
        if kind == ABSENT:
            continue
        inner, outer = layout.inner[radius, tile.landmarks], layout.outer[radius, tile.landmarks]
        with torch.autocast(features.device.type, enabled=False):  # half-precision scores would tie in thousands
            some_features = features[radius].index_select(0, tile.patches)
            place = torch.addmm(first, embeddings[radius, tile.landmarks], some_features.T)
        where, positive = None, tile.patches.new_zeros(0)
        if kind >= CUT:
            segments = _segments_within(squared, outer)
            if len(segments) * SEGMENT <= FEW * tile.pairs:
                where = _within(squared, outer, segments)
                place = place.view(-1)[where]
                positive = (squared.view(-1)[where] <= inner[where // len(tile.patches)]).nonzero().squeeze(1)
            else:
                # Where the distance is beyond the universe, the place moves on by `bins`: masks would take longer.
                beyond = squared - outer[:, None]
                place += beyond.mul_(1e30).clamp_(0, grid.bins)
                if kind == MIXED:
                    positive = _within(squared, inner, _segments_within(squared, inner))
        yield Pairs(tile, radius, where, place.view(-1), positive)


def _segments_within(squared: Float[Tensor, "rows columns"], limit: Float[Tensor, "rows"]) -> Int[Tensor, "segments 2"]:
    """Row and number of the segments that hold anything within their row's limit: neighbours are near together."""
    return (_segmented(squared).amin(dim=2) <= limit[:, None]).nonzero()


def _within(
    squared: Float[Tensor, "rows columns"], limit: Float[Tensor, "rows"], segments: Int[Tensor, "segments 2"]
) -> Int[Tensor, "places"]:
    """Where in the segments, counted along the rows of all, `squared` is within its row's limit."""
    row, number = segments.unbind(1)
    segmented = _segmented(squared)
    close, along = (segmented[row, number] <= limit[row, None]).nonzero().unbind(1)
    return ((row * segmented.shape[1] + number) * segmented.shape[2])[close] + along


def _segmented(squared: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows segments length"]:
    return squared.view(len(squared), -1, math.gcd(SEGMENT, squared.shape[1]))
