"""Smooth AP of given scores in linear time: of every landmark (eq. 3), or of all pairs as one list (eq. 5)."""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .checks import Number, check_ranking, check_tau, exact
from .curves import Grid, Ranking, deposit, interpolant, read

PAIRS_AT_ONCE = 2**18  # a step's arrays stay in cache
LANES = 8  # a long list is deposited as this many, side by side, so that it uses several cores


def vectorized_smooth_ap(
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"], tau: Number
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
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"], tau: Number
) -> Float[Tensor, "m"]:
    """Smooth-AP_j (eq. 3): every landmark's own ranked list. Landmarks are chosen by it; 0 without a positive."""
    check_tau(tau)
    check_ranking(scores, positive, universe)
    if not universe.any():
        return scores.sum(dim=0) * 0
    grid = _grid(scores, universe, tau)
    at_once = max(1, PAIRS_AT_ONCE // grid.bins)
    columns = zip(*(x.T.split(at_once) for x in (scores, positive, universe)), strict=True)
    return torch.cat([smooth_ap_of_lists(*(x.contiguous() for x in block), grid, False) for block in columns])


def _grid(scores: Tensor, universe: Tensor, tau: Number) -> Grid:
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
    return _SmoothAP.apply(exact(scores), positive, universe, grid, pooled).to(scores.dtype)


class _SmoothAP(torch.autograd.Function):
    """The derivative is read off its own curves: differentiating through the bins would lose two digits."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, positive: Tensor, universe: Tensor, grid: Grid, pooled: bool) -> Tensor:
        lists = 1 if pooled else len(scores)
        positives = grid.empty_moments(lists, device=scores.device)
        negatives = grid.empty_moments(len(scores), device=scores.device)
        for part in _parts(scores):
            node, offset = grid.locate(scores[:, part].double())  # near pairs are 1e-7 apart in float32
            place, place_node = _listed(positive[:, part], node, lists, grid)
            deposit(positives.view(grid.points, 1, -1), place_node, offset[place][None])
            deposit(negatives, node.add_(_left_out(positive, universe, part), alpha=grid.bins), offset)
        if pooled:
            negatives = negatives.sum(dim=1, keepdim=True)
        ctx.ranking = Ranking.of(grid, positives, negatives)
        ctx.save_for_backward(scores, positive, universe)
        return ctx.ranking.value().to(scores.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None, None, None]:
        scores, positive, universe = ctx.saved_tensors
        grid = ctx.ranking.grid
        up, down = (interpolant(outer[:, None].double() * curve, grid.points) for curve in ctx.ranking.derivatives())
        gradient = torch.empty_like(scores)
        for part in _parts(scores):
            node, offset = grid.locate(scores[:, part].double())  # near pairs are 1e-7 apart in float32
            place, place_node = _listed(positive[:, part], node, len(outer), grid)
            some = read(down, node.add_(_left_out(positive, universe, part), alpha=grid.bins), offset)
            some[place] = read(up.view(grid.points, 1, -1), place_node, offset[place][None])[0]
            gradient[:, part] = some
        return gradient, None, None, None, None


def _parts(scores: Tensor) -> list[slice]:
    step = max(1, PAIRS_AT_ONCE // len(scores))
    return [slice(start, start + step) for start in range(0, scores.shape[1], step)]


def _left_out(positive: Tensor, universe: Tensor, part: slice) -> Tensor:
    return positive[:, part] | ~universe[:, part]


def _listed(positive: Tensor, node: Tensor, lists: int, grid: Grid) -> tuple[tuple[Tensor, ...], Tensor]:
    """Where the positives are, and their nodes when all lists are laid end to end; they are few."""
    place = positive.nonzero(as_tuple=True)
    return place, (node[place] + place[0] % lists * (2 * grid.bins))[None]
