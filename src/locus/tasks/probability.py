"""How likely is a pose right, to 0.1 m and 5°? A logistic curve over what speaks for it, fitted to poses in houses.

A pose without a scale is right if its rotation and the direction of its translation are, to 5° each. The covariance of
a pose says how exact it is if its inliers are right; the probability also counts that they may not be. The curves, one
for each kind of pose, stand in probability.json, which `python -m locus.evaluation.probability_fit` writes.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from locus.files import load_json
from locus.tasks.uncertainty import deviations

RIGHT = (0.1, 5.0)  # metres and degrees
CURVES = Path(__file__).with_suffix(".json")
FARTHEST = 3.0  # standard deviations from the mean of the poses it was fitted to: no curve is followed further


@dataclass(frozen=True)
class Evidence:
    """What speaks for a pose."""

    kind: str
    """What it was found from, and how: the name of its curve."""
    spots: int
    """Different spots among the inliers."""
    share: float
    """Of the matches, that are inliers."""
    spread: float
    """Of the inliers in the image: the geometric mean of the standard deviations of x and y, as shares of its sides."""
    metres: float
    """Predicted by the Jacobian, without `inflation`; in lengths of the translation where its length is not known."""
    degrees: float

    @classmethod
    def of(
        cls,
        kind: str,
        inliers: Bool[ndarray, " n"],
        spots: Int[ndarray, " n"],
        pixels: Float[ndarray, "n 2"],
        size: tuple[int, int],
        covariance: Float[ndarray, "6 6"],
    ) -> "Evidence":
        """From all matches of an image of `size` (width, height), and the pose's covariance from their Jacobian."""
        spread = float(np.sqrt(np.prod(pixels[inliers].std(axis=0) / size)))
        count, share = len(np.unique(spots[inliers])), float(inliers.mean())
        return cls(kind, count, share, spread, *deviations(covariance))

    @property
    def figures(self) -> dict[str, float]:
        """By name, as the curve weighs them: counts, sizes and shares by their order of magnitude."""
        odds = np.log((self.share + 0.01) / (1.01 - self.share))
        magnitudes = {"spots": self.spots, "spread": self.spread, "metres": self.metres, "degrees": self.degrees}
        logarithms = {name: float(np.log(max(value, 1e-6))) for name, value in magnitudes.items()}
        return {"share": float(odds), **logarithms}


def probability(evidence: Evidence) -> float | None:
    """How likely the pose is right; None for a kind that no curve was fitted to."""
    curve = curves().get(evidence.kind)
    return None if curve is None else on_curve(curve, evidence)


def least_probability(kind: str) -> float:
    """Below it a pose is refused: of answers about images that share nothing, one in ten had more in the fit."""
    return curves().get(kind, {}).get("least", 0.0)


def inflation(kind: str) -> float:
    """How many times larger the squared errors of right poses of a kind are than matches with independent errors say.

    Errors of neighbouring matches go together, as far as a patch or an object reaches, which residuals do not show.
    """
    return curves().get(kind, {"inflation": 1.0})["inflation"]


def on_curve(curve: dict[str, Any], evidence: Evidence) -> float:
    """The logistic function of the weighed figures, each in standard deviations from its mean."""
    total = curve["intercept"]
    figures = evidence.figures
    for name, told in curve["figures"].items():
        away = (figures[name] - told["mean"]) / told["deviation"]
        total += told["weight"] * min(max(away, -FARTHEST), FARTHEST)
    return float(1 / (1 + np.exp(-total)))


@cache
def curves() -> dict[str, dict[str, Any]]:
    """By kind of pose."""
    return load_json(CURVES)
