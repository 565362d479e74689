"""One ranked list of every pair, exactly: AP and the precision-recall curve, however many pairs there are.

The positives are sorted once; the negatives, a hundred times as many, only piece by piece, to count those that rank
above each positive. Pairs are scored again in the second pass, so nothing of size n × m is ever held.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from numpy import ndarray
from torch import Tensor

from locus.objective import average_precision_per_landmark, retrieval_sets

PAIRS_AT_ONCE = 2**22
VIEWS = ("all pairs", "cross-view")
"""Every pair of the universe; and without the pairs of one frame, which are easy and dominate."""


@dataclass(frozen=True)
class Patches:
    """Patches of one batch, and those that are landmarks."""

    positions: Float[Tensor, "n 3"]
    environments: Int[Tensor, " n"]
    frames: Int[Tensor, " n"]
    landmarks: Int[Tensor, " m"]


@dataclass(frozen=True)
class Ranking:
    """A ranked list, as its positives see it. A negative with the same score as a positive ranks above it."""

    above: Int64[ndarray, " positives"]
    """Negatives that rank above each positive, the best positive first."""
    negatives: int
    per_landmark: Float64[ndarray, " m"]
    """AP of every landmark's own list."""

    @property
    def precision(self) -> Float64[ndarray, " positives"]:
        """At each positive, the best first."""
        rank = np.arange(1, len(self.above) + 1)
        return rank / (rank + self.above)

    @property
    def average_precision(self) -> float:
        """0 if nothing is positive."""
        return float(self.precision.mean()) if len(self.above) else 0.0

    @property
    def chance(self) -> float:
        """What a ranking at random is worth: the share of positives."""
        return len(self.above) / max(1, len(self.above) + self.negatives)

    def curve(self, count: int = 100) -> Float64[ndarray, " count"]:
        """Precision where recall reaches 1/count, 2/count, … 1."""
        if not len(self.above):
            return np.zeros(count)
        reached = np.ceil(np.arange(1, count + 1) * len(self.above) / count).astype(int)
        return self.precision[reached - 1]


@torch.no_grad()
def rank(features: Float[Tensor, "n c"], patches: Patches, radius: float, kappa: float) -> dict[str, Ranking]:
    """Both views of the one ranked list over every patch and landmark."""
    found: dict[str, list[ndarray]] = {view: [] for view in VIEWS}
    for scores, sets in _blocks(features, patches, radius, kappa):
        for view, (positive, _) in sets.items():
            found[view].append(scores[positive].numpy())
    best_first = {view: np.sort(np.concatenate(some))[::-1] for view, some in found.items()}
    above = {view: np.zeros(len(scores), np.int64) for view, scores in best_first.items()}
    negatives = dict.fromkeys(VIEWS, 0)
    per_landmark: dict[str, list[Tensor]] = {view: [] for view in VIEWS}
    for scores, sets in _blocks(features, patches, radius, kappa):
        for view, (positive, universe) in sets.items():
            ranked = np.sort(scores[universe & ~positive].numpy())
            above[view] += len(ranked) - np.searchsorted(ranked, best_first[view], side="left")
            negatives[view] += len(ranked)
            per_landmark[view].append(average_precision_per_landmark(scores, positive, universe))
    return {view: Ranking(above[view], negatives[view], torch.cat(per_landmark[view]).numpy()) for view in VIEWS}


def _blocks(
    features: Float[Tensor, "n c"], patches: Patches, radius: float, kappa: float
) -> Iterator[tuple[Tensor, dict[str, tuple[Bool[Tensor, "n b"], Bool[Tensor, "n b"]]]]]:
    """Some landmarks at a time: every patch's scores, and positives and universe of each view."""
    for landmarks in patches.landmarks.split(max(1, PAIRS_AT_ONCE // max(1, len(features)))):
        geometry = (patches.positions, patches.environments, patches.frames, landmarks)
        positive, universe = retrieval_sets(*geometry, radius, kappa)
        apart = patches.frames[:, None] != patches.frames[landmarks]
        sets = (positive, universe), (positive & apart, universe & apart)
        yield features @ features[landmarks].T, dict(zip(VIEWS, sets, strict=True))
