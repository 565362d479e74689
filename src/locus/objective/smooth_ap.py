"""Smooth-AP_j (eq. 3) of given scores, in linear time: how well each landmark's embedding ranks its own patches.

The paper prints the two sums of eq. 3 over the pairs kl of *all* landmarks. Here they run over the patches k of landmark
j alone: only so is the limit of small tau "the exact AP with theta_j as the query", as the paper says of it, and only so
does a landmark's value not depend on which others were drawn. Eq. 5 is the one that ranks all pairs together.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .checks import Number, check_ranking, check_tau, full_precision
from .curves import Grid, RankCurves, deposit, interpolant, read

REACH = 30  # sigma(-30) is 1e-13: scores so many tau below a list's lowest positive take no part in any rank
BINS_PER_TAU = 8
BINS_AT_ONCE = 2**18


def smooth_ap(
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"], tau: Number
) -> Float[Tensor, "m"]:
    """Smooth-AP_j of every landmark, differentiable; 0 for a landmark without a positive. Landmarks are chosen by it.

    Approximates the definition, `vectorized_smooth_ap_reference` of one column, to 1e-5, and its gradient to 1e-4.
    """
    check_tau(tau)
    check_ranking(scores, positive, universe)
    lists, positive, universe = (each.T.contiguous() for each in (scores, positive, universe))  # a row a landmark
    known = lists.detach()
    if not known.numel():
        return scores.sum(dim=0)
    lowest = known.masked_fill(~positive, torch.inf).amin(dim=1, keepdim=True)
    ranked = universe & (known >= lowest - REACH * tau)
    if not ranked.any():
        return scores.sum(dim=0) * 0
    grid = Grid.covering(known[ranked].min().item(), known[ranked].max().item(), tau, points=4, bins_per_tau=BINS_PER_TAU)
    at_once = max(1, BINS_AT_ONCE // grid.bins)
    values = [
        SmoothAPOfLists.apply(full_precision(some[among]), found[among], among, grid)
        for some, found, among in zip(*(each.split(at_once) for each in (lists, positive, ranked)), strict=True)
    ]
    return torch.cat(values).to(scores.dtype)


class SmoothAPOfLists(torch.autograd.Function):
    """The derivative is read off its own curves: differentiating through the bins would lose two digits."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, positive: Tensor, among: Tensor, grid: Grid) -> Tensor:
        node, offset = grid.locate(scores.double())  # near pairs are 1e-7 apart in float32
        node += among.nonzero()[:, 0] * (2 * grid.bins)  # all lists laid end to end
        curves = []
        for chosen in (positive, ~positive):
            moments = grid.empty_moments(len(among), device=scores.device)
            deposit(moments.view(grid.points, 1, -1), node[None, chosen], offset[None, chosen])
            curves.append(moments)
        ctx.curves = RankCurves.of(grid, *curves)
        ctx.save_for_backward(node, offset, positive)
        return ctx.curves.value().to(scores.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None, None]:
        node, offset, positive = ctx.saved_tensors
        gradient = torch.empty_like(offset)
        for chosen, curve in zip((positive, ~positive), ctx.curves.derivatives(), strict=True):
            points = interpolant(outer[:, None].double() * curve, ctx.curves.grid.points)
            gradient[chosen] = read(points.view(len(points), 1, -1), node[None, chosen], offset[None, chosen])[0]
        return gradient.to(outer.dtype), None, None, None
