"""How far a figure can be trusted: percentile intervals from drawing the units again, with replacement."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

DRAWS = 2000
CONFIDENCE = 0.95
FEWEST = 2  # one unit says nothing about others

Statistic = Callable[[Float[ndarray, "*draws n"]], Float[ndarray, "*draws"] | np.floating]
"""Of the last axis."""


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval, which is None where there is nothing to draw from."""

    value: float
    low: float | None = None
    high: float | None = None


def mean(values: Float[ndarray, "*draws n"]) -> Float[ndarray, "*draws"] | np.floating:
    return values.mean(axis=-1)


def estimate(values: Float[ndarray, " n"], statistic: Statistic = mean, seed: int = 0) -> Estimate | None:
    """The statistic of the units, and its interval; None if there are no units."""
    if not len(values):
        return None
    value = float(statistic(values))
    if len(values) < FEWEST:
        return Estimate(value)
    drawn = np.random.default_rng(seed).integers(len(values), size=(DRAWS, len(values)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(statistic(values[drawn]), [tail, 1 - tail], method="inverted_cdf")  # errors may be infinite
    return Estimate(value, float(low), float(high))
