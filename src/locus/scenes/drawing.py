"""Which frames are looked at together: a random one, and others that see what it sees."""

import numpy as np
from jaxtyping import Float32, Int
from numpy import ndarray

MIN_OVERLAP = 0.05  # a frame that sees less of the seed frame than this is not drawn with it


def draw_frames(
    overlap: Float32[ndarray, "frames frames"], usable: Int[ndarray, " k"], rng: np.random.Generator, count: int
) -> Int[ndarray, " drawn"]:
    """A random one of the usable frames, and others by their overlap with it."""
    seed = rng.choice(usable)
    shared = (overlap[seed, usable] + overlap[usable, seed]) / 2
    shared = np.where((shared >= MIN_OVERLAP) & (usable != seed), shared, 0)
    others = min(count - 1, int((shared > 0).sum()))
    drawn = rng.choice(usable, others, replace=False, p=shared / shared.sum()) if others else []
    return np.concatenate([[seed], drawn]).astype(np.int64)
