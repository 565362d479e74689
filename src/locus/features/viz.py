"""Pictures of features: as colours that mean the same in every frame, and as similarity to one of them."""

from collections.abc import Sequence

import cv2
import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.model.pca import principal_components
from locus.pages.pictures import Picture, enlarged

SAMPLE = 50_000  # patches are enough to find three directions


def colours(maps: Sequence[Float[Tensor, "_ _ c"]], size: tuple[int, int] | None = None) -> list[Picture]:
    """Feature maps as colours: their first three principal components, over all maps together, as red, green and blue.

    Similar features have similar colours, in whichever map they are. `maps` are one scale's features of each frame;
    `size` is the width and height of the pictures, by default one pixel a patch.
    """
    if not maps:
        raise LocusError("there are no feature maps to draw")
    rows = torch.cat([each.detach().float().cpu().flatten(0, 1) for each in maps])
    components = principal_components(rows[:: -(-len(rows) // SAMPLE)], min(3, *rows.shape))
    # Percentiles, so that a few odd patches do not take all the contrast.
    low, high = np.percentile(components(rows).numpy(), (1, 99), axis=0)
    return [_colour(components(each.detach().float().cpu()).numpy(), low, high, size) for each in maps]


def _colour(
    projected: Float[ndarray, "h w k"],
    low: Float[ndarray, " k"],
    high: Float[ndarray, " k"],
    size: tuple[int, int] | None,
) -> Picture:
    span = high - low
    scaled = np.where(span > 1e-6, (projected - low) / np.maximum(span, 1e-6), 0.5).clip(0, 1)
    channels = np.full((*scaled.shape[:2], 3), 0.5, np.float32)  # grey where there are fewer than three components
    channels[..., : scaled.shape[2]] = scaled
    return ((channels if size is None else enlarged(channels, size)) * 255).round().astype(np.uint8)


def span(maps: Sequence[Float[Tensor, "_ _ c"]], query: Float[Tensor, " c"]) -> tuple[float, float]:
    """The least and most similarity to show, over all maps: the unlike half of the patches is left dark."""
    values = np.concatenate([_similarity(each, query).ravel() for each in maps])
    low, high = np.percentile(values, (50, 99.8))
    return float(low), float(high)


def heat(
    image: Picture,
    features: Float[Tensor, "_ _ c"],
    query: Float[Tensor, " c"],
    limits: tuple[float, float] | None = None,
) -> Picture:
    """An image in grey, glowing where its features, at one scale, are similar to the query.

    `limits` are the similarity (cosine) that does not glow, and that glows most: of several frames, `span` of them all;
    by default this image's own.
    """
    low, high = limits or span([features], query)
    scaled = ((_similarity(features, query) - low) / max(high - low, 1e-6)).clip(0, 1)
    glow = enlarged(scaled, (image.shape[1], image.shape[0]))
    ramp = cv2.applyColorMap((glow * 255).astype(np.uint8), cv2.COLORMAP_INFERNO)[..., ::-1]
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None]
    share = 0.85 * glow[..., None]
    return ((1 - share) * 0.6 * grey + share * ramp).round().astype(np.uint8)


def _similarity(features: Float[Tensor, "h w c"], query: Float[Tensor, " c"]) -> Float[ndarray, "h w"]:
    similarity = torch.cosine_similarity(features.detach().float(), query.detach().float(), dim=-1)
    return similarity.cpu().numpy()
