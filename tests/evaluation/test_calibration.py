"""Calibration against closed forms and scikit-learn, and the fit of probabilities from recorded answers."""

import json
import runpy
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.stats import chi2, kstest
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from locus.evaluation import probability_fit
from locus.evaluation.calibration import (
    brier,
    expected_calibration_error,
    judged_location,
    judged_motion,
    reliability,
    squared_error,
    trust_table,
)
from locus.evaluation.methods import Chance
from locus.evaluation.outcome import MeasuredPart, Outcome
from locus.evaluation.pose import RelativePoses
from locus.evaluation.probability_fit import FitProbability, fitted, logistic_weights, recorded
from locus.files import load_json
from locus.tasks.localize import LandmarkMatches, Location
from locus.tasks.probability import Evidence, on_curve
from locus.tasks.relative_pose import RelativePose

EVIDENCE = Evidence("3d-3d", 40, 0.5, 0.2, 0.05, 1.0)


def drawn(seed, count=400):
    """Probabilities, and what came true by them."""
    random = np.random.default_rng(seed)
    said = random.uniform(size=count)
    return said, random.uniform(size=count) < said


@given(st.integers(0, 2**31), st.integers(2, 400))
def test_reliability_and_brier_are_those_of_scikit_learn(seed, count):
    said, right = drawn(seed, count)
    means, shares, counts = reliability(said, right)
    their_shares, their_means = calibration_curve(right, said, n_bins=10)
    assert np.allclose(means, their_means)
    assert np.allclose(shares, their_shares)
    assert counts.sum() == count
    assert brier(said, right) == pytest.approx(brier_score_loss(right, said, pos_label=True))


def test_calibration_error_of_simple_cases():
    half = np.arange(100) % 2 == 0
    assert expected_calibration_error(np.full(100, 0.5), half) == pytest.approx(0)
    assert expected_calibration_error(np.full(100, 0.9), half) == pytest.approx(0.4)
    assert expected_calibration_error(np.array([0.0, 1.0]), np.array([False, True])) == 0
    # Three answers of 0.2 of which none came true, and one of 1 that did.
    said, right = np.array([0.2, 0.2, 0.2, 1.0]), np.array([False, False, False, True])
    assert expected_calibration_error(said, right) == pytest.approx(0.15)


@pytest.mark.parametrize("freedom", [5, 6])
def test_squared_errors_of_right_covariances_have_a_chi_square_distribution(freedom):
    random = np.random.default_rng(freedom)
    root = random.normal(size=(6, freedom)) * [1e-3, 1e-3, 1e-3, 0.1, 0.1, 10.0][-freedom:]
    steps = random.normal(size=(500, freedom)) @ root.T
    values = [squared_error(step, root @ root.T, freedom) for step in steps]
    assert kstest(values, chi2(freedom).cdf).pvalue > 0.01


def test_squared_error_of_a_diagonal():
    covariance = np.diag([1.0, 4.0, 9.0, 16.0, 25.0, 0.0])
    assert squared_error(np.array([1.0, 2.0, 3.0, 4.0, 10.0, 7.0]), covariance, 5) == pytest.approx(1 + 1 + 1 + 1 + 4)


def moved(metres=0.0, degrees=0.0):
    pose = np.eye(4)
    pose[:3, :3], pose[0, 3] = Rotation.from_euler("y", degrees, degrees=True).as_matrix(), metres
    return pose


def location(confidence=0.5):
    nothing = np.zeros(0)
    matches = LandmarkMatches(nothing.astype(int), nothing.astype(int), nothing, np.zeros((0, 2)), nothing.astype(bool))
    return Location("here", np.eye(4), confidence, nothing.astype(bool), matches, "", 0.01 * np.eye(6), EVIDENCE)


@pytest.mark.parametrize(("metres", "degrees", "right"), [(0.09, 4.9, True), (0.11, 0.0, False), (0.0, 5.1, False)])
def test_an_answer_is_right_within_a_tenth_of_a_metre_and_five_degrees(metres, degrees, right):
    truth = moved(metres, degrees)
    nees = (metres**2 + np.radians(degrees) ** 2) / 0.01
    said = judged_location(location(), 0.1, truth)
    assert (said["right"], said["freedom"]) == (right, 6)
    assert said["nees"] == pytest.approx(nees)
    trust = {"covariance": 0.01 * np.eye(6), "evidence": EVIDENCE}
    assert judged_motion(RelativePose(np.eye(4), np.ones(0, bool), "3d-3d", metric=True, **trust), truth) == said


def test_an_answer_of_too_little_confidence_is_none_and_one_in_another_place_is_wrong():
    assert judged_location(location(0.05), 0.1, np.eye(4)) is None
    said = judged_location(location(), 0.1)
    assert (said["right"], said["elsewhere"]) == (False, True)
    assert "nees" not in said


@pytest.mark.parametrize(("degrees", "right"), [(4.9, True), (5.1, False)])
def test_without_a_length_the_direction_counts(degrees, right):
    found, truth = moved(1.0), np.eye(4)
    truth[:3, 3] = 3.7 * Rotation.from_euler("y", degrees, degrees=True).as_matrix()[:, 0]
    covariance = np.diag([0.01] * 3 + [0.0] + [0.01] * 2)
    answer = RelativePose(found, np.ones(0, bool), "5-point", covariance=covariance, evidence=EVIDENCE)
    said = judged_motion(answer, truth)
    assert (said["right"], said["freedom"]) == (right, 5)
    assert said["nees"] == pytest.approx(np.sin(np.radians(degrees)) ** 2 / 0.01)
    backwards = truth.copy()
    backwards[:3, 3] *= -1
    assert judged_motion(answer, backwards)["right"] is False
    still = np.eye(4)
    assert "nees" not in judged_motion(answer, still)
    only_turned = replace(answer, b_from_a=np.eye(4), covariance=None)
    assert judged_motion(only_turned, truth)["right"] is True
    assert judged_motion(only_turned, moved(degrees=6.0))["right"] is False
    assert judged_motion(replace(answer, b_from_a=None), truth) is None


@given(st.integers(0, 2**31))
def test_weights_are_those_of_scikit_learn(seed):
    random = np.random.default_rng(seed)
    figures = random.normal(size=(200, 3))
    right = random.uniform(size=200) < 1 / (1 + np.exp(-figures @ [2.0, -1.0, 0.0] - 0.5))
    weights, intercept = logistic_weights(figures, right, ridge=0.7)
    theirs = LogisticRegression(C=1 / 0.7, tol=1e-10, max_iter=1000).fit(figures, right)
    assert np.allclose(weights, theirs.coef_[0], atol=1e-4)
    assert intercept == pytest.approx(theirs.intercept_[0], abs=1e-4)


def test_newton_settles_where_all_answers_can_be_told_apart():
    figures = np.linspace(-3, 3, 60)[:, None]
    weights, intercept = logistic_weights(figures, figures[:, 0] > 1)
    assert np.isfinite([*weights, intercept]).all()
    assert weights[0] > 1


def some(count, seed=0):
    """Answers, the likelier right the more inliers they have, whose squared errors are 3 times those predicted."""
    random = np.random.default_rng(seed)
    spots = random.integers(3, 200, count)
    evidence = [replace(EVIDENCE, spots=int(each), share=float(random.uniform(0.1, 0.9))) for each in spots]
    right = random.uniform(size=count) < 1 / (1 + (40 / spots) ** 2)
    error = {"nees": 9.0, "freedom": 6, "inflation": 2.0}
    return [{"evidence": asdict(e), "right": bool(r), **error} for e, r in zip(evidence, right, strict=True)]


def test_a_fitted_curve_is_calibrated_on_other_answers():
    curve = fitted(some(1500))
    others = some(3000, seed=1)
    said = np.array([on_curve(curve, Evidence(**each["evidence"])) for each in others])
    right = np.array([each["right"] for each in others])
    assert curve["inflation"] == 3
    assert expected_calibration_error(said, right) < 0.04
    assert brier(said, right) < 0.8 * right.mean() * (1 - right.mean())


def results(path, answers):
    pairs = [{"trust": each} for each in [*answers, None]]
    path.write_text(json.dumps({"parts": [{"measured": {"pairs": pairs}}]}))
    return path


def test_fitting_keeps_the_curves_of_other_kinds(tmp_path, capsys):
    file, out = results(tmp_path / "a.json", some(200)), tmp_path / "curves.json"
    out.write_text('{"other": 1}')
    FitProbability((file,), out).run()
    curves = json.loads(out.read_text())
    assert curves["other"] == 1
    assert curves["3d-3d"] == fitted(some(200))
    assert len(list(recorded(json.loads(file.read_text())))) == 200
    assert "3d-3d: " in capsys.readouterr().out


def test_below_the_least_probability_are_nine_in_ten_answers_about_what_shares_nothing():
    answers = [each | {"elsewhere": not each["right"]} for each in some(1000)]
    curve = fitted(answers)
    said = np.array([on_curve(curve, Evidence(**each["evidence"])) for each in answers])
    apart = np.array([each["elsewhere"] for each in answers])
    assert (said[apart] >= curve["least"]).mean() == pytest.approx(0.1, abs=0.005)
    assert (said[~apart] >= curve["least"]).mean() > 0.2
    assert fitted(some(200))["least"] == 0


def test_answers_that_are_all_right_get_a_share_and_none_at_all_are_an_error(tmp_path, monkeypatch):
    out = tmp_path / "curves.json"
    right = [each for each in some(100) if each["right"]]
    FitProbability((results(tmp_path / "c.json", right),), out).run()
    curve = load_json(out)["3d-3d"]
    assert curve["figures"] == {}
    assert on_curve(curve, EVIDENCE) == pytest.approx((len(right) + 1) / (len(right) + 2), abs=1e-4)
    monkeypatch.setattr(sys, "argv", ["fit", str(results(tmp_path / "b.json", [])), "--out", str(out)])
    with pytest.raises(SystemExit, match="has evidence; run locus eval again"):
        runpy.run_path(probability_fit.__file__, run_name="__main__")


def test_the_table_of_trust():
    method = Chance()
    given = [{"probability": 0.8, "right": True, "nees": 3.0, "freedom": 6} for _ in range(3)]
    given.append({"probability": 0.8, "right": False, "nees": 600.0, "freedom": 6})
    outcome = Outcome(RelativePoses(), [method], [MeasuredPart(method.label, "room", "unseen", {})], {}, 1)
    (row,) = trust_table(outcome, "Trust", lambda _: given).rows
    assert row.cells == pytest.approx([4, 0.75, 0.8, 0.05, (3 * 0.04 + 0.64) / 4, 0.5, 1.0, 0.75])
    unfitted = [each | {"probability": None} for each in given]
    assert list(trust_table(outcome, "Trust", lambda _: unfitted).rows[0].cells)[2:5] == [None] * 3
    assert trust_table(outcome, "Trust", lambda _: []).rows == []
