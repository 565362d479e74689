"""Surfaces between spots: exact on planes, and nothing across edges."""

import numpy as np
import pytest

from locus.geometry import Camera
from locus.tasks.depth_surfaces import EDGE, FARTHEST, Spots, surfaces

CAMERA = Camera(120, 90, 100.0, 100.0, 60.0, 45.0)


def grid(step=6):
    x, y = np.meshgrid(np.arange(3, 118, step) + 0.25, np.arange(3, 88, step) + 0.75)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def plane(pixels, normal=(0.3, -0.2, -1.0), at=(0.0, 0.0, 2.0)):
    """Inverse depth of a plane, by meeting rays with it."""
    rays = np.stack([(pixels[..., 0] - 60) / 100, (pixels[..., 1] - 45) / 100, np.ones(pixels.shape[:-1])], axis=-1)
    return (rays @ np.array(normal)) / np.dot(normal, at)


def test_a_slanted_plane_is_met_exactly():
    pixels = grid()
    depth = surfaces(CAMERA, Spots(pixels, plane(pixels)))
    assert (depth > 0).mean() > 0.8
    wanted = 1 / plane(CAMERA.pixel_grid())
    spots = pixels.astype(int)
    known = depth > 0
    known[spots[:, 1], spots[:, 0]] = False  # these pixels have the depth at the spot, not at their centre
    np.testing.assert_allclose(depth[known], wanted[known], rtol=1e-5)
    np.testing.assert_allclose(depth[spots[:, 1], spots[:, 0]], 1 / plane(pixels), rtol=1e-6)


def test_no_depth_is_made_up_across_an_edge():
    pixels = grid()
    near = pixels[:, 0] < 60
    depth = surfaces(CAMERA, Spots(pixels, np.where(near, 1.0, 0.5)))
    known = depth > 0
    assert set(np.unique(depth[known].round(5))) == {1.0, 2.0}
    last, first = pixels[near, 0].max(), pixels[~near, 0].min()
    assert not known[:, int(last) + 1 : int(first)].any()


def test_large_triangles_and_lone_spots_are_left_out():
    pixels = grid()
    inverse = plane(pixels)
    alone = len(pixels) // 2
    inverse[alone] *= 2
    depth = surfaces(CAMERA, Spots(pixels, inverse))
    x, y = pixels[alone].astype(int)
    assert depth[y, x] == 0
    far = grid(int(1.5 * EDGE * 90))
    assert not surfaces(CAMERA, Spots(far, plane(far))).any()


def test_what_is_too_far_for_the_native_format_is_unknown():
    pixels = grid()
    assert not surfaces(CAMERA, Spots(pixels, np.full(len(pixels), 0.9 / FARTHEST))).any()


@pytest.mark.parametrize("pixels", [grid()[:0], grid()[:2], grid()[:5], np.repeat(grid()[:1], 9, axis=0)])
def test_too_few_spots_or_spots_on_a_line_are_no_surface(pixels):
    depth = surfaces(CAMERA, Spots(pixels, np.full(len(pixels), 0.5)))
    assert depth.shape == (90, 120)
    assert not depth.any()
