"""Real weights on real frames: patches find each other across views."""

import numpy as np
import pytest
import torch

from locus import backbones, load_scene
from locus.geometry import invert, transform
from locus.scenes import patch_points

APART = 10  # frames
RESOLUTION = 252
NEAR = 1.5  # patches


def right_matches(backbone: backbones.Backbone, scene) -> float:
    """The share of patches whose nearest neighbour in a frame ten later lies where they really went."""
    hits, total = 0, 0
    for first in range(0, len(scene) - APART, 6):
        a, b = scene[first], scene[first + APART]
        tokens = backbone.tokens(torch.stack([backbone.prepare(frame.image, RESOLUTION) for frame in (a, b)]))
        rows, columns = tokens.shape[1:3]
        of_a, of_b = torch.nn.functional.normalize(tokens.flatten(1, 2), dim=-1)
        nearest = (of_a @ of_b.T).argmax(dim=1).numpy()
        points, valid = patch_points(a, (rows, columns))
        pixels, depth = b.camera.project(transform(invert(b.world_from_camera), points[valid]))
        true = pixels / [b.camera.width, b.camera.height] * [columns, rows]  # in patches
        seen = (depth > 0) & (true >= 0).all(axis=1) & (true < [columns, rows]).all(axis=1)
        match = nearest[valid.reshape(-1)]
        found = np.stack([match % columns, match // columns], axis=1) + 0.5
        off = np.linalg.norm(found - true, axis=1)[seen]
        hits, total = hits + int((off <= NEAR).sum()), total + len(off)
    return hits / total


@pytest.mark.usefixtures("focus_weights")
def test_learned_tokens_find_their_place_far_more_often_than_colour_statistics(real_data):
    scene = load_scene(real_data / "tum" / "rgbd_dataset_freiburg1_xyz")
    learned = right_matches(backbones.load("dinov2-small-focus", 7), scene)
    normed = right_matches(backbones.load("dinov2-small-focus", 9, norm=True), scene)
    colours = right_matches(backbones.load("classic"), scene)
    print(f"right within {NEAR} patches: block 7 {learned:.2f}, block 9 normed {normed:.2f}, classic {colours:.2f}")
    assert learned > 0.5
    assert learned > 1.5 * colours
