"""The linear-time form against the quadratic definition in float64, the closed form and the limit."""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from locus.objective import average_precision, smooth_ap, vectorized_smooth_ap_reference


def as_one_list(scores, positive, universe, tau):
    """Eq. 5 is eq. 3 of a single list."""
    return smooth_ap(*(x.reshape(-1, 1) for x in (scores, positive, universe)), tau)[0]


KINDS = ["spread", "narrow", "equal", "poles", "beyond", "duplicated", "far apart"]
MASKS = ["few", "half", "all positive", "one positive", "empty columns", "none positive"]
CASES = (  # n, m, tau, kind, mask, seed
    st.integers(1, 60),
    st.integers(1, 9),
    st.floats(0.005, 0.1),
    st.sampled_from(KINDS),
    st.sampled_from(MASKS),
    st.integers(0, 10**6),
)


def draw_scores(kind: str, n: int, m: int, generator: torch.Generator) -> torch.Tensor:
    uniform = 2 * torch.rand(n, m, generator=generator, dtype=torch.float64) - 1
    return {
        "spread": uniform,
        "narrow": 0.02 * uniform + 0.3,
        "equal": torch.full_like(uniform, 0.123),
        "poles": uniform.sign(),
        "beyond": uniform.sign() * (1 + 3e-7 * uniform.abs()),
        "duplicated": (uniform * 10).round() / 10,
        "far apart": 0.9 * uniform.sign() + 0.01 * uniform,
    }[kind]


def draw_masks(kind: str, n: int, m: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    universe = torch.rand(n, m, generator=generator) < 0.8
    chance = torch.rand(n, m, generator=generator)
    if kind == "empty columns":
        universe[:, ::2] = False
    positive = universe & (chance < (0.5 if kind == "half" else 0.05))
    if kind == "all positive":
        positive = universe.clone()
    if kind in ("one positive", "none positive"):
        positive = torch.zeros_like(universe)
    if kind == "one positive":
        universe[n // 2, m // 2] = positive[n // 2, m // 2] = True
    return positive, universe


def value_and_gradient(function, scores, positive, universe, tau):
    leaf = scores.clone().requires_grad_()
    value = function(leaf, positive, universe, tau)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach().double(), gradient.double()


def assert_accurate(got, wanted, tau):
    """Loss to 1e-5; gradient to 1e-4 of its norm, above a floor of 1e-7 of the steepest sigmoid's slope, 1 / 4 tau."""
    (value, gradient), (true_value, true_gradient) = got, wanted
    assert (value - true_value).abs().max() <= 1e-5
    assert gradient.isfinite().all()
    assert (gradient - true_gradient).norm() <= 1e-4 * max(true_gradient.norm(), 1e-7 / (4 * tau))


@settings(max_examples=300, deadline=None)
@given(*CASES, st.sampled_from([torch.float32, torch.float64]))
def test_value_and_gradient_are_those_of_the_definition(n, m, tau, kind, mask, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    scores = draw_scores(kind, n, m, generator).to(dtype)
    positive, universe = draw_masks(mask, n, m, generator)
    got = value_and_gradient(as_one_list, scores, positive, universe, tau)
    wanted = value_and_gradient(vectorized_smooth_ap_reference, scores.double(), positive, universe, tau)
    assert_accurate(got, wanted, tau)
    assert not got[1][~universe].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tau", [0.005, 0.01, 0.1])
def test_a_large_batch_is_as_accurate(tau, dtype):
    generator = torch.Generator().manual_seed(0)
    positive, universe = draw_masks("few", 1001, 33, generator)
    scores = (0.2 * torch.randn(1001, 33, generator=generator) + 0.1 * positive).clamp(-1, 1).to(dtype)
    got = value_and_gradient(as_one_list, scores, positive, universe, tau)
    wanted = value_and_gradient(vectorized_smooth_ap_reference, scores.double(), positive, universe, tau)
    assert_accurate(got, wanted, tau)


@settings(max_examples=60, deadline=None)
@given(st.floats(-20, 20), st.floats(0.005, 0.1))
def test_two_pairs_in_closed_form_even_where_the_sigmoid_is_flat(gap, tau):
    scores = torch.tensor([[0.1], [0.1 + gap * tau]], dtype=torch.float64, requires_grad=True)
    positive = torch.tensor([[True], [False]])
    value = as_one_list(scores, positive, torch.ones_like(positive), tau)
    above = 1 / (1 + np.exp(-gap))
    slope = above * (1 - above) / tau / (1 + above) ** 2
    assert value.item() == pytest.approx(1 / (1 + above), abs=1e-5)
    (gradient,) = torch.autograd.grad(value, scores)
    np.testing.assert_allclose(gradient.numpy().ravel(), [slope, -slope], rtol=1e-4)


@settings(max_examples=40, deadline=None)
@given(*CASES)
def test_smooth_ap_is_the_definition_on_every_column(n, m, tau, kind, mask, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = draw_scores(kind, n, m, generator)
    positive, universe = draw_masks(mask, n, m, generator)

    def column_by_column(scores, positive, universe, tau):
        columns = [x.T[:, :, None] for x in (scores, positive, universe)]
        return torch.stack([vectorized_smooth_ap_reference(*c, tau) for c in zip(*columns, strict=True)])

    got = value_and_gradient(smooth_ap, scores, positive, universe, tau)
    assert_accurate(got, value_and_gradient(column_by_column, scores, positive, universe, tau), tau)


def test_many_columns_are_worked_through_in_blocks():
    generator = torch.Generator().manual_seed(0)
    positive, universe = draw_masks("half", 8, 300, generator)
    scores = draw_scores("spread", 8, 300, generator)
    got = smooth_ap(scores, positive, universe, 0.005)
    assert got.shape == (300,)
    torch.testing.assert_close(
        got[-3:], smooth_ap(scores[:, -3:], positive[:, -3:], universe[:, -3:], 0.005), rtol=0, atol=1e-6
    )


def test_small_tau_approaches_the_exact_ap_of_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    positive, universe = draw_masks("few", 100, 5, generator)
    scores = torch.randperm(500, generator=generator).reshape(100, 5).double() / 250 - 1  # 0.004 apart
    exact = average_precision_score(positive[universe].numpy(), scores[universe].numpy())
    errors = [abs(float(as_one_list(scores, positive, universe, tau)) - exact) for tau in (1e-1, 1e-2, 2e-4)]
    assert errors[2] < 1e-6
    assert errors[2] < errors[1] < errors[0]
    assert float(average_precision(scores, positive, universe)) == pytest.approx(exact, abs=1e-12)


def eq_3_as_printed(scores, positive, universe, tau):
    """The sums of a landmark's pairs over the pairs of all landmarks."""
    values = []
    for j in range(scores.shape[1]):
        shares = []
        for i in positive[:, j].nonzero().ravel():
            above = torch.sigmoid((scores - scores[i, j]) / tau)
            above[i, j] = 0
            shares.append((1 + above[positive].sum()) / (1 + above[universe].sum()))
        values.append(float(torch.stack(shares).mean()))
    return np.array(values)


def test_a_landmark_ranks_its_own_list_and_not_all_pairs_as_eq_3_is_printed():
    generator = torch.Generator().manual_seed(0)
    positive, universe = draw_masks("half", 60, 4, generator)
    scores = torch.randperm(240, generator=generator).reshape(60, 4).double() / 120 - 1
    scores[:, 0] *= 0.1  # ranked as well as before, but not among the others' pairs
    columns = [(positive[universe[:, j], j], scores[universe[:, j], j]) for j in range(4)]
    wanted = [average_precision_score(*column) for column in columns]
    np.testing.assert_allclose(smooth_ap(scores, positive, universe, 2e-5), wanted, atol=1e-5)
    printed = eq_3_as_printed(scores, positive, universe, 2e-5)
    assert np.abs(printed - wanted).max() > 0.03
    alone = eq_3_as_printed(*(x[:, :1] for x in (scores, positive, universe)), 2e-5)
    assert alone[0] == pytest.approx(wanted[0], abs=1e-5)
    assert abs(printed[0] - alone[0]) > 0.03  # by which others were drawn
    said = " ".join(sys.modules[smooth_ap.__module__].__doc__.split())
    assert "prints the two sums of eq. 3 over the pairs kl of *all* landmarks" in said
    assert "Here they run over the patches k of landmark j alone. Only then" in said


def test_no_positive_gives_zero_and_no_gradient():
    scores = torch.rand(5, 4, requires_grad=True)
    nothing = torch.zeros(5, 4, dtype=torch.bool)
    for universe in (nothing, ~nothing):
        for function in (smooth_ap, vectorized_smooth_ap_reference):
            value = function(scores, nothing, universe, 0.01).sum()
            assert value == 0
            assert not torch.autograd.grad(value, scores)[0].any()


def test_all_positive_gives_one_and_no_gradient():
    scores = torch.rand(50, 4, requires_grad=True)
    everything = torch.ones(50, 4, dtype=torch.bool)
    value = as_one_list(scores, everything, everything, 0.01)
    assert value == 1
    assert not torch.autograd.grad(value, scores)[0].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_scores_are_ranked_in_float32(dtype):
    generator = torch.Generator().manual_seed(0)
    positive, universe = draw_masks("half", 30, 4, generator)
    scores = draw_scores("spread", 30, 4, generator).to(dtype).requires_grad_()
    value = as_one_list(scores, positive, universe, 0.05)
    wanted = as_one_list(scores.detach().float(), positive, universe, 0.05)
    assert value.dtype == dtype
    assert value.item() == pytest.approx(wanted.item(), abs=4e-3)
    assert torch.autograd.grad(value, scores)[0].dtype == dtype


def test_any_range_of_scores_will_do():
    generator = torch.Generator().manual_seed(0)
    positive, universe = draw_masks("half", 40, 4, generator)
    scores = draw_scores("spread", 40, 4, generator)
    moved = as_one_list(50 * scores + 1000, positive, universe, 5.0)
    assert float(moved) == pytest.approx(float(as_one_list(scores, positive, universe, 0.1)), abs=1e-6)
