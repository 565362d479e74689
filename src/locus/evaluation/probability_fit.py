"""Fit the curves of `locus.tasks.probability` to the recorded answers of benchmarks.

    python -m locus.evaluation.probability_fit RESULTS.json... --out src/locus/tasks/probability.json

RESULTS.json are files that `locus eval pose` and `locus eval localization` write with --json. Each kind of pose among
their answers gets a curve, or, where too few are right or wrong, the share of right ones by Laplace's rule.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from jaxtyping import Bool, Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.calibration import Judged, brier, expected_calibration_error
from locus.files import load_json, save_json
from locus.opening import read_json
from locus.tasks.probability import CURVES, FARTHEST, Evidence, on_curve

RIDGE = 1.0  # a normal prior of standard deviation 1 on every weight
ROUNDS = 50  # of Newton's method; it takes about ten
FEWEST = 8  # answers of a kind, right and wrong each, below which no curve is fitted
ANSWERED = 0.1  # of the answers about images that share nothing, that are not refused: of one such pair in twenty


def logistic_weights(
    figures: Float[ndarray, "n k"], right: Bool[ndarray, " n"], ridge: float = RIDGE
) -> tuple[Float[ndarray, " k"], float]:
    """Weights and intercept of the greatest likelihood, less ridge/2 times the squared weights: Newton's method."""
    columns = np.concatenate([figures, np.ones((len(figures), 1))], axis=1)
    penalty = np.diag([ridge] * figures.shape[1] + [0.0])
    weights = np.zeros(columns.shape[1])
    weights[-1] = np.log(right.mean() / (1 - right.mean()))
    for _ in range(ROUNDS):
        said = 1 / (1 + np.exp(-columns @ weights))
        gradient = columns.T @ (right - said) - penalty @ weights
        step = np.linalg.solve((columns * (said * (1 - said))[:, None]).T @ columns + penalty, gradient)
        weights += step
        if np.abs(step).max() < 1e-10:
            break
    return weights[:-1], float(weights[-1])


def fitted(answers: Sequence[Judged]) -> dict[str, Any]:
    """The curve of one kind of pose, and how much larger than by its inliers' residuals its covariance is."""
    evidence = [Evidence(**each["evidence"]) for each in answers]
    right = np.array([each["right"] for each in answers])
    # With too few to tell what speaks for a right one, all have the same probability.
    names = list(evidence[0].figures) if min(right.sum(), (~right).sum()) >= FEWEST else []
    values = np.array([[each.figures[name] for name in names] for each in evidence])
    mean, deviation = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-3)
    if names:
        weights, intercept = logistic_weights(((values - mean) / deviation).clip(-FARTHEST, FARTHEST), right)
    else:
        weights, intercept = np.zeros(0), float(np.log((right.sum() + 1) / ((~right).sum() + 1)))
    told = zip(names, mean.tolist(), deviation.tolist(), weights.tolist(), strict=True)
    figures = {
        name: {key: round(value, 5) for key, value in zip(("mean", "deviation", "weight"), values, strict=True)}
        for name, *values in told
    }
    share = round(float(right.mean()), 4)
    curve: dict[str, Any] = {"answers": len(right), "right": share, "inflation": inflated(answers)}
    curve |= {"intercept": round(intercept, 5), "figures": figures}
    return curve | {"least": least(curve, answers)}


def least(curve: dict[str, Any], answers: Sequence[Judged]) -> float:
    """The probability that one in ten answers about images that share nothing reaches; 0 if too few are there."""
    elsewhere = [on_curve(curve, Evidence(**each["evidence"])) for each in answers if each.get("elsewhere")]
    return round(float(np.quantile(elsewhere, 1 - ANSWERED)), 4) if len(elsewhere) >= FEWEST else 0.0


def inflated(answers: Sequence[Judged]) -> float:
    """How many times larger the squared errors of right poses are than their inliers' residuals say."""
    known = [each for each in answers if each["right"] and "nees" in each]
    if not known:  # of rotations alone
        return 1.0
    return round(float(np.mean([each["nees"] * each["inflation"] / each["freedom"] for each in known])), 4)


def recorded(results: Any) -> Iterator[Judged]:
    """Every judged answer anywhere in a benchmark's results."""
    if isinstance(results, dict) and "evidence" in results:
        yield results
    elif isinstance(results, dict | list):
        for each in results.values() if isinstance(results, dict) else results:
            yield from recorded(each)


@dataclass(frozen=True)
class FitProbability:
    """Fit how likely poses are right to the answers of benchmarks."""

    results: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Files written by `locus eval pose` and `locus eval localization` with --json."""
    out: Path = CURVES
    """The curves; those of kinds without answers stay."""

    def run(self) -> None:
        answers = [each for file in self.results for each in recorded(read_json(file)["parts"])]
        if not answers:
            raise LocusError(f"no answer in {', '.join(map(str, self.results))} has evidence; run locus eval again")
        curves = load_json(self.out) if self.out.exists() else {}
        for kind in dict.fromkeys(each["evidence"]["kind"] for each in answers):
            of_kind = [each for each in answers if each["evidence"]["kind"] == kind]
            right = np.array([each["right"] for each in of_kind])
            curves[kind] = fitted(of_kind)
            said = np.array([on_curve(curves[kind], Evidence(**each["evidence"])) for each in of_kind])
            figures = f"calibration error {expected_calibration_error(said, right):.3f}, Brier {brier(said, right):.3f}"
            print(f"{kind}: {right.sum()} right of {len(right)}; of the fit, {figures}")
        save_json(self.out, curves)
        print(f"Wrote {self.out}")


if __name__ == "__main__":
    try:
        tyro.cli(FitProbability).run()
    except LocusError as error:
        sys.exit(str(error))
