"""V-Smooth-AP straight from features and positions: every pair is scored, and only a fixed number is kept."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import torch
import torch.distributed
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributed import ProcessGroup

from .checks import (
    UNIT_TOLERANCE,
    Number,
    ObjectiveError,
    check_landmarks,
    check_shape,
    check_tau,
    check_unit,
    full_precision,
)
from .curves import Grid, RankCurves, deposit, interpolant, read
from .distributed import rows_of_all
from .sets import check_patches, squared_radii
from .similarity import score
from .tiles import Layout, SortedPoints, Tile

PAIRS_AT_ONCE, PAIRS_AT_ONCE_ON_GPU = 2**18, 2**22  # on a CPU, a step's arrays stay in cache
LANES = 8  # a long list is deposited as this many, side by side, so that it uses several cores
PAIRS_SUMMED = 2**23
PAIRS_KEPT = 2**24  # from pass 1 for pass 2, which scores the others again: 64 MiB in float32, however large the batch
HIGHEST_SCORE = (1 + UNIT_TOLERANCE) ** 2

Radius = Number | Float[Tensor, "m"]


class RetrievalObjective:
    """V-Smooth-AP (eq. 5) of a batch of patches and the landmarks sampled from it. To be maximised: minimise 1 - it.

    `radius` is in metres, one for all landmarks or one each; `kappa` times it bounds the universe (eq. 4), and may be
    infinite. Several radii in a tuple give one value each, from one pass over the geometry; features and embeddings
    are then shared by all radii, or have one set for each, stacked in front. With `group`, the batch is the union of
    those of all its processes: see `__call__`.
    """

    def __init__(
        self,
        radius: Radius | tuple[Radius, ...],
        kappa: Number,
        tau: Number,
        exclude_same_frame: bool = False,
        *,
        group: ProcessGroup | None = None,
    ):
        check_tau(tau)
        if isinstance(radius, tuple) and not radius:
            raise ObjectiveError(
                "radius must be a number of metres, or at least one in a tuple, but the tuple is empty"
            )
        self.radius, self.kappa, self.tau = radius, kappa, tau
        self.exclude_same_frame, self.group = exclude_same_frame, group

    def __call__(
        self,
        features: Float[Tensor, "n c"] | Float[Tensor, "radii n c"],
        positions: Float[Tensor, "n 3"],
        environments: Int[Tensor, "n"],
        frames: Int[Tensor, "n"],
        landmarks: Int[Tensor, "m"],
        embeddings: Float[Tensor, "m c"] | Float[Tensor, "radii m c"] | None = None,
    ) -> Float[Tensor, ""] | Float[Tensor, "radii"]:
        """The value, a scalar, or one for each of several radii; 0 where nothing is positive.

        Features and embeddings are of unit length. `landmarks` are indices of patches; their embeddings are those
        patches' features unless given. The sets are those of `retrieval_sets`: a patch whose position is not finite is
        in none. With several processes, each passes its own patches and landmarks, with environments and frames
        numbered alike everywhere; each gets the value of the union, and its own part of that value's gradient (so
        gradients of shared parameters are to be summed over processes, not averaged). All must call backward.
        """
        check_patches(positions, environments=environments, frames=frames)
        check_landmarks(landmarks, len(positions))
        positions, landmarks = full_precision(positions.detach()), landmarks.long()
        radii = self.radius if isinstance(self.radius, tuple) else (self.radius,)
        features = _stack("features", features, len(radii), len(positions))
        if embeddings is None:
            embeddings = features[:, landmarks]
        else:
            embeddings = _stack("embeddings", embeddings, len(radii), len(landmarks))
            check_shape("embeddings", embeddings[0], (len(landmarks), features.shape[2]), "landmarks by channels")
        layout, embeddings = self._layout(positions, environments, frames, landmarks, radii, embeddings)
        with torch.autocast(features.device.type, enabled=False):  # half-precision scores would tie in thousands
            values = _Fused.apply(features, embeddings.to(features), layout, self.tau, self.group)
        return values if isinstance(self.radius, tuple) else values[0]

    def _layout(
        self,
        positions: Tensor,
        environments: Tensor,
        frames: Tensor,
        landmarks: Tensor,
        radii: Sequence[Radius],
        embeddings: Tensor,
    ) -> tuple[Layout, Tensor]:
        """Sort patches and landmarks; with several processes, the landmarks of all."""
        squared = [squared_radii(radius, self.kappa, len(landmarks), positions) for radius in radii]
        inner, outer = (torch.stack(rings) for rings in zip(*squared, strict=True))
        of_landmarks = [positions[landmarks], environments[landmarks], frames[landmarks]]
        own = landmarks
        if self.group is not None:
            of_landmarks = [rows_of_all(values, self.group)[0] for values in of_landmarks]
            inner, outer = (rows_of_all(rings.T, self.group)[0].T for rings in (inner, outer))
            everyone, mine = rows_of_all(embeddings.transpose(0, 1), self.group)
            embeddings = everyone.transpose(0, 1)
            own = landmarks.new_full((len(everyone),), -1)
            own[mine] = landmarks
        number = torch.cat([frames, of_landmarks[2]]).unique(return_inverse=True)[1]  # small, so exact as floats
        frames, of_landmarks[2] = number.split([len(frames), len(own)])
        patches = SortedPoints.sorted(positions, environments, frames)
        sorted_landmarks = SortedPoints.sorted(*of_landmarks)
        rank = own.new_full((len(positions) + 1,), -1)  # the last entry: landmarks of other processes
        rank[patches.order] = torch.arange(len(patches.order), device=rank.device, dtype=rank.dtype)
        order = sorted_landmarks.order
        layout = Layout(
            patches, sorted_landmarks, rank[own[order]], inner[:, order], outer[:, order], self.exclude_same_frame
        )
        return layout, embeddings


def _stack(name: str, vectors: Tensor, radii: int, rows: int) -> Float[Tensor, "radii rows c"]:
    """One set of unit vectors for each radius; a shared one is repeated without a copy."""
    if vectors.ndim not in (2, 3) or vectors.shape[-2] != rows or (vectors.ndim == 3 and len(vectors) != radii):
        raise ObjectiveError(
            f"{name} must have shape ({rows}, c), or ({radii}, {rows}, c) for one set for each radius, "
            f"but has {tuple(vectors.shape)}"
        )
    if not vectors.is_floating_point():
        raise ObjectiveError(f"{name} must be floating point, but is {vectors.dtype}")
    check_unit(name, vectors)
    return full_precision(vectors).expand(radii, -1, -1)


class _Fused(torch.autograd.Function):
    """Pass 1 (forward) fills the histograms; pass 2 (backward) reads the gradient of every pair off the curves."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, embeddings: Tensor, layout: Layout, tau: Number, group: ProcessGroup | None
    ) -> Tensor:
        grid = Grid.covering(-HIGHEST_SCORE, HIGHEST_SCORE, tau, points=3, bins_per_tau=32)
        ctx.patches, ctx.landmarks = features.shape[1], embeddings.shape[1]
        features = features[:, layout.patches.order]
        embeddings = embeddings[:, layout.landmarks.order] / grid.width  # so that scores come out in bins
        tiles = layout.tiles(PAIRS_AT_ONCE_ON_GPU if features.is_cuda else PAIRS_AT_ONCE)
        ctx.kept, ctx.kept_tiles = [], _fitting(tiles, len(features)) if any(ctx.needs_input_grad) else 0
        radii = len(features)
        positives = grid.empty_moments(radii, device=features.device)
        negatives = grid.empty_moments(radii, device=features.device)
        # Negatives are many: they are summed in the features' precision first, over few enough to count exactly.
        recent = grid.empty_moments(radii, LANES, device=features.device, dtype=features.dtype)
        recent_pairs = 0
        for number, tile in enumerate(tiles):
            if recent_pairs + tile.pairs > PAIRS_SUMMED:
                negatives += recent.sum(dim=2, dtype=torch.float64)
                recent.zero_()
                recent_pairs = 0
            recent_pairs += tile.pairs
            for pairs in score(tile, features, embeddings, layout, grid):
                node, offset, positive_node, positive_offset = pairs.located(grid)
                deposit(recent[:, pairs.radius], _lanes(node), _lanes(offset))
                if len(positive_node):
                    deposit(positives[:, pairs.radius, None], positive_node[None], positive_offset[None])
                if number < ctx.kept_tiles:
                    ctx.kept.append(pairs)
        moments = torch.stack([positives, negatives + recent.sum(dim=2, dtype=torch.float64)])
        if group is not None:
            torch.distributed.all_reduce(moments, group=group)
        ctx.curves, ctx.layout, ctx.tiles = RankCurves.of(grid, *moments), layout, tiles
        ctx.save_for_backward(features, embeddings)
        return ctx.curves.value().to(features.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        features, embeddings = ctx.saved_tensors
        layout, grid = ctx.layout, ctx.curves.grid
        up, down = (interpolant(outer[:, None].double() * curve, grid.points) for curve in ctx.curves.derivatives())
        down = down.to(features.dtype)  # but not `up`, in which a pair's terms with itself cancel
        to_features, to_embeddings = torch.zeros_like(features), torch.zeros_like(embeddings)
        others = (score(tile, features, embeddings, layout, grid) for tile in ctx.tiles[ctx.kept_tiles :])
        with torch.autocast(features.device.type, enabled=False):
            for pairs in chain(ctx.kept, chain.from_iterable(others)):
                node, offset, positive_node, positive_offset = pairs.located(grid)
                gradient = read(down[:, pairs.radius, None], _lanes(node), _lanes(offset)).view(-1)
                if len(positive_node):
                    of_positive = read(up[:, pairs.radius, None], positive_node[None], positive_offset[None])[0]
                    gradient[pairs.positive] = of_positive.to(gradient.dtype)
                pairs.add_gradients(gradient, features, embeddings, to_features, to_embeddings)
        of_features = features.new_zeros(len(features), ctx.patches, features.shape[2])
        of_embeddings = features.new_zeros(len(features), ctx.landmarks, features.shape[2])
        of_features[:, layout.patches.order] = to_features.mul_(grid.width)  # `embeddings` are divided by it
        of_embeddings[:, layout.landmarks.order] = to_embeddings
        return of_features, of_embeddings, None, None, None


def _fitting(tiles: list[Tile], radii: int) -> int:
    """How many of the first tiles pass 2 need not score again."""
    return bisect_right(list(accumulate(radii * tile.pairs for tile in tiles)), PAIRS_KEPT)


def _lanes(values: Float[Tensor, "pairs"] | Int[Tensor, "pairs"]) -> Tensor:
    """One long list as several shorter ones, which are read and written by several cores."""
    return values.view(math.gcd(LANES, len(values)), -1) if len(values) else values[None]
