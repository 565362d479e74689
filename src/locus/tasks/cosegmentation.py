"""Co-segmentation: one pixel of an image in; the region that is the same spot, in every other view, out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.pages.pictures import enlarged

MIN_SIMILARITY = 0.75  # docs/segment.md: how it was measured


@dataclass(frozen=True, eq=False)
class Region:
    """What of one view is similar to the query."""

    row: int
    """The view's row in the scene's features."""
    score: float
    """The similarity (cosine) of the view's most similar patch; views are ranked by it."""
    mask: Bool[ndarray, "height width"]
    """At the image's size; empty where nothing is similar enough."""


def check_pixel(x: float, y: float, size: tuple[int, int]) -> None:
    """Refuse a pixel outside an image of (width, height)."""
    width, height = size
    if not (0 <= x < width and 0 <= y < height):
        raise LocusError(f"the pixel ({x:g}, {y:g}) is not inside the image, which is {width}×{height} pixels")


def feature_at(
    features: Float[Tensor, "rows columns c"], x: float, y: float, size: tuple[int, int]
) -> Float[Tensor, " c"]:
    """The unit-length feature at a pixel of an image of (width, height), blended between the nearest patches."""
    check_pixel(x, y, size)
    width, height = size
    place = torch.tensor([2 * x / width - 1, 2 * y / height - 1], dtype=features.dtype, device=features.device)
    blended = F.grid_sample(
        features.movedim(-1, 0)[None], place[None, None, None], padding_mode="border", align_corners=False
    )
    return F.normalize(blended[0, :, 0, 0], dim=0)


def similarity(query: Float[Tensor, " c"], features: Float[Tensor, "*n c"]) -> Float32[ndarray, "*n"]:
    """Cosines between a feature and others of unit length."""
    return (features.float() @ query.float().to(features.device)).cpu().numpy()


def cosegment(
    query: Float[Tensor, " c"], seen: SceneFeatures, min_similarity: float = MIN_SIMILARITY, scale: int = 0
) -> list[Region]:
    """The region of every view of a scene that is similar enough to the query, in the scene's order.

    Args:
        query: A feature of unit length, such as `feature_at` gives.
        seen: The views.
        min_similarity: A cosine. The similarity of patches is blended to the image's pixels before it is compared.
        scale: Which of the model's scales the features are of, counted from 0.
    """
    check_similarity(min_similarity)
    regions = []
    for row, values in enumerate(similarity(query, one_scale(seen.features, scale))):
        camera = seen.frame(row).camera
        regions.append(region(row, values, (camera.width, camera.height), min_similarity))
    return regions


def region(
    row: int, values: Float32[ndarray, "rows columns"], size: tuple[int, int], min_similarity: float = MIN_SIMILARITY
) -> Region:
    """Of one view of (width, height), whose patches have these similarities to the query."""
    return Region(row, float(values.max()), enlarged(values, size) >= min_similarity)


def one_scale(features: Float[Tensor, "scales *rest"], scale: int) -> Float[Tensor, "*rest"]:
    """The features of one of a model's scales."""
    if not 0 <= scale < len(features):
        raise LocusError(f"the model has no scale {scale}; its scales are 0 to {len(features) - 1}")
    return features[scale]


def check_similarity(cosine: float) -> float:
    if not -1 <= cosine <= 1:
        raise LocusError(f"a similarity is a cosine, between -1 and 1, not {cosine:g}")
    return cosine


def best_first(regions: Sequence[Region]) -> list[Region]:
    """Ranked by score; equal ones as they were."""
    return sorted(regions, key=lambda region: -region.score)
