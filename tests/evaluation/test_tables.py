"""Intervals against SciPy's bootstrap; tables in every style."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap

from locus.evaluation.bootstrap import Estimate, estimate
from locus.evaluation.table import Column, Row, Table, rendered

TABLE = Table(
    "A & B",
    [Column("AP"), Column("error_m", 2, "lower"), Column("pairs", 0, "neither")],
    [
        Row("ours", [Estimate(0.5, 0.4, 0.6), 1.5, 10]),
        Row("theirs | old", [Estimate(0.25), 0.5, 20]),
        Row("ceiling", [1.0, 0.0, 10], "bound"),
        Row("resnet50", ["not available: no weights"], "unavailable"),
        Row("paper: LoCUS", [0.55, None, None], "reference"),
    ],
    ["a note"],
)


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_intervals_are_scipys(statistic):
    values = np.random.default_rng(0).exponential(size=40)
    ours = estimate(values, lambda drawn: statistic(drawn, axis=-1))
    referee = bootstrap((values,), statistic, method="percentile", n_resamples=9999, rng=1).confidence_interval
    assert ours.value == pytest.approx(statistic(values))
    assert ours.low == pytest.approx(referee.low, abs=0.06)
    assert ours.high == pytest.approx(referee.high, abs=0.06)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_the_interval_holds_between_the_least_and_the_most(values):
    found = estimate(np.array(values))
    assert found == estimate(np.array(values))
    if len(values) == 1:
        assert found.low is None
    else:
        slack = 1e-9 * (1 + max(map(abs, values)))
        assert min(values) - slack <= found.low <= found.high <= max(values) + slack


def test_nothing_has_no_estimate():
    assert estimate(np.zeros(0)) is None


def test_text_is_aligned_and_says_what_is_not_available():
    lines = rendered(TABLE).splitlines()
    assert lines[0] == "A & B"
    assert lines[3].index("0.500 [0.400, 0.600]") + len("0.500 [0.400, 0.600]") == lines[2].index("AP") + 2
    assert "resnet50      not available: no weights" in rendered(TABLE)
    assert lines[-2].split() == ["paper:", "LoCUS", "0.550", "–", "–"]


def test_only_competitors_can_be_best():
    assert TABLE.best() == {(0, 0), (1, 1)}
    markdown = rendered(TABLE, "markdown")
    assert "| ours | **0.500 [0.400, 0.600]** | 1.50 | 10 |" in markdown
    assert r"| theirs \| old | 0.250 | **0.50** | 20 |" in markdown


def test_equal_as_printed_is_equally_good():
    table = Table("", [Column("AP", 2)], [Row("a", [0.501]), Row("b", [0.499]), Row("c", [0.1])])
    assert table.best() == {(0, 0), (1, 0)}


def test_latex_is_escaped():
    latex = rendered(TABLE, "latex")
    assert r"error\_m" in latex
    assert r"\textbf{0.500 [0.400, 0.600]}" in latex
    assert r"resnet50 & \multicolumn{3}{l}{not available: no weights} \\" in latex
    assert latex.count(r"\\") == 6


def test_json_is_plain():
    told = json.loads(json.dumps(TABLE.json()))
    assert told["rows"][0]["cells"] == [{"value": 0.5, "low": 0.4, "high": 0.6}, 1.5, 10]
    assert told["rows"][4]["kind"] == "reference"
