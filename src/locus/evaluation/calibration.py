"""Do answers know how good they are? Probabilities against what came true, and covariances against true errors."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.stats import chi2

from locus.evaluation.figures import Line, line_figure
from locus.evaluation.methods import Competitor
from locus.evaluation.metrics import STILL, error_of
from locus.evaluation.outcome import Outcome
from locus.evaluation.table import Cell, Column, Table
from locus.geometry import pose_error
from locus.tasks.localize import Location
from locus.tasks.probability import RIGHT, inflation, least_probability
from locus.tasks.relative_pose import RelativePose
from locus.tasks.uncertainty import offset

BINS = 10
INSIDE = 0.95  # of true poses lie inside this ellipsoid of the covariance, if it is right

Judged = dict[str, Any]
"""What an answer said of itself, and whether that was so; without `nees` if the error is not known."""


def reliability(
    probabilities: Float[ndarray, " n"], right: Bool[ndarray, " n"]
) -> tuple[Float[ndarray, " bins"], Float[ndarray, " bins"], Int[ndarray, " bins"]]:
    """Of each tenth of the probabilities that has any: their mean, the share that came true, and how many there are."""
    of_bin = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    count = np.bincount(of_bin, minlength=BINS)
    kept = np.flatnonzero(count)
    sums = [np.bincount(of_bin, values, BINS)[kept] for values in (probabilities, right.astype(np.float64))]
    return sums[0] / count[kept], sums[1] / count[kept], count[kept]


def expected_calibration_error(probabilities: Float[ndarray, " n"], right: Bool[ndarray, " n"]) -> float:
    """The mean distance between what was said and what came true, over tenths, each weighed by its answers."""
    said, true, count = reliability(probabilities, right)
    return float(np.average(np.abs(said - true), weights=count))


def brier(probabilities: Float[ndarray, " n"], right: Bool[ndarray, " n"]) -> float:
    """The mean squared distance of probabilities from 1 where they came true and from 0 where not (Brier, 1950)."""
    return float(np.mean((probabilities - right) ** 2))


def squared_error(step: Float[ndarray, " 6"], covariance: Float[ndarray, "6 6"], freedom: int) -> float:
    """NEES: the squared error by the inverse covariance, over the `freedom` directions of the largest variances.

    If the covariance is right, its mean is `freedom`, and it has a chi-square distribution.
    """
    variances, directions = np.linalg.eigh(covariance)
    return float(((step @ directions[:, -freedom:]) ** 2 / variances[-freedom:]).sum())


def judged_location(location: Location, least: float, truth: Float[ndarray, "4 4"] | None = None) -> Judged | None:
    """Of an answer, which is wrong if there is no true pose; None if its confidence is too low, or it says no more."""
    if location.world_from_camera is None or location.evidence is None or location.confidence < least:
        return None
    if truth is None:
        return _judged(location, right=False) | {"elsewhere": True}
    metres, degrees = pose_error(location.world_from_camera, truth)
    step = offset(location.world_from_camera, truth)
    return _judged(location, metres <= RIGHT[0] and degrees <= RIGHT[1], step, 6)


def judged_motion(answer: RelativePose, truth: Float[ndarray, "4 4"]) -> Judged | None:
    """Of an answer, of which only the rotation counts if no more is known; None if there is none."""
    if answer.b_from_a is None:
        return None
    off = error_of(answer.b_from_a, truth, scale_from_truth=False)
    turned, length = off.degrees <= RIGHT[1], np.linalg.norm(truth[:3, 3])
    if not answer.direction_known:
        return _judged(answer, turned)
    if answer.metric:
        return _judged(answer, turned and off.metres <= RIGHT[0], offset(answer.b_from_a, truth), 6)
    if length < STILL:  # there is no direction to be wrong about
        return _judged(answer, turned)
    unit = truth.copy()
    unit[:3, 3] /= length
    # Forwards is not backwards, though the benchmark's own error of direction does not count the sign.
    aligned = unit[:3, 3] @ answer.b_from_a[:3, 3] >= np.cos(np.radians(RIGHT[1]))
    return _judged(answer, bool(turned and aligned), offset(answer.b_from_a, unit), 5)


def _judged(
    answer: Location | RelativePose, right: bool, step: Float[ndarray, " 6"] | None = None, freedom: int = 0
) -> Judged:
    """Of an answer with a pose; `step` leads from there to the true one, if that is known."""
    assert answer.evidence is not None
    said: Judged = {"evidence": asdict(answer.evidence), "probability": answer.probability, "right": right}
    if step is None:
        return said
    assert answer.covariance is not None
    inflated = inflation(answer.evidence.kind)
    return said | {"nees": squared_error(step, answer.covariance, freedom), "freedom": freedom, "inflation": inflated}


def answered(judged: Judged | None) -> bool:
    """Whether there is an answer, and a likely one."""
    if judged is None:
        return False
    return judged["probability"] is None or judged["probability"] >= least_probability(judged["evidence"]["kind"])


def trust_table(outcome: Outcome, title: str, answers: Callable[[Competitor], Sequence[Judged]]) -> Table:
    """What the answers of each method said of themselves, and what came true."""

    def cells(method: Competitor) -> list[Cell] | None:
        given = answers(method)
        if not given:
            return None
        right = np.array([each["right"] for each in given])
        found: list[Cell] = [len(given), float(right.mean())]
        known = [each for each in given if each["probability"] is not None]
        if known:
            said, true = (np.array([each[name] for each in known]) for name in ("probability", "right"))
            found += [float(said.mean()), expected_calibration_error(said, true), brier(said, true)]
        else:
            found += [None] * 3
        measured = [each for each in given if "nees" in each]
        ratio = np.array([each["nees"] / each["freedom"] for each in measured])
        inside = np.array([chi2.cdf(each["nees"], each["freedom"]) <= INSIDE for each in measured])
        exact = np.array([each["right"] for each in measured], bool)
        return [*found, *(float(each.mean()) if len(each) else None for each in (ratio[exact], inside[exact], inside))]

    columns = [Column("answers", 0, "neither"), Column("right", 3, "neither"), Column("probability", 3, "neither")]
    columns += [Column("calibration error", 3, "lower"), Column("Brier", 3, "lower")]
    columns += [Column("NEES, right ones", 2, "neither"), Column("inside, right ones", 2, "neither")]
    columns += [Column("inside, all", 2, "neither")]
    notes = [
        f"Right: within {RIGHT[0]:g} m and {RIGHT[1]:g}°; rotation and direction within {RIGHT[1]:g}° where the length "
        "of a translation is not known. Probability: the mean of what was said. Calibration error: the mean distance "
        f"of the two, over {BINS} ranges of probability.",
        "NEES: the squared error by the inverse covariance, divided by its degrees of freedom; 1 is best. Inside: true "
        f"poses inside the ellipsoid that should hold {INSIDE:.0%} of them.",
    ]
    return Table(title, columns, outcome.rows(cells), notes)


def reliability_figure(
    outcome: Outcome, panels: dict[str, Callable[[Competitor], Sequence[Judged]]]
) -> tuple[str, str]:
    """Caption and drawing: the share of right answers by the probability that they had."""
    drawn = {title: [Line("calibrated", np.array([0.0, 1.0]), np.array([0.0, 1.0]), True)] for title in panels}
    methods = [method for method in outcome.methods if isinstance(method, Competitor)]
    for title, answers in panels.items():
        for method in methods:
            known = [each for each in answers(method) if each["probability"] is not None]
            if known:
                said, true = (np.array([each[name] for each in known]) for name in ("probability", "right"))
                drawn[title].append(Line(outcome.label(method), *reliability(said, true)[:2]))
    caption = "Answers that are right, by the probability that they said"
    return caption, line_figure(drawn, "probability", "share right", (0, 1), (0, 1))
