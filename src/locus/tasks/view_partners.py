"""Which frames may show the same spots from different places: told by their poses alone."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.geometry import invert, transform
from locus.scenes import Frame
from locus.scenes.patches import patch_centres

GRID = (3, 4)  # spots of an image that are looked at
DEPTHS = (1.0, 2.0, 4.0, 8.0)  # metres that each is taken to be away
ANGLES = (3.0, 60.0)  # degrees between the two lines of sight: fewer tell no depth, and with more nothing looks alike


def view_partners(frames: Sequence[Frame], count: int) -> list[tuple[int, int]]:
    """Pairs of frames, the smaller row first: with each frame the `count` that share most with it, or fewer.

    Comparing poses takes some microseconds a pair of frames; what takes time, matching, grows with their number only.
    """
    shared = shared_views(frames)
    mutual = np.minimum(shared, shared.T)
    best = np.argsort(-mutual, axis=1, kind="stable")[:, :count]
    return sorted({(min(a, b), max(a, b)) for a, row in enumerate(best.tolist()) for b in row if mutual[a, b] > 0})


def shared_views(frames: Sequence[Frame]) -> Float[ndarray, "f f"]:
    """[a, b]: the share of spots before frame a that b would show from another direction, if nothing hid them."""
    points = np.stack([_spots(frame) for frame in frames])
    centres = np.stack([frame.world_from_camera[:3, 3] for frame in frames])
    away = points - centres[:, None]
    shared = np.zeros((len(frames), len(frames)))
    for b, frame in enumerate(frames):
        pixels, z = frame.camera.project(transform(invert(frame.world_from_camera), points))
        inside = (z > 0) & np.all((pixels >= 0) & (pixels < [frame.camera.width, frame.camera.height]), axis=-1)
        back = points - centres[b]
        lengths = np.linalg.norm(away, axis=-1) * np.linalg.norm(back, axis=-1)
        cosine = np.divide(np.sum(away * back, axis=-1), lengths, out=np.ones_like(lengths), where=lengths > 0)
        least, most = np.cos(np.radians(ANGLES))
        shared[:, b] = np.mean(inside & (cosine <= least) & (cosine >= most), axis=1)
    return shared


def _spots(frame: Frame) -> Float[ndarray, "n 3"]:
    """Points of the world before a frame, spread over its image and over depths."""
    pixels = patch_centres(GRID, frame.camera.width, frame.camera.height).reshape(-1, 2)
    pixels, z = np.tile(pixels, (len(DEPTHS), 1)), np.repeat(DEPTHS, len(pixels))
    return transform(frame.world_from_camera, frame.camera.unproject(pixels, z))
