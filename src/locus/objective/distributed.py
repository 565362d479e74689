"""One batch over several processes: only landmarks and histograms travel."""

from typing import Any

import torch
import torch.distributed
from jaxtyping import Shaped
from torch import Tensor
from torch.distributed import ProcessGroup


def rows_of_all(rows: Shaped[Tensor, "k *rest"], group: ProcessGroup) -> tuple[Shaped[Tensor, "total *rest"], slice]:
    """The rows of all processes, in the order of their ranks, and where one's own are among them.

    The gradient of a row comes back to the process it came from, summed over all; so all must call backward.
    """
    sizes = torch.zeros(torch.distributed.get_world_size(group), dtype=torch.int64, device=rows.device)
    rank = torch.distributed.get_rank(group)
    sizes[rank] = len(rows)
    torch.distributed.all_reduce(sizes, group=group)
    start = int(sizes[:rank].sum())
    own = slice(start, start + len(rows))
    return _RowsOfAll.apply(rows, own, int(sizes.sum()), group), own


class _RowsOfAll(torch.autograd.Function):
    """Gathering rows of different counts is a sum of arrays that are zero elsewhere; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, own: slice, total: int, group: ProcessGroup) -> Tensor:
        ctx.own, ctx.group = own, group
        everyone = rows.new_zeros(total, *rows.shape[1:])
        everyone[own] = rows
        torch.distributed.all_reduce(everyone, group=group)
        return everyone

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        torch.distributed.all_reduce(gradient, group=ctx.group)
        return gradient[ctx.own], None, None, None
