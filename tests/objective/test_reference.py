"""The referee itself, against the formula written out pair by pair and against closed forms."""

import math

import pytest
import torch

from locus.objective import vectorized_smooth_ap_reference


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def literal(scores, positive, universe, tau: float) -> float:
    """Eq. 5 without the pair itself, as one reads it."""
    pairs = [
        (float(s), bool(p)) for s, p, u in zip(scores.ravel(), positive.ravel(), universe.ravel(), strict=True) if u
    ]
    terms = []
    for q, (s_q, positive_q) in enumerate(pairs):
        if positive_q:
            others = [(sigmoid((s - s_q) / tau), p) for k, (s, p) in enumerate(pairs) if k != q]
            terms.append((1 + sum(a for a, p in others if p)) / (1 + sum(a for a, _ in others)))
    return sum(terms) / len(terms)


def ranking_task(seed: int, n: int, m: int):
    generator = torch.Generator().manual_seed(seed)
    scores = 0.1 * torch.randn(n, m, generator=generator, dtype=torch.float64)
    universe = torch.rand(n, m, generator=generator) < 0.7
    positive = universe & (torch.rand(n, m, generator=generator) < 0.3)
    return scores, positive, universe


@pytest.mark.parametrize("seed", range(5))
def test_reference_is_the_formula(seed):
    scores, positive, universe = ranking_task(seed, 9, 4)
    got = vectorized_smooth_ap_reference(scores, positive, universe, 0.03)
    assert float(got) == pytest.approx(literal(scores, positive, universe, 0.03), abs=1e-14)


def test_reference_has_the_gradient_of_its_value():
    scores, positive, universe = ranking_task(0, 6, 3)
    torch.autograd.gradcheck(
        lambda s: vectorized_smooth_ap_reference(s, positive, universe, 0.1), scores.requires_grad_(), atol=1e-7
    )


def test_pieces_make_no_difference():
    scores, positive, universe = ranking_task(1, 40, 5)
    results = []
    for max_bytes in (1, 2**14, 2**28):
        leaf = scores.clone().requires_grad_()
        value = vectorized_smooth_ap_reference(leaf, positive, universe, 0.02, max_bytes=max_bytes)
        value.backward()
        results.append((value.detach(), leaf.grad))
    for value, gradient in results[1:]:
        torch.testing.assert_close(value, results[0][0], rtol=1e-12, atol=0)
        torch.testing.assert_close(gradient, results[0][1], rtol=1e-10, atol=1e-14)


def test_one_positive_and_one_negative_in_closed_form():
    scores = torch.tensor([[0.3], [0.35]], dtype=torch.float64)
    positive = torch.tensor([[True], [False]])
    value = vectorized_smooth_ap_reference(scores, positive, torch.ones_like(positive), 0.05)
    assert float(value) == pytest.approx(1 / (1 + sigmoid(1.0)), abs=1e-14)
