"""Search against brute force, with and without the index for many rows."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from locus.landmarks import MapError, search
from locus.landmarks.search import Index
from tests.landmarks import places


def unit(values):
    return (values / np.linalg.norm(values, axis=-1, keepdims=True)).astype(np.float32)


def clustered(seed, count, width=16):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(40, width))
    return unit(centres[random.integers(0, 40, count)] + 0.3 * random.normal(size=(count, width)))


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 50), st.integers(0, 20), st.integers(1, 60))
def test_exact_search_is_a_sort_of_all(seed, rows, queries, k):
    random = np.random.default_rng(seed)
    table, asked = unit(random.normal(size=(rows, 8))), unit(random.normal(size=(queries, 8)))
    similarity, found = Index(table).search(asked, k)
    every = asked @ table.T
    best = np.sort(every, axis=1)[:, ::-1][:, :k]
    assert similarity.shape == found.shape == (queries, min(k, rows))
    assert np.allclose(similarity, best, atol=1e-6)
    assert np.allclose(np.take_along_axis(every, found, axis=1), similarity, atol=1e-6)


def test_queries_are_compared_in_tiles(monkeypatch):
    monkeypatch.setattr(search, "SCORES_AT_ONCE", 700)
    table, asked = clustered(0, 300), clustered(1, 50)
    assert np.array_equal(Index(table).search(asked)[1][:, 0], (asked @ table.T).argmax(axis=1))


@pytest.fixture
def many(monkeypatch):
    """Two thousand are many."""
    pytest.importorskip("faiss")
    monkeypatch.setattr(search, "EXACT", 1000)
    monkeypatch.setattr(search, "CELL", 40)


def test_the_index_finds_what_comparing_finds(many):
    table, asked = clustered(0, 4000), clustered(1, 200)
    index = Index(table)
    assert index._cells is not None
    similarity, found = index.search(asked, 5)
    every = asked @ table.T
    exact = np.argsort(-every, axis=1)[:, :5]
    recall = np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(found, exact, strict=True)])
    assert recall >= 0.95
    assert np.allclose(similarity, np.take_along_axis(every, found, axis=1), atol=1e-5)
    assert np.array_equal(Index(table).search(asked, 5)[1], found)


def test_the_index_answers_with_as_many_as_were_asked_for(many):
    """Though the cells it tries hold fewer: never a row that is not there."""
    table = clustered(0, 2000)
    similarity, found = Index(table).search(table[:3], 3000)
    assert found.shape == (3, 2000)
    assert np.array_equal(np.sort(found, axis=1), np.tile(np.arange(2000), (3, 1)))
    assert np.isfinite(similarity).all()
    assert Index(table).search(table[:0], 2)[1].shape == (0, 2)


def test_without_faiss_rows_are_compared_and_the_user_is_told(monkeypatch):
    monkeypatch.setattr(search, "EXACT", 100)
    monkeypatch.setattr(search, "find_spec", lambda name: None)
    table, asked = clustered(0, 300), clustered(1, 20)
    with pytest.warns(UserWarning, match=r"\[search\]"):
        index = Index(table)
    assert np.array_equal(index.search(asked)[1][:, 0], (asked @ table.T).argmax(axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Index(table[:100])


def test_maps_are_searched_by_scale(world):
    embedding = world.landmarks.embedding
    similarity, found = world.search(embedding[:7])
    assert found[:, 0].tolist() == list(range(7))
    assert np.allclose(similarity, 1, atol=1e-5)
    assert world.search(torch.from_numpy(embedding[:2]).double(), 3)[1].shape == (2, 3)
    assert world.search(embedding[:2], 10**6)[1].shape == (2, len(world))
    assert world.search(embedding[:0])[1].shape == (0, 1)


def test_what_cannot_be_searched_is_refused(world):
    with pytest.raises(MapError, match=f"rows of {places.DIMENSION}"):
        world.search(np.zeros((2, 5), np.float32))
    for scale in (-1, 1):
        with pytest.raises(MapError, match="scales 0 to 0"):
            world.search(np.zeros((2, places.DIMENSION), np.float32), 1, scale)
