"""The probability of a pose: a logistic curve of what speaks for it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.tasks.probability import FARTHEST, Evidence, curves, inflation, least_probability, on_curve, probability

EVIDENCE = Evidence("3d-3d", 40, 0.5, 0.2, 0.05, 1.0)
MATCHED = [f"{solver}{of}" for solver in ("5-point", "3d-3d", "rotation") for of in ("", " of keypoints")]
KINDS = (*MATCHED, *(f"{by} {of}-3d" for by in ("landmarks", "points") for of in ("2d", "3d")))


def flat(**weights):
    figures = {name: {"mean": 0.0, "deviation": 1.0, "weight": weights.get(name, 0.0)} for name in EVIDENCE.figures}
    return {"intercept": 0.5, "figures": figures}


def test_the_curve_is_logistic_and_no_figure_counts_beyond_its_range():
    assert on_curve(flat(), EVIDENCE) == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert on_curve(flat(metres=2.0), replace(EVIDENCE, metres=2.0)) == pytest.approx(1 / (1 + np.exp(-0.5) / 4))
    far = 1 / (1 + np.exp(-0.5 - FARTHEST))
    assert on_curve(flat(metres=1.0), replace(EVIDENCE, metres=1e9)) == pytest.approx(far)


def test_evidence_of_known_matches():
    inliers = np.array([True, True, True, True, False])
    pixels = np.array([[10.0, 10], [30, 10], [10, 50], [30, 50], [0, 0]])
    covariance = np.diag([0.01**2, 0, 0, 0.02**2, 0, 0])
    found = Evidence.of("5-point", inliers, np.array([1, 1, 2, 3, 4]), pixels, (40, 80), covariance)
    assert replace(found, degrees=0.0) == Evidence("5-point", 3, 0.8, 0.25, 0.02, 0.0)
    assert found.degrees == pytest.approx(np.degrees(0.01))


@given(st.integers(0, 10000), st.floats(0, 1), *[st.floats(0, 1e6)] * 3)
def test_every_kind_has_a_probability_for_any_evidence(spots, share, spread, metres, degrees):
    for kind in KINDS:
        found = probability(Evidence(kind, spots, share, spread, metres, degrees))
        assert 0 <= found <= 1


def test_a_kind_that_was_not_fitted_has_no_probability_and_its_covariance_is_that_of_the_residuals():
    assert probability(replace(EVIDENCE, kind="guessed")) is None
    assert inflation("guessed") == 1
    assert all(inflation(kind) > 0 for kind in KINDS)


def test_every_curve_names_the_figures_of_evidence_or_none():
    assert set(curves()) >= set(KINDS)
    assert all(list(curve["figures"]) in ([], list(EVIDENCE.figures)) for curve in map(curves().get, KINDS))
    assert all(0 <= least_probability(kind) < 1 for kind in KINDS)
    assert least_probability("guessed") == 0
