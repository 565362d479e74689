"""Keypoints that know places: a keypoint's descriptor and the LoCUS features at its spot, as one unit vector.

The dot product of two such vectors is the weighted mean of the cosines of their parts, so that whatever searches
descriptors searches both at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.keypoints.detection import Keypoints

PLACES = 2.0  # the weight of LoCUS features, all scales together, where a keypoint's own descriptor has 1


def usual_weights(scales: int) -> tuple[float, ...]:
    """The weights that `fuse` takes, as they were measured: twice as much for the features as for the keypoint."""
    return (1.0, *[PLACES / scales] * scales)


def sample(
    features: Float[Tensor, "scales rows columns c"], pixels: Float[ndarray, "n 2"], size: tuple[int, int]
) -> Float[Tensor, "scales n c"]:
    """Features at pixels of an image of this width and height, blended from the four nearest patches; unit length.

    Between the centres of the outermost patches and the image's border, they are those of the border's patches.
    """
    places = torch.from_numpy(2 * pixels / np.array(size) - 1).to(features)  # -1 and 1: the image's borders
    grid = places.expand(len(features), 1, -1, -1)
    maps = features.permute(0, 3, 1, 2)
    blended = F.grid_sample(maps, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return F.normalize(blended[:, :, 0].transpose(1, 2), dim=-1)


def point_scales(radii: Sequence[float]) -> list[int]:
    """The scales of a model that tell keypoints apart: the two finest, the finest first; a room's does not."""
    return np.argsort(radii, kind="stable")[:2].tolist()


def fuse(keypoints: Keypoints, features: Float[Tensor, "scales rows columns c"], weights: Sequence[float]) -> Keypoints:
    """The keypoints with fused descriptors. Weights: the first of their own descriptors, then one for every scale."""
    if len(weights) != 1 + len(features) or min(weights) < 0 or not sum(weights) > 0:
        raise LocusError(
            f"fusing takes a weight for the keypoints and one for each of {len(features)} scales, none negative and "
            f"not all zero, not {', '.join(f'{weight:g}' for weight in weights) or 'none'}"
        )
    shares = np.sqrt(np.array(weights) / sum(weights))
    parts = [keypoints.descriptors, *sample(features.float().cpu(), keypoints.pixels, keypoints.size)]
    scaled = [share * part for share, part in zip(shares.tolist(), parts, strict=True)]
    return replace(keypoints, descriptors=torch.cat(scaled, dim=1))


@dataclass(frozen=True, eq=False)
class PlacedKeypoints:
    """Keypoints, and the LoCUS features at their spots."""

    keypoints: Keypoints
    places: Float[Tensor, "scales n c"]
    """Unit length, float32, on the CPU: of `point_scales`."""

    @classmethod
    def of(cls, keypoints: Keypoints, features: Float[Tensor, "scales rows columns c"]) -> "PlacedKeypoints":
        """From the features of the whole image."""
        return cls(keypoints, sample(features.float().cpu(), keypoints.pixels, keypoints.size))

    def __len__(self) -> int:
        return len(self.keypoints)

    def __getitem__(self, rows: slice | Int[ndarray, " k"] | Bool[ndarray, " n"]) -> "PlacedKeypoints":
        chosen = np.arange(len(self))[rows]
        return PlacedKeypoints(self.keypoints[chosen], self.places[:, chosen])
