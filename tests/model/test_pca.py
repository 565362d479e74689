"""Principal components against scikit-learn's."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from locus.errors import LocusError
from locus.model.pca import principal_components


def rows(seed, n=200, d=12):
    generator = np.random.default_rng(seed)
    return torch.from_numpy(generator.normal(size=(n, d)) @ generator.normal(size=(d, d)) + 3)


@given(st.integers(0, 10_000), st.integers(1, 12), st.booleans())
def test_they_are_scikit_learns_up_to_sign(seed, count, whiten):
    sample = rows(seed)
    referee = PCA(count, whiten=whiten, svd_solver="full").fit_transform(sample.numpy())
    ours = principal_components(sample, count, whiten=whiten)(sample).numpy()
    signs = np.sign((ours * referee).sum(axis=0))
    np.testing.assert_allclose(ours * signs, referee, atol=1e-6 * np.abs(referee).max())


def test_signs_do_not_depend_on_the_order_of_the_rows():
    sample = rows(0)
    forwards, backwards = principal_components(sample, 5), principal_components(sample.flip(0), 5)
    torch.testing.assert_close(forwards.directions, backwards.directions)


def test_single_precision_rows_give_single_precision_components():
    sample = rows(1)
    ours = principal_components(sample.float(), 3)
    assert ours.directions.dtype == torch.float32
    torch.testing.assert_close(ours.directions.double(), principal_components(sample, 3).directions, atol=1e-4, rtol=0)


def test_rows_that_are_all_the_same_have_components_of_zero():
    sample = torch.ones(20, 4)
    assert (principal_components(sample, 3, whiten=True)(sample) == 0).all()


@pytest.mark.parametrize(("n", "d", "count"), [(3, 8, 4), (8, 3, 4), (0, 4, 1)])
def test_more_components_than_rows_or_numbers_are_refused(n, d, count):
    with pytest.raises(LocusError, match=f"{n} rows of length {d} have no {count} principal components"):
        principal_components(torch.zeros(n, d), count)
