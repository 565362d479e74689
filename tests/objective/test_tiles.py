"""Tiles: every pair of the universe is in exactly one, and a tile holds what its kind says."""

import math

import pytest
import torch

from locus.objective.sets import squared_radii
from locus.objective.tiles import CUT, MIXED, NEGATIVE, Layout, SortedPoints, morton_code


def layout(seed: int, n: int, m: int, kappa: float, exclude_same_frame: bool) -> tuple[Layout, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    position = 6 * torch.rand(n, 3, generator=generator)
    environment, frame = (torch.randint(k, (n,), generator=generator) for k in (3, 5))
    landmark = torch.randint(n, (m,), generator=generator)
    patches = SortedPoints.sorted(position, environment, frame)
    landmarks = SortedPoints.sorted(position[landmark], environment[landmark], frame[landmark])
    radii = 0.2 + 0.3 * torch.rand(m, generator=generator)
    inner, outer = squared_radii(radii, kappa, m, position)
    where = patches.order.argsort()
    own = where[landmark[landmarks.order]]
    order = landmarks.order
    return Layout(patches, landmarks, own, inner[order][None], outer[order][None], exclude_same_frame), own


@pytest.mark.parametrize("exclude_same_frame", [False, True])
@pytest.mark.parametrize("kappa", [1.0, 3.0, 40.0, math.inf])
def test_tiles_hold_every_pair_of_the_universe_once(kappa, exclude_same_frame):
    n, m = 6000, 200
    batch, own = layout(0, n, m, kappa, exclude_same_frame)
    squared = torch.cdist(batch.landmarks.position.T.double(), batch.patches.position.T.double()) ** 2
    allowed = batch.landmarks.environment[:, None] == batch.patches.environment
    allowed &= torch.arange(n) != own[:, None]
    if exclude_same_frame:
        allowed &= batch.landmarks.frame[:, None] != batch.patches.frame
    universe = allowed & (squared <= batch.outer[0, :, None])
    positive = allowed & (squared <= batch.inner[0, :, None])
    times = torch.zeros(m, n, dtype=torch.long)
    kinds = set()
    for tile in batch.tiles(5000):
        kinds |= set(tile.kinds)
        times[tile.landmarks, tile.patches] += 1
        inside = universe[tile.landmarks][:, tile.patches]
        found = batch.squared_distances(tile)
        assert len(tile.patches) * (tile.landmarks.stop - tile.landmarks.start) <= 5000
        if tile.kinds[0] == NEGATIVE:
            assert inside.all()
        else:
            assert torch.equal(found <= batch.outer[0, tile.landmarks, None], inside)
        if tile.kinds[0] < MIXED:
            assert not positive[tile.landmarks][:, tile.patches].any()
    assert (times[universe] == 1).all()
    assert times.max() <= 1
    if kappa == 1.0:
        assert times.float().mean() < 0.3  # of the third in the same environment
    if kappa == math.inf:
        assert kinds == ({CUT, MIXED} if exclude_same_frame else {NEGATIVE, MIXED})


def test_morton_order_keeps_neighbours_together():
    position = torch.rand(4096, 3, generator=torch.Generator().manual_seed(0))
    blocks = position[morton_code(position).argsort()].view(64, 64, 3)
    sides = blocks.amax(dim=1) - blocks.amin(dim=1)
    assert sides.prod(dim=1).median() < 4 / 64  # in the order they were drawn in: about 0.9
