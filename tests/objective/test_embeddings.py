"""Mean embeddings, against a loop, and what they hold while they are computed."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize
from torch.utils._python_dispatch import TorchDispatchMode

from locus.objective import draw_landmarks, mean_embeddings

RADII = (0.3, 0.6)


def patches(n=80, m=12):
    generator = torch.Generator().manual_seed(0)
    positions = 2 * torch.rand(n, 3, generator=generator)
    positions[::7] = torch.nan
    environments = torch.arange(n) * 2 // n
    features = normalize(torch.randn(2, n, 8, generator=generator, dtype=torch.float64), dim=2)
    landmarks = torch.randint(n, (m,), generator=generator)
    return features, positions, environments, landmarks[landmarks % 7 > 0]


def looped(features, positions, environments, landmarks):
    """Eq. 2, the landmark's own patch and all."""
    means = []
    for radius, of_scale in zip(RADII, features, strict=True):
        for landmark in landmarks:
            near = (positions - positions[landmark]).norm(dim=1) <= radius
            near &= environments == environments[landmark]
            means.append(normalize(of_scale[near].mean(dim=0), dim=0))
    return torch.stack(means).unflatten(0, (2, -1))


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_embeddings_and_their_gradient_are_those_of_a_loop(monkeypatch, at_once):
    monkeypatch.setattr("locus.objective.embeddings.PAIRS_AT_ONCE", at_once)
    features, *rest = patches()
    leaves = [features.clone().requires_grad_() for _ in range(2)]
    got, wanted = mean_embeddings(leaves[0], *rest, RADII), looped(leaves[1], *rest)
    torch.testing.assert_close(got, wanted)
    weights = torch.randn(wanted.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (gradient,), (true,) = (
        torch.autograd.grad((value * weights).sum(), leaf) for value, leaf in zip((got, wanted), leaves, strict=True)
    )
    torch.testing.assert_close(gradient, true)


def test_a_landmark_alone_or_without_a_position_keeps_its_own_feature():
    features = normalize(torch.rand(1, 4, 4), dim=2)
    positions = torch.cat([torch.eye(3), torch.full((1, 3), torch.nan)])
    nothing, landmarks = torch.zeros(4, dtype=torch.int64), torch.tensor([2, 3, 0])
    torch.testing.assert_close(mean_embeddings(features, positions, nothing, landmarks, (0.1,)), features[:, landmarks])
    apart = torch.arange(4)
    torch.testing.assert_close(mean_embeddings(features, positions, apart, landmarks, (10.0,)), features[:, landmarks])


class Largest(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that any operation makes."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        tensors = [x for x in (made if isinstance(made, tuple | list) else [made]) if isinstance(x, torch.Tensor)]
        self.numbers = max([self.numbers, *(x.untyped_storage().nbytes() // x.element_size() for x in tensors)])
        return made


def test_mean_embeddings_hold_nothing_of_size_n_by_m():
    n, m = 4096, 2048
    features, positions, environments, _ = patches(n)
    leaf, landmarks = features.float().requires_grad_(), torch.arange(m)
    held = []
    keep = torch.autograd.graph.saved_tensors_hooks(lambda x: held.append(x.numel()) or x, lambda x: x)
    with Largest() as largest, keep:
        mean_embeddings(leaf, positions, environments, landmarks, RADII).sum().backward()
    assert largest.numbers <= n * m / 2
    assert sum(held) <= n * m / 2


def test_drawing_landmarks_holds_nothing_of_size_n_by_m():
    n, count = 4096, 2048
    positions = torch.rand(n, 3, generator=torch.Generator().manual_seed(0))
    zeros, frames = torch.zeros(n, dtype=torch.int64), torch.arange(n) % 7
    with Largest() as largest:
        drawn = draw_landmarks(positions, zeros, frames, 0.2, count, np.random.default_rng(0))
    assert len(drawn) == count
    assert largest.numbers <= n * count / 2
