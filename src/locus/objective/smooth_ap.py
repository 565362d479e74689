"""Smooth-AP_j (eq. 3) of given scores, in linear time: how well each landmark's embedding ranks its own patches.

The paper prints the two sums of eq. 3 over the pairs kl of *all* landmarks. Here they run over the patches k of
landmark j alone. Only then is the limit of small tau "the exact AP with theta_j as the query embedding", as the paper
says, and only then does a landmark's value not depend on which others were drawn. Eq. 5 ranks all pairs together.
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
    lowest = torch.where(positive, known, torch.inf).amin(dim=1, keepdim=True)
    ranked = (universe & (known >= lowest - REACH * tau)).view(-1).nonzero()[:, 0]
    if not len(ranked):
        return scores.sum(dim=0) * 0
    ends = torch.arange(len(lists) + 1, device=ranked.device) * len(scores)
    sizes = torch.searchsorted(ranked, ends).diff()  # of the lists, one after the other in `ranked`
    pairs, found = full_precision(lists).view(-1)[ranked], positive.view(-1)[ranked]
    span = pairs.detach().aminmax()
    grid = Grid.covering(span.min.item(), span.max.item(), tau, points=4, bins_per_tau=BINS_PER_TAU)
    blocks = sizes.split(max(1, BINS_AT_ONCE // grid.bins))
    parts = [each.split([int(block.sum()) for block in blocks]) for each in (pairs, found)]
    values = [SmoothAPOfLists.apply(*part, grid) for part in zip(*parts, blocks, strict=True)]
    return torch.cat(values).to(scores.dtype)


class SmoothAPOfLists(torch.autograd.Function):
    """The value of each list of pairs, which stand one after the other; `sizes` says how many each has.

    The derivative is read off its own curves: differentiating through the bins would lose two digits.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, positive: Tensor, sizes: Tensor, grid: Grid) -> Tensor:
        node, offset = grid.locate(scores.double())  # near pairs are 1e-7 apart in float32
        node += (2 * grid.bins * torch.arange(len(sizes), device=sizes.device)).repeat_interleave(sizes)
        place = positive.nonzero()[:, 0]
        positives, negatives = (grid.empty_moments(len(sizes), device=scores.device) for _ in range(2))
        deposit(positives.view(grid.points, 1, -1), node[None, place], offset[None, place])
        node[place] += grid.bins  # to where nobody reads
        deposit(negatives.view(grid.points, 1, -1), node[None], offset[None])
        ctx.curves = RankCurves.of(grid, positives, negatives)
        ctx.save_for_backward(node, offset, place)
        return ctx.curves.value().to(scores.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None, None]:
        node, offset, place = ctx.saved_tensors
        grid = ctx.curves.grid
        up, down = (
            interpolant(outer[:, None].double() * curve, grid.points).view(grid.points, 1, -1)
            for curve in ctx.curves.derivatives()
        )
        gradient = read(down, node[None], offset[None])[0]
        gradient[place] = read(up, node[None, place] - grid.bins, offset[None, place])[0]
        return gradient.to(outer.dtype), None, None, None
