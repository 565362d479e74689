"""Similarity (eq. 1) of one tile's pairs, on the grid, and their sets by distance. Nearly all the time goes here."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .curves import Grid
from .tiles import ABSENT, CUT, MIXED, NEGATIVE, Layout, Tile

SEGMENT = 32
FEW = 1 / 8  # if no more than this part of the segments holds anything of the universe, its pairs are listed


@dataclass(frozen=True)
class Pairs:
    """Pairs of one tile at one radius: all of them, or a list of those in the universe where they are few."""

    tile: Tile
    radius: int
    listed: tuple[Int[Tensor, "pairs"], Int[Tensor, "pairs"]] | None  # landmark and patch of each
    place: Float[Tensor, "pairs"]  # on the grid, in bins; beyond its end if the pair is absent
    positive: Int[Tensor, "positives"]  # which of the pairs

    def located(self, grid: Grid) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Nodes and offsets of all pairs, positives among them taken for absent; and those of the positives."""
        node, offset = grid.split(self.place)
        positive_node = node[self.positive]
        node[self.positive] = positive_node + grid.bins
        return node, offset, positive_node, offset[self.positive]

    def add_gradients(
        self, of_scores: Tensor, features: Tensor, embeddings: Tensor, of_features: Tensor, of_embeddings: Tensor
    ) -> None:
        """Carry the gradient of the scores on to both sides of the product."""
        radius = self.radius
        if self.listed is not None:
            landmark, patch = self.listed
            to_patches = embeddings[radius].index_select(0, landmark).mul_(of_scores[:, None])
            to_landmarks = features[radius].index_select(0, patch).mul_(of_scores[:, None])
            of_features[radius].index_add_(0, patch, to_patches)
            of_embeddings[radius].index_add_(0, landmark, to_landmarks)
        else:
            patches, landmarks = self.tile.patches, self.tile.landmarks
            of_scores = of_scores.view(-1, len(patches))
            of_features[radius].index_add_(0, patches, of_scores.T @ embeddings[radius, landmarks])
            of_embeddings[radius, landmarks].addmm_(of_scores, features[radius].index_select(0, patches))


def score(tile: Tile, features: Tensor, embeddings: Tensor, layout: Layout, grid: Grid) -> Iterator[Pairs]:
    """The pairs at every radius, each with its cosine (eq. 1), a product of unit vectors; it comes out in bins of the
    grid, because `embeddings` are divided by their width."""
    squared = layout.squared_distances(tile) if max(tile.kinds) > NEGATIVE else features.new_zeros(0)
    first = torch.tensor(-grid.low / grid.width, dtype=features.dtype, device=features.device)
    for radius, kind in enumerate(tile.kinds):
        if kind == ABSENT:
            continue
        inner, outer = layout.inner[radius, tile.landmarks], layout.outer[radius, tile.landmarks]
        segments = _segments_within(squared, outer) if kind >= CUT else None
        if segments is not None and len(segments) * SEGMENT <= FEW * tile.pairs:
            where = _within(squared, outer, segments)
            row = where // len(tile.patches)
            landmark, patch = tile.landmarks.start + row, tile.patches[where % len(tile.patches)]
            place = embeddings[radius].index_select(0, landmark)
            place = place.mul_(features[radius].index_select(0, patch)).sum(dim=1).add_(first)
            positive = (squared.view(-1)[where] <= inner[row]).nonzero().squeeze(1)
            yield Pairs(tile, radius, (landmark, patch), place, positive)
            continue
        some_features = features[radius].index_select(0, tile.patches)
        place = torch.addmm(first, embeddings[radius, tile.landmarks], some_features.T)
        positive = tile.patches.new_zeros(0)
        if kind >= CUT:
            # Where the distance is beyond the universe, the place moves on by `bins`: masks would take longer.
            beyond = squared - outer[:, None]
            place += beyond.mul_(1e30).clamp_(0, grid.bins)
        if kind == MIXED:
            positive = _within(squared, inner, _segments_within(squared, inner))
        yield Pairs(tile, radius, None, place.view(-1), positive)


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
