"""Fused descriptors: sampling against SciPy, dot products against the sum of cosines."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from locus.errors import LocusError
from locus.keypoints import Keypoints, fuse, sample

SEEDS = st.integers(0, 2**32 - 1)


def unit(rng, *shape):
    return F.normalize(torch.from_numpy(rng.normal(size=shape)).float(), dim=-1)


def some(rng, count, dimension, size):
    return Keypoints(rng.uniform(0, size, (count, 2)), np.linspace(1, 0, count), unit(rng, count, dimension), size)


@given(SEEDS, st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 700), st.integers(1, 700))
def test_sampling_is_what_scipy_says(seed, scales, rows, columns, width, height):
    rng = np.random.default_rng(seed)
    features, pixels = unit(rng, scales, rows, columns, 3), rng.uniform(0, (width, height), (20, 2))
    at = [pixels[:, 1] * rows / height - 0.5, pixels[:, 0] * columns / width - 0.5]  # patches have their centres at .5
    expected = np.array(
        [[map_coordinates(one[..., c].double().numpy(), at, order=1, mode="nearest") for c in range(3)]
         for one in features]
    ).transpose(0, 2, 1)  # fmt: skip
    length = np.linalg.norm(expected, axis=-1, keepdims=True)
    clear = length[..., 0] > 1e-2  # opposite features cancel to noise
    np.testing.assert_allclose(
        sample(features, pixels, (width, height)).numpy()[clear], (expected / length)[clear], atol=1e-3
    )


def test_at_the_centre_of_a_patch_the_sample_is_its_feature():
    features = unit(np.random.default_rng(0), 2, 3, 4, 5)
    torch.testing.assert_close(sample(features, np.array([[35.0, 15.0]]), (40, 30))[:, 0], features[:, 1, 3])


@given(SEEDS, st.integers(1, 3), st.lists(st.floats(0, 10), min_size=4, max_size=4))
def test_dot_products_are_weighted_means_of_cosines(seed, scales, weights):
    weights = [weights[0] + 0.1, *weights[1 : 1 + scales]]
    rng = np.random.default_rng(seed)
    a, b = some(rng, 6, 8, (64, 48)), some(rng, 7, 8, (80, 60))
    maps = unit(rng, scales, 3, 4, 5), unit(rng, scales, 2, 6, 5)
    parts = [
        [keypoints.descriptors, *sample(each, keypoints.pixels, keypoints.size)]
        for keypoints, each in zip((a, b), maps, strict=True)
    ]
    expected = sum(w * one @ two.T for w, one, two in zip(weights, *parts, strict=True)) / sum(weights)
    fused = [fuse(keypoints, each, weights) for keypoints, each in zip((a, b), maps, strict=True)]
    torch.testing.assert_close(fused[0].descriptors @ fused[1].descriptors.T, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(fused[0].descriptors.norm(dim=1), torch.ones(6), atol=1e-5, rtol=1e-5)
    assert np.array_equal(fused[0].pixels, a.pixels)


def test_no_keypoints_fuse_to_none():
    none = some(np.random.default_rng(0), 0, 8, (64, 48))
    assert fuse(none, torch.ones(2, 3, 4, 5), [1, 2, 3]).descriptors.shape == (0, 18)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 1.0, 1.0], [-1.0, 2.0], [0.0, 0.0]])
def test_weights_that_make_no_sense_are_refused(weights):
    keypoints = some(np.random.default_rng(0), 2, 8, (64, 48))
    with pytest.raises(LocusError, match="a weight for the keypoints and one for each of 1 scales"):
        fuse(keypoints, torch.ones(1, 3, 4, 5), weights)
