"""Object re-identification: an instance marked in one image, found in others.

The prototypes of the instance are all the patches that lie mostly inside its mask. An image's score is the mean, over
the prototypes, of the similarity (cosine) of each one's most similar patch there. A thing that is seen in part, or from
another side, still has some of its prototypes; one that resembles a single prototype by chance gets a low score.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.features.images import NamedImage
from locus.pages.pictures import enlarged
from locus.scenes.reading import read_image, read_labels
from locus.tasks.cosegmentation import one_scale
from locus.tasks.image_features import ImageFeatures

MIN_SIMILARITY, MIN_SCORE = 0.65, 0.7  # docs/segment.md: how they were measured
INSIDE = 0.5  # a patch is a prototype if the mask covers so much of it,
OUTSIDE = 0.0  # and background if it covers no more than this

Box = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Instance:
    """A marked thing as features."""

    prototypes: Float[Tensor, "p c"]
    background: Float[Tensor, "b c"]
    """The rest of the image it is marked in: what it is not."""


@dataclass(frozen=True, eq=False)
class FoundRegion:
    """Where something is in an image, if it is there."""

    image: NamedImage
    score: float
    mask: Bool[ndarray, "height width"]
    """Empty where nothing is similar enough, or the score is too low for the thing to be there."""
    box: Box | None = None
    """x0, y0, x1, y1 of the mask, the last ones exclusive."""


def box_mask(box: tuple[float, float, float, float], size: tuple[int, int]) -> Bool[ndarray, "height width"]:
    """The pixels whose centres lie in a box (x0, y0, x1, y1) of an image of (width, height)."""
    (x0, y0, x1, y1), (width, height) = box, size
    if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
        raise LocusError(
            f"the box {x0:g} {y0:g} {x1:g} {y1:g} is not inside the image, which is {width}×{height} pixels; "
            "give left, top, right, bottom"
        )
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    mask = ((x >= x0) & (x < x1))[None, :] & ((y >= y0) & (y < y1))[:, None]
    if not mask.any():
        raise LocusError(f"the box {x0:g} {y0:g} {x1:g} {y1:g} holds no pixel")
    return mask


def read_mask(path: Path, size: tuple[int, int]) -> Bool[ndarray, "height width"]:
    """A mask file, not 0 where the thing is; of any kind of image that has the size (width, height)."""
    try:
        values = read_labels(path)  # ids of 16 bits as they are
    except LocusError:
        values = read_image(path).max(axis=-1)  # colours, or single bits
    if values.shape != (size[1], size[0]):
        height, width = values.shape
        raise LocusError(f"the mask {path} is {width}×{height} pixels, but its image is {size[0]}×{size[1]}")
    return values > 0


def patch_shares(mask: Bool[ndarray, "height width"], grid: tuple[int, int]) -> Float32[ndarray, "rows columns"]:
    """How much of each patch a mask covers; a pixel may be shared between patches."""
    # The mean over each patch's area: OpenCV's area interpolation, made for exactly this.
    return cv2.resize(mask.astype(np.float32), (grid[1], grid[0]), interpolation=cv2.INTER_AREA)


def instance_of(features: Float[Tensor, "rows columns c"], mask: Bool[ndarray, "height width"]) -> Instance:
    """The instance under a mask; of one smaller than half a patch, the patch it covers most."""
    if not mask.any():
        raise LocusError("the mask is empty: it marks nothing to find")
    shares = patch_shares(mask, (features.shape[0], features.shape[1]))
    covered = torch.from_numpy(shares).to(features.device)
    return Instance(features[covered >= min(INSIDE, float(shares.max()))], features[covered <= OUTSIDE])


def find_instance(
    view: ImageFeatures,
    instance: Instance,
    min_similarity: float = MIN_SIMILARITY,
    scale: int = 0,
    min_score: float = MIN_SCORE,
) -> FoundRegion:
    """Look for an instance in one image, where it is not if the score is less than `min_score`.

    The mask is the part, in one piece around the best position, that is similar to a prototype (cosine of at least
    `min_similarity`) and less similar to anything that lay beside the instance where it was marked.
    """
    features = one_scale(view.features, scale)
    similarity = features @ instance.prototypes.T  # (rows, columns, p)
    score = float(similarity.flatten(0, 1).amax(dim=0).mean())
    similar = enlarged(similarity.amax(dim=-1).numpy(), view.size)
    own = similar >= min_similarity
    if len(instance.background):
        own &= similar >= enlarged((features @ instance.background.T).amax(dim=-1).numpy(), view.size)
    mask = _piece(own & (score >= min_score), similar)
    return FoundRegion(view.image, score, mask, box_of(mask))


def find_instances(
    views: Iterable[ImageFeatures],
    instance: Instance,
    min_similarity: float = MIN_SIMILARITY,
    scale: int = 0,
    min_score: float = MIN_SCORE,
) -> list[FoundRegion]:
    """Look for an instance in many images: the best score first."""
    found = (find_instance(view, instance, min_similarity, scale, min_score) for view in views)
    return sorted(found, key=lambda each: -each.score)


def _piece(
    mask: Bool[ndarray, "height width"], similar: Float32[ndarray, "height width"]
) -> Bool[ndarray, "height width"]:
    """The connected piece of a mask that the most similar of its pixels is in."""
    if not mask.any():
        return mask
    pieces = cv2.connectedComponents(mask.astype(np.uint8))[1]
    return pieces == pieces.flat[np.where(mask, similar, -np.inf).argmax()]


def box_of(mask: Bool[ndarray, "height width"]) -> Box | None:
    """The smallest box around a mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
