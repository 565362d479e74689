"""V-Smooth-AP as it is defined, quadratic in the pairs: the referee for everything that is faster."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .checks import Number, check_ranking, check_tau


def vectorized_smooth_ap_reference(
    scores: Float[Tensor, "n m"],
    positive: Bool[Tensor, "n m"],
    universe: Bool[Tensor, "n m"],
    tau: Number,
    max_bytes: int = 2**28,
) -> Float[Tensor, ""]:
    """V-Smooth-AP (eq. 5), every positive against every pair; 0 if nothing is positive.

    Works through the positives in pieces, whose intermediate results are forgotten and computed again for the
    gradient, so that at most about `max_bytes` are in use beyond the arguments and the result.
    """
    check_tau(tau)
    check_ranking(scores, positive, universe)
    ranked, queries = scores[universe], scores[positive]
    if not len(queries):
        return scores.sum() * 0
    is_positive = positive[universe].to(scores.dtype)
    arrays = 6  # of one piece, at the height of the backward pass
    piece = max(1, max_bytes // (arrays * len(ranked) * scores.element_size()))
    total = scores.new_zeros(())
    for query in queries.split(piece):
        total = total + checkpoint(_sum_of_precisions, query, ranked, is_positive, tau, use_reentrant=False)
    return total / len(queries)


def _sum_of_precisions(query: Tensor, ranked: Tensor, is_positive: Tensor, tau: Number) -> Tensor:
    above = torch.sigmoid((ranked - query[:, None]) / tau)  # (queries, ranked)
    # 1 + the sum over k != q: the pair itself is in `ranked` and adds sigma(0) = 1/2, whose derivative is zero.
    return ((0.5 + above @ is_positive) / (0.5 + above.sum(dim=1))).sum()
