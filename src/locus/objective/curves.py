"""Rank sums as curves over the score: deposit on a grid, convolve once with the sigmoid, read back.

Both sums of eq. 3 and 5 depend on a pair only through its score t, so for all pairs together they are two curves,

    R+(t) = sum over positives k of sigma((s_k - t) / tau),      R-(t) = the same over negatives,

and so are the derivatives. Every deposit and every reading uses the same polynomial interpolation over the grid points
around the score: a pair's sums with itself then cancel exactly, as they do in the definition.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .checks import Number, ObjectiveError

MOST_BINS = 2**22


@dataclass(frozen=True)
class Grid:
    """Evenly spaced score values. Absent pairs go `bins` further, to as many bins again that nobody reads.

    (One bin for all of them would be slower: adding twice to one place must wait for the first to be done.)

    A score is interpolated over 4 points, two to each side; or over the nearest 3, which is faster, but jumps, by 1e-6
    of the curve's height, where another point becomes the nearest.
    """

    low: float
    width: float
    bins: int
    tau: Number
    points: int

    @classmethod
    def covering(cls, low: float, high: float, tau: Number, *, points: int, bins_per_tau: int) -> "Grid":
        width = tau / bins_per_tau
        bins = math.ceil((high - low) / width) + 4  # two nodes to spare at each end
        if bins > MOST_BINS:
            raise ObjectiveError(
                f"the scores span {high - low:.3g}, more than {MOST_BINS // bins_per_tau} times tau = {tau:.3g}"
            )
        return cls(low - 1.5 * width, width, bins, tau, points)

    def locate(self, scores: Float[Tensor, "*pairs"]) -> tuple[Int[Tensor, "*pairs"], Float[Tensor, "*pairs"]]:
        """Node and offset of each score.

        Scores that the grid does not cover, which only absent pairs may have, go to its ends.
        """
        return self.split(scores.sub(self.low).mul_(1 / self.width).clamp_(0, self.bins - 1))

    def split(self, place: Float[Tensor, "*pairs"]) -> tuple[Int[Tensor, "*pairs"], Float[Tensor, "*pairs"]]:
        """The second of the points around each place, and the way from there, all counted in bins."""
        node = place.round() if self.points == 3 else place.floor()
        return node.int().long(), place - node  # a CPU converts by way of int32 in half the time

    def empty_moments(
        self, *lists: int, device: torch.device, dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "points *lists twice_bins"]:
        return torch.zeros(self.points, *lists, 2 * self.bins, dtype=dtype, device=device)


def deposit(
    moments: Float[Tensor, "points lists twice_bins"],
    node: Int[Tensor, "rows pairs"],
    offset: Float[Tensor, "rows pairs"],
) -> None:
    """Add to each bin the powers of its scores' offsets, from 0 (the count) on; row i goes to list i."""
    power = torch.ones_like(offset, dtype=moments.dtype)
    for moment in moments:
        moment.scatter_add_(1, node, power)
        power *= offset


def node_weights(moments: Float[Tensor, "points lists twice_bins"]) -> Float[Tensor, "lists bins"]:
    """The histogram whose sum with any smooth curve is the sum over the pairs: the interpolation, transposed."""
    bins = moments.shape[-1] // 2
    shares = torch.tensordot(_lagrange(moments), moments[..., :bins], dims=1)  # of each point around a node
    weights = moments.new_zeros(moments.shape[1], bins + len(shares))
    for point, share in enumerate(shares):
        weights[:, point : point + bins] += share
    return weights[:, 1 : 1 + bins]


def interpolant(curve: Float[Tensor, "lists bins"], points: int) -> Float[Tensor, "points lists twice_bins"]:
    """The polynomial around every node, for `read`; an absent pair reads zero."""
    bins = curve.shape[1]
    around = torch.nn.functional.pad(curve, (1, points - 2)).unfold(1, bins, 1).transpose(0, 1)  # (points, lists, bins)
    coefficients = torch.tensordot(_lagrange(around).T, around, dims=1)
    return torch.nn.functional.pad(coefficients, (0, bins))


def read(
    coefficients: Float[Tensor, "points lists twice_bins"],
    node: Int[Tensor, "rows pairs"],
    offset: Float[Tensor, "rows pairs"],
) -> Float[Tensor, "rows pairs"]:
    """The curve at each score; row i reads list i, or all rows the only list."""
    value, *others = (c.expand(len(node), -1).gather(1, node) for c in reversed(coefficients.unbind()))
    for other in others:
        value.mul_(offset).add_(other)
    return value


def _lagrange(like: Float[Tensor, "points ..."]) -> Float[Tensor, "points points"]:
    """Row k: the polynomial, lowest power first, that is 1 at the point k - 1 and 0 at the others from -1 on."""
    points = torch.arange(len(like), dtype=like.dtype, device=like.device) - 1
    return torch.linalg.inv(torch.linalg.vander(points)).T


def convolve(weights: Float[Tensor, "*lists bins"], kernel: Float[Tensor, "lags"]) -> Float[Tensor, "*lists bins"]:
    """Sum over nodes b' of weights[b'] kernel(b' - b), with kernel given at lags -(bins - 1) to bins - 1."""
    bins = weights.shape[-1]
    length = 2 ** math.ceil(math.log2(2 * bins))  # what wraps around stays out of the part that is kept
    spectrum = torch.fft.rfft(weights, length) * torch.fft.rfft(kernel.flip(0), length)
    return torch.fft.irfft(spectrum, length)[..., bins - 1 : 2 * bins - 1]


@dataclass(frozen=True)
class RankCurves:
    """Smooth AP of ranked lists, and its derivative with respect to every score, from two histograms each.

    `A` and `N` are the rank sums at the nodes: A = 1 + R+ - 1/2, where the half takes out the pair itself
    (sigma(0)), and N = R-, so that a positive at t contributes A / (A + N) to the mean.
    """

    grid: Grid
    positive: Float[Tensor, "lists bins"]
    negative: Float[Tensor, "lists bins"]
    A: Float[Tensor, "lists bins"]
    N: Float[Tensor, "lists bins"]
    positives: Float[Tensor, "lists 1"]

    @classmethod
    def of(cls, grid: Grid, positive_moments: Tensor, negative_moments: Tensor) -> "RankCurves":
        positive, negative = node_weights(positive_moments), node_weights(negative_moments)
        R = convolve(torch.stack([positive, negative]), torch.sigmoid(_lags(grid, positive)))
        count = positive_moments[0, :, : grid.bins].sum(dim=1, keepdim=True).round()
        return cls(grid, positive, negative, 0.5 + R[0], R[1], count.clamp(min=1))  # no positives: AP is 0

    def value(self) -> Float[Tensor, "lists"]:
        """Eq. 3 and 5: the mean of A / (A + N) over the positives."""
        return (self.positive * self.A / (self.A + self.N) / self.positives).sum(dim=1)

    def derivatives(self) -> tuple[Float[Tensor, "lists bins"], Float[Tensor, "lists bins"]]:
        """d value / d score as curves over the score, for a positive and for a negative pair."""
        sigmoid = torch.sigmoid(_lags(self.grid, self.positive))
        slope = sigmoid * (1 - sigmoid) / self.grid.tau
        dA, dN = convolve(torch.stack([self.positive, self.negative]), slope)
        B_squared = (self.A + self.N) ** 2
        own = (self.A * dN - self.N * dA) / B_squared  # through the pair's own rank
        others = convolve(self.positive * torch.stack([self.N, self.A]) / B_squared, slope)  # through all others' ranks
        return (own + others[0]) / self.positives, -others[1] / self.positives


def _lags(grid: Grid, like: Tensor) -> Float[Tensor, "lags"]:
    step = grid.width / grid.tau
    return step * torch.arange(1 - grid.bins, grid.bins, dtype=like.dtype, device=like.device)
