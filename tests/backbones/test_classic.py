"""The backbone without weights against a plain loop over cells."""

import math

import numpy as np
import torch

from locus import backbones
from locus.model import LoCUS

# A patch's numbers, in this order: mean and spread of three colours, then eight directions; four cells each.
MEANS, SPREADS, DIRECTIONS = slice(0, 12), slice(12, 24), slice(24, 56)


def described(image):
    return backbones.load("classic").tokens(torch.from_numpy(image).movedim(2, 0)[None])[0].numpy()


def gradients(grey):
    """Central differences; at the border the outermost pixel is repeated."""
    padded = np.pad(grey, 1, mode="edge")
    return (padded[1:-1, 2:] - padded[1:-1, :-2]) / 2, (padded[2:, 1:-1] - padded[:-2, 1:-1]) / 2


def referee(image):
    """Cell by cell, pixel by pixel."""
    r, g, b = np.moveaxis(image, 2, 0)
    colours = [(r + g + b) / 3, (r - g) / 2, (r + g - 2 * b) / 4]
    dx, dy = gradients(colours[0])
    rows, columns = image.shape[0] // 14, image.shape[1] // 14
    out = np.zeros((rows, columns, 14, 2, 2))
    for y in range(rows * 2):
        for x in range(columns * 2):
            cell = np.s_[7 * y : 7 * y + 7, 7 * x : 7 * x + 7]
            histogram = np.zeros(8)
            for px, py in zip(dx[cell].ravel(), dy[cell].ravel(), strict=True):
                turn = math.degrees(math.atan2(py, px)) % 360 / 45
                lower, share = int(turn) % 8, turn - int(turn)
                histogram[lower] += (1 - share) * math.hypot(px, py)
                histogram[(lower + 1) % 8] += share * math.hypot(px, py)
            numbers = [c[cell].mean() for c in colours] + [c[cell].std() for c in colours]
            out[y // 2, x // 2, :, y % 2, x % 2] = [*numbers, *np.sqrt(histogram / 49)]
    return out.reshape(rows, columns, 56)


def test_it_is_what_a_loop_over_cells_computes():
    image = np.random.default_rng(0).random((45, 61, 3))
    cropped = image[: 45 // 14 * 14, : 61 // 14 * 14]
    np.testing.assert_allclose(described(image), referee(cropped), atol=1e-4)


def test_an_even_image_has_its_colour_no_spread_and_no_gradient():
    tokens = described(np.full((42, 56, 3), (0.2, 0.4, 0.9)))
    assert tokens.shape == (3, 4, 56)
    expected = np.repeat([1.5 / 3, -0.1, 0.15 - 0.45], 4)
    np.testing.assert_allclose(tokens[..., MEANS], np.broadcast_to(expected, (3, 4, 12)), atol=2e-5)
    np.testing.assert_allclose(tokens[..., SPREADS], 0, atol=1e-3)
    assert (tokens[..., DIRECTIONS] == 0).all()


def test_an_edge_falls_into_the_direction_in_which_it_gets_brighter():
    rising = np.zeros((14, 14, 3))
    rising[:, 4:] = 1  # darker to brighter from left to right: direction 0, in the two cells on the left
    for turns, direction in [(0, 0), (3, 2), (2, 4), (1, 6)]:
        histogram = described(np.ascontiguousarray(np.rot90(rising, turns)))[0, 0, DIRECTIONS].reshape(8, 4)
        assert set(np.flatnonzero(histogram.sum(axis=1))) == {direction}
        assert (histogram[direction] > 0).sum() == 2
        # Two columns of seven pixels with a difference of half: the mean over 49 pixels is 7 / 49.
        np.testing.assert_allclose(histogram[direction].max() ** 2, 7 / 49, rtol=1e-5)


def test_a_black_patch_has_a_direction():
    features = LoCUS("classic", head="identity").features(np.zeros((42, 42, 3), np.uint8))
    torch.testing.assert_close(features.norm(dim=-1), torch.ones(features.shape[:-1]))
