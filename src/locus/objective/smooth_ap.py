"""Smooth AP of given scores in linear time: of every landmark (eq. 3), or of all pairs as one list (eq. 5)."""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .checks import check_ranking, check_tau
from .curves import Grid, Ranking, deposit, interpolant, read

PAIRS_AT_ONCE = 2**17  # a step's arrays stay in cache
LANES = 8  # a long list is deposited as this many, side by side, so that it uses several cores


def vectorized_smooth_ap(
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"], tau: float
) -> Float[Tensor, ""]:
    """V-Smooth-AP (eq. 5): all pairs of the universe as one ranked list. To be maximised; 0 if nothing is positive.

    A pair is not ranked against itself. Equals `vectorized_smooth_ap_reference` to 1e-5, its gradient to 1e-4.
    """
    check_tau(tau)
    check_ranking(scores, positive, universe)
    lanes = math.gcd(LANES, scores.numel())
    if lanes == 0 or not universe.any():
        return scores.sum() * 0
    grid = _grid(scores, universe, tau)
    return smooth_ap_of_lists(
        scores.reshape(lanes, -1), positive.reshape(lanes, -1), universe.reshape(lanes, -1), grid, True
    ).squeeze(0)


def smooth_ap(
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"], tau: float
) -> Float[Tensor, "m"]:
    """Smooth-AP_j (eq. 3): every landmark's own ranked list. Landmarks are chosen by it; 0 without a positive."""
    check_tau(tau)
    check_ranking(scores, positive, universe)
    if not universe.any():
        return scores.sum(dim=0) * 0
    grid = _grid(scores, universe, tau)
    at_once = max(1, PAIRS_AT_ONCE * 4 // grid.bins)
    columns = zip(scores.T.split(at_once), positive.T.split(at_once), universe.T.split(at_once), strict=True)
    return torch.cat([smooth_ap_of_lists(*block, grid, False) for block in columns])


def _grid(scores: Tensor, universe: Tensor, tau: float) -> Grid:
    present = scores.detach()[universe]
    return Grid.covering(float(present.min()), float(present.max()), tau)


def smooth_ap_of_lists(
    scores: Float[Tensor, "lists k"],
    positive: Bool[Tensor, "lists k"],
    universe: Bool[Tensor, "lists k"],
    grid: Grid,
    pooled: bool,
) -> Float[Tensor, "values"]:
    """Smooth AP of each row, or of all rows together as one list if `pooled`."""
    exact = scores if scores.dtype == torch.float64 else scores.float()
    return _SmoothAP.apply(exact, positive, universe, grid, pooled).to(scores.dtype)


class _SmoothAP(torch.autograd.Function):
    """The derivative is read off its own curves: differentiating through the bins would lose two digits."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, positive: Tensor, universe: Tensor, grid: Grid, pooled: bool) -> Tensor:
        positives = grid.empty_moments(len(scores), scores.device)
        negatives = grid.empty_moments(len(scores), scores.device)
        for part in _parts(scores):
            node, offset = grid.locate(scores[:, part])
            deposit(positives, node.masked_fill(~positive[:, part], grid.bins), offset)
            deposit(negatives, node.masked_fill(positive[:, part] | ~universe[:, part], grid.bins), offset)
        if pooled:
            positives, negatives = positives.sum(1, keepdim=True), negatives.sum(1, keepdim=True)
        ctx.ranking = Ranking.of(grid, positives, negatives)
        ctx.save_for_backward(scores, positive, universe)
        return ctx.ranking.value().to(scores.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None, None, None]:
        scores, positive, universe = ctx.saved_tensors
        grid = ctx.ranking.grid
        up, down = (interpolant(outer[:, None].double() * curve) for curve in ctx.ranking.derivatives())
        down = down.to(scores.dtype)  # but not `up`, in which a pair's terms with itself cancel
        gradient = torch.empty_like(scores)
        for part in _parts(scores):
            node, offset = grid.locate(scores[:, part])
            of_positive = read(up, node.masked_fill(~positive[:, part], grid.bins), offset)
            of_negative = read(down, node.masked_fill(positive[:, part] | ~universe[:, part], grid.bins), offset)
            torch.add(of_positive, of_negative, out=gradient[:, part])
        return gradient, None, None, None, None


def _parts(scores: Tensor) -> list[slice]:
    step = max(1, PAIRS_AT_ONCE // len(scores))
    return [slice(start, start + step) for start in range(0, scores.shape[1], step)]
