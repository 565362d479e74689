"""Which patches become landmarks: candidates, their scores against the quadratic definition, and their spread."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from locus.landmarks import selection
from locus.landmarks.selection import candidates, landmark_scores, spread
from locus.objective import smooth_ap, vectorized_smooth_ap_reference

TAU = 0.01


def scattered(seed, count, size=1.0):
    return (np.random.default_rng(seed).uniform(-size, size, (count, 3))).astype(np.float32)


@given(st.integers(0, 2**31), st.integers(0, 200), st.floats(0.1, 3))
def test_there_is_one_candidate_in_every_cell_that_has_a_point(seed, count, radius):
    points = scattered(seed, count)
    chosen = candidates(points, radius, 10**6)
    size = radius / 2
    cells = np.floor(points.astype(np.float64) / size).astype(int)
    assert {tuple(cell) for cell in cells[chosen]} == {tuple(cell) for cell in cells}
    assert len(chosen) == len({tuple(cell) for cell in cells})
    off = np.linalg.norm(points - (cells + 0.5) * size, axis=1)
    for index in chosen:
        assert off[index] <= off[(cells == cells[index]).all(axis=1)].min() + 1e-12


@given(st.integers(0, 2**31), st.integers(1, 100))
def test_candidates_do_not_depend_on_the_order_of_the_patches(seed, most):
    points = scattered(seed, 150)
    order = np.random.default_rng(seed + 1).permutation(150)
    chosen = candidates(points, 0.5, most)
    assert len(chosen) <= most
    assert set(order[candidates(points[order], 0.5, most)]) == set(chosen)


def test_cells_that_are_left_out_are_left_out_all_over():
    points = np.stack(np.meshgrid(*3 * [np.arange(20) * 0.5 + 0.25]), axis=-1).reshape(-1, 3).astype(np.float32)
    chosen = candidates(points, 1.0, 1000)
    assert len(chosen) == 1000
    assert np.allclose(points[chosen].mean(axis=0), points.mean(axis=0), atol=0.4)
    assert np.allclose(points[chosen].std(axis=0), points.std(axis=0), rtol=0.1)


def test_points_that_are_unknown_are_no_candidates():
    points = scattered(0, 20)
    points[::2, 1] = np.nan
    assert set(candidates(points, 1e-3, 100)) == set(range(1, 20, 2))
    assert not len(candidates(np.full((3, 3), np.nan, np.float32), 0.2, 100))


def task(seed, count, frames=4):
    random = np.random.default_rng(seed)
    features = torch.from_numpy(random.normal(size=(count, 8)).astype(np.float32))
    return torch.nn.functional.normalize(features, dim=1), scattered(seed, count), random.integers(0, frames, count)


def as_defined(features, points, frames, landmark, radius, kappa):
    """Scores, positives and universe of one landmark, a patch after the other: (n, 1) each."""
    distance = np.linalg.norm(points.astype(float) - points[landmark], axis=1)
    positive = distance <= radius
    scores = []
    for feature, frame in zip(features.double().numpy(), frames, strict=True):
        others = features.double().numpy()[positive & (frames != frame)].sum(axis=0)
        scores.append(feature @ others / max(np.linalg.norm(others), 1e-12))
    columns = np.array(scores), positive, distance <= kappa * radius
    return [torch.from_numpy(column)[:, None] for column in columns]


@pytest.mark.parametrize("radius", [0.3, 1.3], ids=["few positives", "many positives"])
@pytest.mark.parametrize("tile", [2**11, 2**22])
def test_scores_are_the_quadratic_definition(radius, tile, monkeypatch):
    monkeypatch.setattr(selection, "PAIRS_AT_ONCE", tile)
    features, points, frames = task(1, 400)
    landmarks = np.arange(0, 400, 36)
    got = landmark_scores(features, points, frames, landmarks, radius, 3, TAU)
    for landmark, value in zip(landmarks, got, strict=True):
        defined = as_defined(features, points, frames, landmark, radius, 3)
        assert value == pytest.approx(float(vectorized_smooth_ap_reference(*defined, TAU)), abs=2e-6)


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.floats(0.005, 1))
def test_patches_that_score_far_below_change_nothing(seed, tau):
    features, points, frames = task(seed, 60)
    few = landmark_scores(features, points, frames, np.arange(10), 0.8, 50, tau)
    for landmark, value in enumerate(few):
        scores, positive, universe = as_defined(features, points, frames, landmark, 0.8, 50)
        if len(np.unique(frames[positive[:, 0]])) > 1:
            assert value == pytest.approx(float(smooth_ap(scores, positive, universe, tau)), abs=1e-5)


def test_a_frame_does_not_speak_for_itself():
    """Two frames agree about a spot; a third one shows it as the two show something else."""
    spot, elsewhere, odd = torch.eye(3)
    features = torch.stack([spot, elsewhere, spot, elsewhere, elsewhere, odd])
    points = np.array([[0, 0, 0], [5, 0, 0]] * 3, np.float32)
    frames = np.array([0, 0, 1, 1, 2, 2])
    alike = landmark_scores(features[:4], points[:4], frames[:4], np.array([0]), 0.2, 50, TAU)
    assert alike == pytest.approx(1, abs=1e-6)
    with_a_third = landmark_scores(features, points, frames, np.array([0]), 0.2, 50, TAU)
    scores = [2**-0.5, 2**-0.5, 0]  # of the positives, by the mean of the other two frames' features
    wrong = [2**-0.5, 2**-0.5, 0]  # elsewhere in frame 0 and 1 it is as alike as the spot; in frame 2 it is not
    above = lambda rivals, own: sum(1 / (1 + np.exp((own - rival) / TAU)) for rival in rivals)  # noqa: E731
    ranks = [(0.5 + above(scores, own), 0.5 + above(scores + wrong, own)) for own in scores]
    assert with_a_third == pytest.approx(np.mean([among / of_all for among, of_all in ranks]), abs=1e-5)


def test_what_no_other_frame_shows_scores_nothing():
    features, points, _ = task(2, 30)
    assert not landmark_scores(features, points, np.zeros(30, int), np.arange(30), 0.5, 50, TAU).any()
    assert landmark_scores(features, points, np.arange(30), np.arange(0), 0.5, 50, TAU).shape == (0,)
    assert landmark_scores(features[:0], points[:0], np.arange(0), np.arange(0), 0.5, 50, TAU).shape == (0,)


@given(st.integers(0, 2**31))
def test_scores_do_not_depend_on_the_order_of_the_frames(seed):
    features, points, frames = task(seed, 80)
    landmarks = np.arange(0, 80, 7)
    order = np.random.default_rng(seed + 1).permutation(80)
    moved = np.argsort(order)[landmarks]
    again = landmark_scores(features[order], points[order], (frames * 7 + 3)[order] % 11, moved, 0.8, 50, TAU)
    assert np.allclose(again, landmark_scores(features, points, frames, landmarks, 0.8, 50, TAU), atol=1e-5)


def suppressed(positions, scores, spacing):
    """Non-maximum suppression as one would say it."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], *positions[i][::-1]))
    kept = []
    for index in order:
        if all(np.linalg.norm(positions[index] - positions[other]) >= spacing for other in kept):
            kept.append(index)
    return kept


coarse = st.integers(-4, 4).map(lambda number: number / 2)  # so that places, scores and distances coincide
spots = st.lists(st.tuples(coarse, coarse, coarse, st.sampled_from([0.25, 0.5, 1.0])), max_size=30, unique=True)


@given(spots, st.sampled_from([0.5, 0.8, 1.0, 1.5]))
def test_spread_is_suppression_by_brute_force(rows, spacing):
    table = np.array(rows, np.float32).reshape(-1, 4)
    positions, scores = table[:, :3], table[:, 3]
    kept = spread(positions, scores, spacing)
    assert kept.tolist() == suppressed(positions.astype(float), scores, spacing)
    assert spread(positions, scores, spacing, 3).tolist() == kept[:3].tolist()


@given(st.integers(0, 2**31), st.integers(0, 60))
def test_spread_does_not_depend_on_the_order(seed, count):
    random = np.random.default_rng(seed)
    positions = scattered(seed, count)
    scores = random.integers(0, 4, count).astype(np.float32)  # many are equal
    order = random.permutation(count)
    kept = spread(positions, scores, 0.6)
    assert order[spread(positions[order], scores[order], 0.6)].tolist() == kept.tolist()
    if len(kept) > 1:
        apart = np.linalg.norm(positions[kept][:, None].astype(float) - positions[kept], axis=-1)
        assert apart[~np.eye(len(kept), dtype=bool)].min() >= 0.6


def test_at_most_none_is_none():
    assert not len(spread(scattered(0, 5), np.ones(5, np.float32), 0.1, 0))


def test_scores_that_differ_by_rounding_are_equal():
    """Which of two sums comes first is decided by the order of the frames; the choice of landmarks is not to be."""
    positions = np.array([[0, 0, 0], [0, 0, 0.1]], np.float32)
    above, below = np.float32(1), np.nextafter(np.float32(1), np.float32(0))
    assert spread(positions, np.array([above, below]), 0.2) == spread(positions, np.array([below, above]), 0.2)
