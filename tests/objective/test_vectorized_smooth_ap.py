"""The objective against dense sets and the quadratic definition in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from locus.objective import (
    RetrievalObjective,
    mean_embeddings,
    retrieval_sets,
    smooth_ap,
    vectorized_smooth_ap_reference,
)


def make_batch(seed: int, n: int, m: int, c: int = 16, environments: int = 1, side: float = 3.0):
    """Patches whose features know, badly, where they are."""
    generator = torch.Generator().manual_seed(seed)
    positions = side * torch.rand(n, 3, generator=generator)
    waves = positions @ torch.randn(3, c, generator=generator)
    features = normalize(waves.sin() + 0.5 * torch.randn(n, c, generator=generator), dim=1)
    environment = torch.randint(environments, (n,), generator=generator) * 7 - 3
    frames = torch.randint(6, (n,), generator=generator) + 10**10  # hashes and time stamps are frame numbers too
    landmarks = torch.randint(n, (m,), generator=generator)
    return features, positions, environment, frames, landmarks


def dense(
    batch, radius, kappa, tau, exclude_same_frame=False, embeddings=None, function=vectorized_smooth_ap_reference
):
    features, positions, environments, frames, landmarks = batch
    positive, universe = retrieval_sets(positions, environments, frames, landmarks, radius, kappa, exclude_same_frame)
    embeddings = features[landmarks] if embeddings is None else embeddings
    return function(features @ embeddings.T, positive, universe, tau)


def as_one_list(scores, positive, universe, tau):
    """Eq. 5 is eq. 3 of a single list."""
    return smooth_ap(*(x.reshape(-1, 1) for x in (scores, positive, universe)), tau)[0]


def gradient_error(got, wanted, tau):
    """Relative to the norm, above a floor of 1e-7 of the steepest sigmoid's slope, 1 / 4 tau."""
    return float((got.double() - wanted).norm() / max(wanted.norm(), 1e-7 / (4 * tau)))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 300),
    st.integers(0, 70),
    st.integers(1, 3),
    st.floats(0.1, 1.5),
    st.sampled_from([1.0, 2.5, 50.0, math.inf]),
    st.floats(0.005, 0.1),
    st.booleans(),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_value_and_gradient_are_those_of_the_definition(
    seed, n, m, environments, radius, kappa, tau, exclude_same_frame, dtype
):
    features, *rest = make_batch(seed, n, m, environments=environments)
    leaf = features.to(dtype).requires_grad_()
    true_leaf = features.to(dtype).double().requires_grad_()
    value = RetrievalObjective(radius, kappa, tau, exclude_same_frame)(leaf, *rest)
    wanted = dense((true_leaf, *rest), radius, kappa, tau, exclude_same_frame)
    assert value.item() == pytest.approx(wanted.item(), abs=1e-5)
    (gradient,) = torch.autograd.grad(value, leaf)
    assert gradient_error(gradient, torch.autograd.grad(wanted, true_leaf)[0], tau) <= 1e-4


@pytest.mark.parametrize("kappa", [2.5, 8.0, math.inf])
def test_many_tiles_give_what_one_would(kappa):
    features, *rest = make_batch(0, 4000, 400, environments=2, side=8.0)
    leaf, true_leaf = features.clone().requires_grad_(), features.double().requires_grad_()
    value = RetrievalObjective(0.4, kappa, 0.01)(leaf, *rest)
    wanted = dense((true_leaf, *rest), 0.4, kappa, 0.01, function=as_one_list)
    assert value.item() == pytest.approx(wanted.item(), abs=1e-6)
    (gradient,) = torch.autograd.grad(value, leaf)
    assert gradient_error(gradient, torch.autograd.grad(wanted, true_leaf)[0], 0.01) <= 1e-4


@pytest.mark.parametrize("kept", [0, 40_000])
def test_scoring_again_gives_what_keeping_does(monkeypatch, kept):
    features, *rest = make_batch(0, 1500, 100, environments=2)
    results = []
    for _ in range(2):
        leaf = features.clone().requires_grad_()
        values = RetrievalObjective((0.4, 1.0), 2.5, 0.01)(leaf, *rest)
        results.append((values.detach(), *torch.autograd.grad(values.sum(), leaf)))
        for name, pairs in (("PAIRS_KEPT", kept), ("PAIRS_SUMMED", 20_000), ("PAIRS_AT_ONCE", 10_000)):
            monkeypatch.setattr(f"locus.objective.vectorized_smooth_ap.{name}", pairs)
    torch.testing.assert_close(results[0][0], results[1][0], rtol=0, atol=1e-6)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-4, atol=1e-7)


def test_given_embeddings_have_their_own_gradient():
    features, positions, environments, frames, landmarks = make_batch(1, 200, 20)
    embeddings = mean_embeddings(features[None], positions, environments, landmarks, (0.5,))[0]
    leaves = [x.double().requires_grad_() for x in (features, embeddings)]
    value = RetrievalObjective(0.5, 4.0, 0.02)(leaves[0], positions, environments, frames, landmarks, leaves[1])
    wanted = dense((leaves[0], positions, environments, frames, landmarks), 0.5, 4.0, 0.02, embeddings=leaves[1])
    assert value.item() == pytest.approx(wanted.item(), abs=1e-5)
    for got, true in zip(torch.autograd.grad(value, leaves), torch.autograd.grad(wanted, leaves), strict=True):
        assert gradient_error(got, true, 0.02) <= 1e-4


def test_several_radii_give_one_value_each():
    features, *rest = make_batch(2, 300, 40, side=4.0)
    of_each_landmark = 0.2 + torch.rand(40)
    radii = (0.3, of_each_landmark, 1.5)
    leaf = features.clone().requires_grad_()
    values = RetrievalObjective(radii, 2.5, 0.01)(leaf, *rest)
    apart = [RetrievalObjective(radius, 2.5, 0.01)(leaf, *rest) for radius in radii]
    torch.testing.assert_close(values, torch.stack(apart), rtol=0, atol=1e-6)
    weights = torch.tensor([1.0, -2.0, 0.5])
    (together,) = torch.autograd.grad(values @ weights, leaf)
    (one_by_one,) = torch.autograd.grad(torch.stack(apart) @ weights, leaf)
    torch.testing.assert_close(together, one_by_one, rtol=1e-4, atol=1e-6)


def test_every_radius_may_have_its_own_features():
    features, *rest = make_batch(3, 200, 30)
    others = make_batch(4, 200, 30)[0]
    values = RetrievalObjective((0.3, 0.9), 3.0, 0.01)(torch.stack([features, others]), *rest)
    apart = [RetrievalObjective(r, 3.0, 0.01)(f, *rest) for r, f in ((0.3, features), (0.9, others))]
    torch.testing.assert_close(values, torch.stack(apart), rtol=0, atol=1e-6)


def test_patches_without_a_position_make_no_difference():
    features, positions, environments, frames, landmarks = make_batch(5, 200, 20)
    landmarks = landmarks % 150
    without = [x[:150] for x in (features, positions, environments, frames)]
    positions[150:, 2] = torch.tensor([math.nan, math.inf]).repeat(25)
    leaf = features.clone().requires_grad_()
    value = RetrievalObjective(0.5, 3.0, 0.01)(leaf, positions, environments, frames, landmarks)
    wanted = RetrievalObjective(0.5, 3.0, 0.01)(*without, landmarks)
    assert value.item() == pytest.approx(wanted.item(), abs=1e-6)
    assert not torch.autograd.grad(value, leaf)[0][150:].any()


@pytest.mark.parametrize("case", ["no landmarks", "no positives", "nothing valid", "no patches"])
def test_nothing_to_rank_gives_zero_and_no_gradient(case):
    features, positions, environments, frames, landmarks = make_batch(6, 50, 10)
    if case == "no landmarks":
        landmarks = landmarks[:0]
    if case == "no positives":
        environments = torch.arange(50)
    if case == "nothing valid":
        positions = positions * math.nan
    if case == "no patches":
        features, positions, environments, frames = (x[:0] for x in (features, positions, environments, frames))
        landmarks = landmarks[:0]
    leaf = features.clone().requires_grad_()
    value = RetrievalObjective(0.2, 3.0, 0.01)(leaf, positions, environments, frames, landmarks)
    assert value == 0
    assert not torch.autograd.grad(value, leaf)[0].any()


def test_autocast_does_not_coarsen_scores_or_gradients():
    features, *rest = make_batch(7, 300, 30)
    results = []
    for enabled in (False, True):
        leaf = features.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            value = RetrievalObjective(0.5, 4.0, 0.01)(leaf, *rest)
            results.append((value.detach(), *torch.autograd.grad(value, leaf)))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_whole_numbers_and_short_integers_are_accepted():
    features, positions, environments, _, landmarks = make_batch(10, 100, 10)
    frames = torch.arange(100) % 5
    short = [x.to(torch.int32) for x in (environments, frames, landmarks)]
    wanted = RetrievalObjective(1.0, 2.0, 0.02, True)(features, positions, environments, frames, landmarks)
    assert RetrievalObjective(1, 2, 0.02, True)(features, positions, *short) == wanted


def test_half_precision_features_are_accepted():
    features, *rest = make_batch(8, 300, 30)
    leaf = features.bfloat16().requires_grad_()
    value = RetrievalObjective(0.5, 4.0, 0.02)(leaf, *rest)
    assert value.item() == pytest.approx(RetrievalObjective(0.5, 4.0, 0.02)(features, *rest).item(), abs=0.02)
    assert torch.autograd.grad(value, leaf)[0].dtype == torch.bfloat16


def test_the_value_is_that_of_the_right_sets_far_from_the_origin():
    features, positions, environments, frames, landmarks = make_batch(9, 300, 30)
    positions = (positions * 1024).round() / 1024
    objective = RetrievalObjective(0.5, 4.0, 0.02)
    here = objective(features, positions, environments, frames, landmarks)
    there = objective(features, positions + torch.tensor([4000.0, 3000, -20]), environments, frames, landmarks)
    assert there.item() == pytest.approx(here.item(), abs=1e-6)
