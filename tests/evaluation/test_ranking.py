"""The exact ranking against scikit-learn, over all pairs and landmark by landmark."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve

from locus.evaluation import ranking
from locus.evaluation.ranking import Patches, Ranking, rank
from locus.objective import retrieval_sets


def batch(seed: int, patches: int = 90, landmarks: int = 25) -> tuple[torch.Tensor, Patches]:
    random = torch.Generator().manual_seed(seed)
    positions = torch.rand(patches, 3, generator=random)
    positions[::17] = torch.nan
    known = positions.isfinite().all(dim=1).nonzero()[:, 0]
    chosen = known[torch.randperm(len(known), generator=random)[:landmarks]]
    frames = torch.arange(patches) // 15
    features = F.normalize(torch.randn(patches, 8, generator=random, dtype=torch.float64), dim=-1)
    return features, Patches(positions, torch.zeros(patches, dtype=torch.int64), frames, chosen)


def untied(truth: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Two landmarks score each other's patch alike; scikit-learn is given an order: negatives first, then singly."""
    order = np.lexsort((~truth, score.round(9)))
    places = np.empty(len(score))
    places[order] = np.arange(len(score))
    return places


@given(st.integers(0, 10_000), st.sampled_from([1.0, 2.5, 50.0]), st.sampled_from([64, 400, 2**22]))
@settings(max_examples=12)
def test_ap_is_that_of_scikit_learn_however_the_pairs_are_cut_up(seed, kappa, at_once):
    features, patches = batch(seed)
    before, ranking.PAIRS_AT_ONCE = ranking.PAIRS_AT_ONCE, at_once
    try:
        found = rank(features, patches, 0.3, kappa)
    finally:
        ranking.PAIRS_AT_ONCE = before
    scores = features @ features[patches.landmarks].T
    for view, same_frame_left_out in (("all pairs", False), ("cross-view", True)):
        positive, universe = retrieval_sets(*vars(patches).values(), 0.3, kappa, exclude_same_frame=same_frame_left_out)
        truth = positive[universe].numpy()
        score = untied(truth, scores[universe].numpy())
        assert found[view].average_precision == pytest.approx(average_precision_score(truth, score), abs=1e-6)
        assert found[view].chance == pytest.approx(truth.mean())
        for column, value in enumerate(found[view].per_landmark):
            if (own := positive[:, column]).any():
                listed = universe[:, column]
                expected = average_precision_score(own[listed].numpy(), scores[:, column][listed].numpy())
                assert value == pytest.approx(expected, abs=1e-6)


def test_the_curve_is_scikit_learns_at_every_hundredth_of_recall():
    features, patches = batch(3, patches=300, landmarks=60)
    found = rank(features, patches, 0.3, 50.0)["all pairs"]
    positive, universe = retrieval_sets(*vars(patches).values(), 0.3, 50.0)
    truth = positive[universe].numpy()
    scores = untied(truth, (features @ features[patches.landmarks].T)[universe].numpy())
    precision, recall, _ = precision_recall_curve(truth, scores)
    for step, value in enumerate(found.curve(), start=1):
        # The first point, from the best score down, at which recall has been reached.
        reached = np.flatnonzero(recall >= step / 100 - 1e-12)[-1]
        assert value == pytest.approx(precision[reached], abs=1e-6)


def test_ties_count_against_the_method():
    assert Ranking(np.array([3, 3]), 3, np.zeros(0)).average_precision == pytest.approx((1 / 4 + 2 / 5) / 2)
    features, patches = batch(0)
    same = torch.zeros_like(features)
    same[:, 0] = 1
    found = rank(same, patches, 0.3, 50.0)["all pairs"]
    count, total = len(found.above), len(found.above) + found.negatives
    ranks = np.arange(1, count + 1)
    assert found.average_precision == pytest.approx((ranks / (ranks + total - count)).mean())


def test_a_list_without_positives_is_worth_nothing():
    empty = Ranking(np.zeros(0, np.int64), 10, np.zeros(0))
    assert empty.average_precision == 0
    assert empty.curve().tolist() == [0.0] * 100
