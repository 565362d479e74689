"""Exact AP against scikit-learn without ties, and against every order of the ties with them."""

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

import locus.objective.exact
from locus.objective import average_precision, average_precision_per_landmark


def ranking_task(seed: int, n: int, m: int):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randperm(n * m, generator=generator).reshape(n, m) / (n * m)
    universe = torch.rand(n, m, generator=generator) < 0.7
    positive = universe & (torch.rand(n, m, generator=generator) < 0.3)
    universe[0] = positive[0] = True
    return scores, positive, universe


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(1, 8))
def test_without_ties_it_is_scikit_learns(seed, n, m):
    scores, positive, universe = ranking_task(seed, n, m)
    wanted = average_precision_score(positive[universe].numpy(), scores[universe].numpy())
    assert float(average_precision(scores, positive, universe)) == pytest.approx(wanted, abs=1e-12)
    columns = [average_precision_score(positive[u, j].numpy(), scores[u, j].numpy()) for j, u in enumerate(universe.T)]
    np.testing.assert_allclose(average_precision_per_landmark(scores, positive, universe).numpy(), columns, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_ties_count_as_in_the_worst_order(pairs):
    if not any(positive for _, positive in pairs):
        pairs[0] = (pairs[0][0], True)

    def ap(order):
        hits = np.array([positive for _, positive in order], dtype=float)
        return (hits * hits.cumsum() / np.arange(1, len(hits) + 1)).sum() / hits.sum()

    orders = [o for o in permutations(pairs) if [s for s, _ in o] == sorted((s for s, _ in o), reverse=True)]
    scores = torch.tensor([[float(s)] for s, _ in pairs])
    positive = torch.tensor([[p] for _, p in pairs])
    got = float(average_precision(scores, positive, torch.ones_like(positive)))
    assert got == pytest.approx(min(map(ap, orders)), abs=1e-12)


def test_equal_scores_earn_no_more_than_chance():
    positive = torch.zeros(1000, 1, dtype=torch.bool)
    positive[:100] = True
    assert average_precision(torch.zeros(1000, 1), positive, torch.ones_like(positive)) <= 0.1


def test_pieces_make_no_difference(monkeypatch):
    scores, positive, universe = ranking_task(0, 60, 7)
    whole = average_precision(scores, positive, universe)
    monkeypatch.setattr(locus.objective.exact, "NEGATIVES_AT_ONCE", 20)
    assert float(average_precision(scores, positive, universe)) == pytest.approx(float(whole), abs=1e-14)


def test_no_positive_gives_zero():
    scores, positive, universe = ranking_task(0, 10, 3)
    positive[:, 1] = False
    assert average_precision_per_landmark(scores, positive, universe)[1] == 0
    assert average_precision(scores, torch.zeros_like(positive), universe) == 0
    assert average_precision(scores[:0], positive[:0], universe[:0]) == 0
