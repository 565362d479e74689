"""Matches against brute force, against known motions of the image, and where there is nothing to match."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from locus.errors import LocusError
from locus.scenes.patches import patch_centres
from locus.tasks.matching import PAPER, Matches, Rule, discontinuity, match, nearest, refined
from tests.scenes import room
from tests.tasks.views import CAMERA, GRID, SIZE, motion, perfect

PLAIN = Rule(refine=False)


def random_maps(seed, grid_a, grid_b, c=8, scales=1):
    generator = torch.Generator().manual_seed(seed)
    return [normalize(torch.randn(scales, *grid, c, generator=generator), dim=-1) for grid in (grid_a, grid_b)]


grids = st.tuples(st.integers(1, 6), st.integers(1, 6))


@given(st.integers(0, 2**31), grids, grids)
def test_mutual_matches_are_those_of_brute_force(seed, grid_a, grid_b):
    a, b = random_maps(seed, grid_a, grid_b)
    found = match(a, b, (60, 50), (90, 70), PLAIN)
    scores = a.flatten(0, 2).numpy() @ b.flatten(0, 2).numpy().T
    told_apart = scores.shape[1] == 1
    expected = {
        (i, j)
        for i in range(scores.shape[0])
        for j in range(scores.shape[1])
        if scores[i].argmax() == j and scores[:, j].argmax() == i and (told_apart or np.ptp(scores[i]) > 1e-5)
    }
    assert set(zip(found.patches_a.tolist(), found.patches_b.tolist(), strict=True)) == expected
    assert np.allclose(found.scores, scores[found.patches_a, found.patches_b], atol=1e-6)
    assert (np.diff(found.scores) <= 0).all()
    assert np.allclose(found.pixels_a, patch_centres(grid_a, 60, 50).reshape(-1, 2)[found.patches_a])
    assert np.allclose(found.pixels_b, patch_centres(grid_b, 90, 70).reshape(-1, 2)[found.patches_b])


@given(st.integers(0, 2**31), grids, grids)
def test_the_papers_rule_is_that_of_a_plain_loop(seed, grid_a, grid_b):
    a, b = random_maps(seed, grid_a, grid_b, c=3)
    rule = replace(PAPER, min_score=0.5, continuity=2.5, top=5)
    found = match(a, b, (60, 50), (90, 70), rule)
    scores = a.flatten(0, 2).numpy() @ b.flatten(0, 2).numpy().T

    def apart(best, grid, target_grid, index):
        """Mean distance between the match of a patch and those of its neighbours."""
        row, column = divmod(index, grid[1])
        around = [
            best[r * grid[1] + c]
            for r in range(max(row - 1, 0), min(row + 2, grid[0]))
            for c in range(max(column - 1, 0), min(column + 2, grid[1]))
            if (r, c) != (row, column)
        ]
        own = divmod(best[index], target_grid[1])
        distances = [np.hypot(*np.subtract(divmod(other, target_grid[1]), own)) for other in around]
        return np.mean(distances) if distances else 0

    forth, back = scores.argmax(axis=1), scores.argmax(axis=0)
    pairs = [
        (scores[i, forth[i]], i)
        for i in range(len(forth))
        if scores[i, forth[i]] > 0.5
        and (scores.shape[1] == 1 or np.ptp(scores[i]) > 1e-5)
        and apart(forth, grid_a, grid_b, i) < 2.5
        and apart(back, grid_b, grid_a, forth[i]) < 2.5
    ]
    assert found.patches_a.tolist() == [i for _, i in sorted(pairs, key=lambda pair: -pair[0])[:5]]


def test_a_smooth_mapping_is_continuous_and_a_shuffled_one_is_not():
    own = np.arange(12 * 12)
    assert discontinuity(own, (12, 12), (12, 12)).reshape(12, 12)[5, 5] == pytest.approx((4 + 4 * np.sqrt(2)) / 8)
    shuffled = np.random.default_rng(0).permutation(own)
    assert discontinuity(shuffled, (12, 12), (12, 12)).min() > 2


@given(st.floats(-0.45, 0.45), st.floats(-0.45, 0.45))
def test_the_peak_of_a_paraboloid_is_found_exactly(x, y):
    rows, columns = np.mgrid[:5, :7]
    similarity = 1 - 0.05 * (columns - 3 - x) ** 2 - 0.08 * (rows - 2 - y) ** 2
    features = torch.from_numpy(np.stack([similarity, np.sqrt(1 - similarity**2)], axis=-1))
    found = refined(torch.tensor([[1.0, 0.0]]).double(), features, np.array([2 * 7 + 3]), (70, 100))
    assert found[0] == pytest.approx([(3.5 + x) * 10, (2.5 + y) * 20], abs=1e-6)


def test_at_the_edge_and_on_a_plateau_a_match_stays_at_the_patchs_centre():
    features = torch.ones(3, 3, 1)
    found = refined(torch.ones(9, 1), features, np.arange(9), (30, 30))
    assert np.allclose(found, patch_centres((3, 3), 30, 30).reshape(-1, 2))


def test_refining_brings_matches_nearer_to_the_truth():
    a, b = room.shots(16)[:2]
    coarse, fine = (match(perfect(a, (15, 20)), perfect(b, (15, 20)), SIZE, SIZE, rule) for rule in (PLAIN, Rule()))
    assert np.array_equal(coarse.patches_b, fine.patches_b)

    def error(matches):
        x, y = matches.pixels_a.astype(int).T
        points = CAMERA.unproject(matches.pixels_a, a.depth[y, x])
        pixels, _ = CAMERA.project(points @ motion(a, b)[:3, :3].T + motion(a, b)[:3, 3])
        return np.median(np.linalg.norm(pixels - matches.pixels_b, axis=1))

    assert error(fine) < 0.5 * error(coarse)


def test_a_coarser_scale_decides_between_places_that_look_alike_up_close():
    generator = torch.Generator().manual_seed(0)
    tile = normalize(torch.randn(6, 2, 16, generator=generator), dim=-1)
    rooms = normalize(torch.randn(10, 16, generator=generator), dim=-1)
    fine = torch.cat([tile] * 10, dim=1)  # the same pattern ten times, side by side
    coarse = rooms.repeat_interleave(2, dim=0).expand(6, 20, 16)
    both = torch.stack([fine, coarse])
    moved = both.roll(6, dims=2)  # by three tiles
    moved = normalize(moved + 0.02 * torch.randn(moved.shape, generator=generator), dim=-1)

    def right(matches):
        rows, columns = np.divmod(matches.patches_a, 20)
        return np.sum(matches.patches_b == rows * 20 + (columns + 6) % 20)

    alone = match(both[:1], moved[:1], (20, 6), (20, 6), PLAIN)
    assert right(alone) < 12  # one of ten, by chance
    found = match(both, moved, (20, 6), (20, 6), PLAIN)
    assert right(found) == len(found) > 110


@given(st.integers(0, 2**31), st.integers(1, 300), st.integers(2, 4))
def test_each_scale_narrows_the_choice_of_the_next_finer_one(seed, count, scales):
    generator = torch.Generator().manual_seed(seed)
    queries, keys = torch.randn(scales, 5, 6, generator=generator), torch.randn(scales, count, 6, generator=generator)
    index, score = nearest(queries, keys)
    for query in range(5):
        similarity = [(keys[scale] @ queries[scale, query]).numpy() for scale in range(scales)]
        left = np.arange(count)
        for scale in reversed(range(1, scales)):
            fewer = min(len(left), max(9, round(0.1 * len(left))))
            left = left[np.argsort(-similarity[scale][left])[:fewer]]
        assert index[query] == left[similarity[0][left].argmax()]
        assert score[query] == pytest.approx(similarity[0][index[query]], abs=1e-5)


def test_the_best_of_a_list_of_embeddings_is_that_of_one_product():
    generator = torch.Generator().manual_seed(1)
    queries, keys = torch.randn(3000, 8, generator=generator), torch.randn(17, 8, generator=generator)
    index, score = nearest(queries[None], keys[None])
    products = queries.numpy() @ keys.numpy().T
    assert np.array_equal(index, products.argmax(axis=1))
    assert np.allclose(score, products.max(axis=1), atol=1e-5)
    with pytest.raises(LocusError, match="no keys"):
        nearest(queries[None], keys[None, :0])


def test_stuck_is_told_from_following():
    """An image shifted by 8 patches: features of what is seen move with it, features of the position stay."""
    generator = torch.Generator().manual_seed(0)
    seen = normalize(torch.randn(1, 12, 28, 32, generator=generator), dim=-1)
    size = (200, 120)
    followed = match(seen[:, :, :20], seen[:, :, 8:], size, size)
    moved = (followed.pixels_b - followed.pixels_a) / 10
    where = np.median(moved, axis=0)
    assert where == pytest.approx([-8, 0], abs=0.2)
    assert followed.stuck < 0.15
    position = normalize(torch.randn(1, 12, 20, 32, generator=generator), dim=-1)
    stuck = match(position, position, size, size)
    assert stuck.stuck == 1
    assert np.isnan(match(seen[:, :, :1] * 0, seen * 0, size, size).stuck)


def test_a_match_three_patches_right_and_three_down_is_not_stuck():
    features = torch.zeros(1, 8, 8, 64)
    features[0].view(64, 64).fill_diagonal_(1)
    down_right = features.roll((3, 3), dims=(1, 2))
    inside = match(features, down_right, (80, 80), (80, 80), PLAIN)
    moved = inside.pixels_b - inside.pixels_a
    assert (moved == 30).all(axis=1).sum() == 25
    assert not inside.stuck_mask[(moved == 30).all(axis=1)].any()
    right = match(features, features.roll(3, dims=2), (80, 80), (80, 80), PLAIN)
    assert right.stuck_mask.sum() == 5 * 8


@pytest.mark.parametrize("rule", [Rule(), PLAIN, PAPER], ids=["default", "plain", "paper"])
def test_all_equal_features_match_nothing(rule):
    equal = normalize(torch.ones(1, 6, 8, 16), dim=-1)
    found = match(equal, equal, (80, 60), (80, 60), rule)
    assert len(found) == 0
    assert found.pixels_a.shape == found.pixels_b.shape == (0, 2)
    assert np.isnan(found.stuck)


def test_images_and_grids_may_differ_in_size():
    a, b = random_maps(3, (4, 6), (9, 5))
    found = match(a, b, (64, 48), (50, 1000))
    assert (found.pixels_a > 0).all()
    assert (found.pixels_a < [64, 48]).all()
    assert (found.pixels_b < [50, 1000]).all()
    assert found.tolerance == pytest.approx(np.sqrt(10 * 1000 / 9) / 4)  # a quarter of a patch of B


def test_features_of_two_models_are_refused():
    a, _ = random_maps(0, (4, 4), (4, 4), c=8)
    _, b = random_maps(0, (4, 4), (4, 4), c=9)
    with pytest.raises(LocusError, match="length 8 cannot be matched with 1 scales and length 9"):
        match(a, b, (40, 40), (40, 40))


def test_perfect_features_match_what_both_views_show():
    a, b = room.shots(16)[:2]
    found = match(perfect(a), perfect(b), SIZE, SIZE)
    assert isinstance(found, Matches)
    assert len(found) > 0.3 * GRID[0] * GRID[1]
