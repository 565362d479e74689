"""Exact average precision, the limit of Smooth AP as tau goes to zero: for evaluation, without a gradient.

The positives are sorted once; the negatives, a hundred times as many, only block by block, to count those that rank
above each positive. Straight from features (`ExactRanking`), pairs are scored again for the second pass, so nothing of
size n × m is ever held. Ties count pessimistically: a negative with the same score as a positive ranks above it. So
equal scores never earn more than chance, whatever the order in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from .checks import Number, check_ranking
from .sets import retrieval_sets

PAIRS_AT_ONCE = 2**22

Block = tuple[Tensor, Tensor, Tensor]
"""Scores, positives and universe of some of the pairs."""


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """One ranked list of pairs, as its positives see it."""

    above: Int64[Tensor, " positives"]
    """Negatives that rank above each positive, the best positive first."""
    negatives: int

    @property
    def precision(self) -> Float64[Tensor, " positives"]:
        """At each positive, the best first."""
        rank = torch.arange(1, len(self.above) + 1, dtype=torch.float64, device=self.above.device)
        return rank / (rank + self.above)

    @property
    def average_precision(self) -> Float64[Tensor, ""]:
        """0 if nothing is positive."""
        return self.precision.sum() / max(1, len(self.above))

    @property
    def chance(self) -> float:
        """What a ranking at random is worth: the share of positives."""
        return len(self.above) / max(1, len(self.above) + self.negatives)

    def curve(self, count: int = 100) -> Float64[Tensor, " count"]:
        """Precision where recall reaches 1/count, 2/count, … 1."""
        if not len(self.above):
            return torch.zeros(count, dtype=torch.float64)
        reached = (torch.arange(1, count + 1, dtype=torch.float64) * len(self.above) / count).ceil().long()
        return self.precision[reached - 1]


@dataclass(frozen=True)
class ExactRanking:
    """Every patch ranked for every landmark of a batch: what `RetrievalObjective` approximates."""

    radius: Number
    kappa: Number
    exclude_same_frame: bool = False

    @torch.no_grad()
    def __call__(
        self,
        features: Float[Tensor, "n c"],
        positions: Float[Tensor, "n 3"],
        environments: Int[Tensor, "n"],
        frames: Int[Tensor, "n"],
        landmarks: Int[Tensor, "m"],
    ) -> RankedPairs:
        """All pairs of the universe as one list (eq. 3); a landmark's embedding is its patch's feature."""
        return _ranked(lambda: self._blocks(features, positions, environments, frames, landmarks))

    @torch.no_grad()
    def per_landmark(self, features: Float[Tensor, "n c"], *geometry: Tensor) -> Float64[Tensor, "m"]:
        """AP of every landmark's own list, from the arguments of a call; 0 for one without a positive."""
        return torch.cat([average_precision_per_landmark(*block) for block in self._blocks(features, *geometry)])

    def _blocks(self, features: Tensor, *geometry: Tensor) -> Iterator[Block]:
        """Every patch, with some landmarks at a time."""
        *patches, landmarks = geometry
        for some in landmarks.split(max(1, PAIRS_AT_ONCE // max(1, len(features)))):
            sets = retrieval_sets(*patches, some, self.radius, self.kappa, self.exclude_same_frame)
            yield features @ features[some].T, *sets


@torch.no_grad()
def average_precision(
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"]
) -> Float64[Tensor, ""]:
    """AP of all pairs of the universe as one ranked list; 0 if nothing is positive."""
    check_ranking(scores, positive, universe)
    rows = max(1, PAIRS_AT_ONCE * len(scores) // max(1, scores.numel()))
    pieces = [tensor.split(rows) for tensor in (scores, positive, universe)]
    return _ranked(lambda: zip(*pieces, strict=True)).average_precision


@torch.no_grad()
def average_precision_per_landmark(
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"]
) -> Float64[Tensor, "m"]:
    """AP of every landmark's own ranked list; 0 for a landmark without a positive."""
    check_ranking(scores, positive, universe)
    values = [
        _ranked(lambda own=own: [own]).average_precision for own in zip(scores.T, positive.T, universe.T, strict=True)
    ]
    return torch.stack(values) if values else scores.new_zeros(0, dtype=torch.float64)


def _ranked(blocks: Callable[[], Iterable[Block]]) -> RankedPairs:
    """The list of all blocks' pairs together; `blocks` gives them anew for each of the two passes."""
    found = _sorted(torch.cat([scores[positive] for scores, positive, _ in blocks()])).flip(0)  # best first
    above = torch.zeros(len(found), dtype=torch.int64, device=found.device)
    negatives = 0
    for scores, positive, universe in blocks():
        ranked = _sorted(scores[universe & ~positive])
        above += len(ranked) - torch.searchsorted(ranked, found, side="left")
        negatives += len(ranked)
    return RankedPairs(above, negatives)


def _sorted(values: Tensor) -> Tensor:
    if values.device.type != "cpu" or values.dtype == torch.bfloat16:
        return values.sort().values
    return torch.from_numpy(np.sort(values.numpy()))  # ten times as fast as torch's on a CPU
