"""Do features follow what is seen, or stay where they are in the image? An image and the same image, shifted, tell."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.model import LoCUS
from locus.tasks.matching import STUCK, Rule, match


@dataclass(frozen=True)
class Shift:
    """What became of the matches between an image and itself, shifted."""

    following: float
    """Share that moved with the image, to within a patch."""
    stuck: float
    """Share that stayed at their image position, within 3 patches."""
    matches: int


@torch.no_grad()
def shift_followed(model: LoCUS, image: UInt8[ndarray, "height width 3"], patches: int = 6) -> Shift:
    """Match two crops of an image that lie so many patches apart, as if the camera had turned a little sideways.

    The true answer is known without depth or pose: every match moves by `patches` columns. Mutual nearest neighbours,
    at the finest scale.
    """
    prepared = model.prepare(image)
    step, width = model.patch_size, prepared.shape[2]
    if patches <= STUCK + 1:
        raise LocusError(f"a shift of {patches} patches cannot be told from being stuck; take more than {STUCK + 1:g}")
    if width < 2 * patches * step:
        raise LocusError(f"an image of {width // step} columns of patches is too narrow for a shift of {patches}")
    crops = torch.stack([prepared[:, :, : width - patches * step], prepared[:, :, patches * step :]])
    finest = int(np.argmin(model.radii))
    features = model(crops.to(next(model.buffers()).device))[finest]
    size = (crops.shape[3], crops.shape[2])
    found = match(features[None, 0], features[None, 1], size, size, Rule(refine=False))
    moved = (found.pixels_b - found.pixels_a) / step
    if not len(found):
        return Shift(0.0, 0.0, 0)
    following = np.abs(moved - [-patches, 0]).max(axis=1) <= 1
    return Shift(float(following.mean()), found.stuck, len(found))
