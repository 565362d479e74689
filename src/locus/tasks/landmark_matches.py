"""Patches of an image and the landmarks of a map that they are most similar to."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from locus.landmarks import LandmarkMap
from locus.rows import Rows
from locus.scenes.patches import patch_centres
from locus.tasks.matching import stuck_mask


@dataclass(frozen=True, eq=False)
class LandmarkMatches(Rows):
    """Patches of an image, row-major in its grid, each with its most similar landmark.

    A match is stuck if it sits (nearly) where its landmark was in the map's images: `locus.tasks.matching.stuck_mask`.
    """

    patch: Int[ndarray, " n"]
    landmark: Int[ndarray, " n"]
    similarity: Float[ndarray, " n"]
    pixel: Float[ndarray, "n 2"]
    stuck_mask: Bool[ndarray, " n"]

    @property
    def stuck(self) -> float:
        """The share of stuck matches. A share far above that of random positions shows a bias of the features."""
        return float(self.stuck_mask.mean()) if len(self) else 0.0


def match_landmarks(
    world: LandmarkMap, features: Float[Tensor, "rows columns c"], size: tuple[int, int], scale: int = 0
) -> LandmarkMatches:
    """Every patch of an image of `size` (width, height) with its most similar landmark of one scale."""
    rows, columns = features.shape[:2]
    found = world.search(features.flatten(0, 1), 1, scale)
    similarity, landmark = (each.ravel() for each in found)  # empty if the map has no landmark of the scale
    patch = np.arange(len(landmark))
    at = patch_centres((rows, columns), 1, 1).reshape(-1, 2)[patch]
    stuck = stuck_mask(world.landmarks.seen_at[landmark], at, (rows, columns))
    return LandmarkMatches(patch, landmark, similarity, at * size, stuck)


def likely_environments(world: LandmarkMap, features: Float[Tensor, "scales rows columns c"]) -> list[int]:
    """The environments of a map, the likeliest first: by how many patches, of all scales, find a landmark in each."""
    count = np.zeros(len(world.environments))
    for scale, of_scale in enumerate(features):
        landmark = world.search(of_scale.flatten(0, 1), 1, scale)[1]
        count += np.bincount(world.landmarks.environment[landmark.ravel()], minlength=len(count))
    return np.argsort(-count, kind="stable").tolist()
