"""What cannot be ranked is refused in one sentence, also where shapes are not checked as they are in these tests."""

import math

import pytest
import torch
from jaxtyping import config
from torch.nn.functional import normalize

from locus.errors import LocusError
from locus.objective import (
    RetrievalObjective,
    average_precision,
    average_precision_per_landmark,
    mean_embeddings,
    retrieval_sets,
    smooth_ap,
    vectorized_smooth_ap_reference,
)


@pytest.fixture(autouse=True)
def _shapes_unchecked():
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


SMOOTH = [vectorized_smooth_ap_reference, smooth_ap]
EXACT = [average_precision, average_precision_per_landmark]


def call(function, scores, positive, universe, tau=0.01):
    return function(scores, positive, universe, tau) if function in SMOOTH else function(scores, positive, universe)


@pytest.mark.parametrize("function", SMOOTH + EXACT)
def test_rankings_that_make_no_sense_are_refused(function):
    scores, everything = torch.rand(4, 3), torch.ones(4, 3, dtype=torch.bool)
    with pytest.raises(LocusError, match="two dimensions"):
        call(function, scores[0], everything[0], everything[0])
    with pytest.raises(LocusError, match=r"positive must have shape \(4, 3\)"):
        call(function, scores, everything[:2], everything)
    with pytest.raises(LocusError, match=r"universe must have shape \(4, 3\)"):
        call(function, scores, everything, everything.T)
    with pytest.raises(LocusError, match="boolean mask"):
        call(function, scores, everything.float(), everything)
    with pytest.raises(LocusError, match="floating point"):
        call(function, scores.long(), everything, everything)
    with pytest.raises(LocusError, match="12 positive pairs lie outside the universe"):
        call(function, scores, everything, ~everything)
    for bad in (math.nan, math.inf):
        wrong = scores.clone()
        wrong[1, 1] = bad
        with pytest.raises(LocusError, match="1 scores are NaN or infinite"):
            call(function, wrong, everything, everything)


@pytest.mark.parametrize("function", SMOOTH)
@pytest.mark.parametrize("tau", [0.0, -0.1, math.nan, math.inf])
def test_tau_must_be_positive_and_finite(function, tau):
    everything = torch.ones(4, 3, dtype=torch.bool)
    with pytest.raises(LocusError, match="tau must be"):
        function(torch.rand(4, 3), everything, everything, tau)
    with pytest.raises(LocusError, match="tau must be"):
        RetrievalObjective(0.2, 2.0, tau)


def test_scores_that_need_too_fine_a_grid_are_refused():
    everything = torch.ones(4, 3, dtype=torch.bool)
    with pytest.raises(LocusError, match="times tau"):
        smooth_ap(torch.rand(4, 3) * 1e6, everything, everything, 0.01)


def patches():
    zeros = torch.zeros(6, dtype=torch.long)
    return {
        "features": normalize(torch.randn(6, 4), dim=1),
        "positions": torch.rand(6, 3),
        "environments": zeros,
        "frames": zeros,
        "landmarks": torch.tensor([0, 5]),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": torch.randn(6, 4) * 3}, "unit length"),
        ({"features": torch.full((6, 4), math.nan)}, "6 of 6 features are not of unit length"),
        ({"features": normalize(torch.randn(5, 4), dim=1)}, "features must have shape"),
        ({"features": normalize(torch.randn(2, 6, 4), dim=2)}, "features must have shape"),
        ({"features": torch.ones(6, 1, dtype=torch.long)}, "floating point"),
        ({"positions": torch.rand(6, 2)}, r"positions must have shape \(n, 3\)"),
        ({"positions": torch.zeros(6, 3, dtype=torch.long)}, "in metres"),
        ({"environments": torch.zeros(5, dtype=torch.long)}, "environments must have shape"),
        ({"frames": torch.zeros(6)}, "frames must be integers"),
        ({"landmarks": torch.tensor([0, 6])}, "from 0 to 5, but range from 0 to 6"),
        ({"landmarks": torch.tensor([-1, 2])}, "from 0 to 5, but range from -1 to 2"),
        ({"landmarks": torch.tensor([0.0])}, "landmarks must be integers"),
        ({"landmarks": torch.tensor([[0]])}, "list of patch indices"),
        ({"embeddings": normalize(torch.randn(3, 4), dim=1)}, "embeddings must have shape"),
        ({"embeddings": normalize(torch.randn(2, 5), dim=1)}, "landmarks by channels"),
        ({"embeddings": torch.randn(2, 4) * 3}, "embeddings are not of unit length"),
    ],
)
def test_patches_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(LocusError, match=message):
        RetrievalObjective(0.2, 2.0, 0.01)(**(patches() | changes))


@pytest.mark.parametrize(
    ("radius", "kappa", "message"),
    [
        (0.0, 2.0, "radius"),
        (0.2, 0.9, "kappa"),
        (torch.ones(3), 2.0, "one for each landmark"),
        ((), 2.0, "tuple is empty"),
    ],
)
def test_impossible_radii_are_refused(radius, kappa, message):
    with pytest.raises(LocusError, match=message):
        RetrievalObjective(radius, kappa, 0.01)(**patches())


def test_sets_and_embeddings_check_their_landmarks():
    given = patches()
    features = given.pop("features")[None]
    given["landmarks"] = torch.tensor([17])
    with pytest.raises(LocusError, match="landmarks must be patch indices"):
        retrieval_sets(**given, radius=0.2, kappa=2.0)
    with pytest.raises(LocusError, match="landmarks must be patch indices"):
        mean_embeddings(features, given["positions"], given["environments"], given["landmarks"], (0.2,))
    with pytest.raises(LocusError, match=r"features must have shape \(2, 6, c\), one set for each radius"):
        mean_embeddings(features, given["positions"], given["environments"], torch.tensor([1, 2]), (0.2, 0.4))
