"""Exact AP against scikit-learn without ties, and against every order of the ties with them."""

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve
from torch.nn.functional import normalize

from locus.objective import (
    ExactRanking,
    RankedPairs,
    average_precision,
    average_precision_per_landmark,
    exact,
    retrieval_sets,
)


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
    monkeypatch.setattr(exact, "PAIRS_AT_ONCE", 20)
    assert float(average_precision(scores, positive, universe)) == pytest.approx(float(whole), abs=1e-14)


def test_no_positive_gives_zero():
    scores, positive, universe = ranking_task(0, 10, 3)
    positive[:, 1] = False
    assert average_precision_per_landmark(scores, positive, universe)[1] == 0
    assert average_precision(scores, torch.zeros_like(positive), universe) == 0
    assert average_precision(scores[:0], positive[:0], universe[:0]) == 0


def batch(seed: int, patches: int = 90, landmarks: int = 25):
    """Features, positions, environments, frames and landmarks; some patches have no position."""
    random = torch.Generator().manual_seed(seed)
    positions = torch.rand(patches, 3, generator=random)
    positions[::17] = torch.nan
    known = positions.isfinite().all(dim=1).nonzero()[:, 0]
    chosen = known[torch.randperm(len(known), generator=random)[:landmarks]]
    features = normalize(torch.randn(patches, 8, generator=random, dtype=torch.float64), dim=-1)
    return features, positions, torch.zeros(patches, dtype=torch.int64), torch.arange(patches) // 15, chosen


def untied(truth: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Two landmarks score each other's patch the same; scikit-learn is given an order: negatives first, then singly."""
    order = np.lexsort((~truth, score.round(9)))
    places = np.empty(len(score))
    places[order] = np.arange(len(score))
    return places


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**4), st.sampled_from([1.0, 2.5, 50.0]), st.sampled_from([64, 400, 2**22]), st.booleans())
def test_from_features_it_is_scikit_learns_however_the_pairs_are_cut_up(seed, kappa, at_once, exclude_same_frame):
    features, *geometry = batch(seed)
    rank = ExactRanking(0.3, kappa, exclude_same_frame)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact, "PAIRS_AT_ONCE", at_once)
        found, per_landmark = rank(features, *geometry), rank.per_landmark(features, *geometry)
    positive, universe = retrieval_sets(*geometry, 0.3, kappa, exclude_same_frame)
    scores = features @ features[geometry[-1]].T
    truth = positive[universe].numpy()
    wanted = average_precision_score(truth, untied(truth, scores[universe].numpy())) if truth.any() else 0
    assert float(found.average_precision) == pytest.approx(wanted, abs=1e-6)
    assert found.chance == pytest.approx(truth.mean())
    for column, value in enumerate(per_landmark.tolist()):
        own, listed = positive[:, column], universe[:, column]
        wanted = average_precision_score(own[listed].numpy(), scores[:, column][listed].numpy()) if own.any() else 0
        assert value == pytest.approx(wanted, abs=1e-6)


def test_the_curve_is_scikit_learns_at_every_hundredth_of_recall():
    features, *geometry = batch(3, patches=300, landmarks=60)
    found = ExactRanking(0.3, 50.0)(features, *geometry)
    positive, universe = retrieval_sets(*geometry, 0.3, 50.0)
    truth = positive[universe].numpy()
    scores = untied(truth, (features @ features[geometry[-1]].T)[universe].numpy())
    precision, recall, _ = precision_recall_curve(truth, scores)
    for step, value in enumerate(found.curve().tolist(), start=1):
        # The first point, from the best score down, at which recall has been reached.
        reached = np.flatnonzero(recall >= step / 100 - 1e-12)[-1]
        assert value == pytest.approx(precision[reached], abs=1e-6)


def test_it_holds_far_less_than_all_pairs(monkeypatch):
    """Blocks of a landmark at a time: no tensor that `retrieval_sets` makes is larger than a block."""
    monkeypatch.setattr(exact, "PAIRS_AT_ONCE", 90)
    sizes = []

    def watched(*arguments):
        sets = retrieval_sets(*arguments)
        sizes.append(sets[0].numel())
        return sets

    monkeypatch.setattr(exact, "retrieval_sets", watched)
    ExactRanking(0.3, 50.0)(*batch(0))
    assert sizes == [90] * 50  # both passes


def test_a_list_without_positives_is_worth_nothing():
    empty = RankedPairs(torch.zeros(0, dtype=torch.int64), 10)
    assert empty.average_precision == 0
    assert empty.curve().tolist() == [0.0] * 100
