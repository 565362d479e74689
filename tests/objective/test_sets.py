"""Who is positive and who is ranked, against brute force in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from locus.objective import ObjectiveError, retrieval_sets


def scattered(seed: int, n: int = 200, m: int = 30):
    generator = torch.Generator().manual_seed(seed)
    positions = 4 * torch.rand(n, 3, generator=generator, dtype=torch.float64)
    environments = torch.randint(3, (n,), generator=generator)
    frames = torch.randint(8, (n,), generator=generator)
    landmarks = torch.randint(n, (m,), generator=generator)
    return positions, environments, frames, landmarks


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 3), st.floats(1, 5), st.booleans())
def test_sets_are_those_of_the_definition(seed, radius, kappa, exclude_same_frame):
    positions, environments, frames, landmarks = scattered(seed)
    positive, universe = retrieval_sets(positions, environments, frames, landmarks, radius, kappa, exclude_same_frame)
    distance = torch.from_numpy(cdist(positions, positions[landmarks]))
    allowed = environments[:, None] == environments[landmarks]
    allowed &= torch.arange(len(positions))[:, None] != landmarks
    if exclude_same_frame:
        allowed &= frames[:, None] != frames[landmarks]
    assert torch.equal(positive, allowed & (distance <= radius))
    assert torch.equal(universe, allowed & (distance <= kappa * radius))


def test_every_landmark_has_its_own_radius():
    positions = torch.tensor([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]])
    zeros = torch.zeros(3, dtype=torch.long)
    positive, universe = retrieval_sets(
        positions, zeros, zeros, torch.tensor([0, 0]), torch.tensor([1.0, 3.0]), kappa=math.inf
    )
    assert positive.tolist() == [[False, False], [True, True], [False, True]]
    assert universe.tolist() == [[False, False], [True, True], [True, True]]


def test_only_the_one_pair_of_a_landmark_and_its_own_patch_leaves_the_universe():
    positions, zeros = torch.zeros(3, 3), torch.zeros(3, dtype=torch.long)
    positive, universe = retrieval_sets(positions, zeros, zeros, torch.tensor([0, 2]), 0.2, 2.0)
    assert universe.tolist() == [[False, True], [True, True], [True, False]]
    assert torch.equal(positive, universe)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("kappa", [2.0, math.inf])
def test_a_patch_without_a_valid_position_is_in_no_set(bad, kappa):
    positions, environments, frames, landmarks = scattered(0)
    positions[landmarks[0], 1] = bad
    positive, universe = retrieval_sets(positions, environments, frames, landmarks, 1.0, kappa)
    assert not universe[landmarks[0]].any()
    assert not universe[:, 0].any()
    assert not (positive & ~universe).any()


def test_float32_far_from_the_origin_keeps_the_sets():
    positions, environments, frames, landmarks = scattered(1)
    far = (positions * 1024).round() / 1024 + torch.tensor([4000.0, -3000.0, 100.0])  # exact in float32
    wanted = retrieval_sets(far, environments, frames, landmarks, 0.7, 2.5)
    got = retrieval_sets(far.float(), environments, frames, landmarks, 0.7, 2.5)
    assert all(torch.equal(a, b) for a, b in zip(wanted, got, strict=True))


@pytest.mark.parametrize(("radius", "kappa"), [(0.0, 2.0), (-1.0, 2.0), (math.nan, 2.0), (0.2, 0.5), (0.2, math.nan)])
def test_impossible_radii_are_refused(radius, kappa):
    with pytest.raises(ObjectiveError, match=r"radius|kappa"):
        retrieval_sets(*scattered(0), radius, kappa)
