"""Which frames of a map show what an image shows? Images as bags of landmarks: one number for each that they show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.sparse import csr_matrix, diags
from torch import Tensor

from locus.landmarks import LandmarkMap
from locus.tasks.landmark_matches import LandmarkMatches, match_landmarks


@dataclass(frozen=True, eq=False)
class RankedFrames:
    """Frames of a map, the most similar first."""

    frame: Int[ndarray, " k"]
    """Rows of the map's frames."""
    score: Float[ndarray, " k"]
    """Cosine of the two bags, 0 to 1."""
    stuck: float
    """The share of the image's matches, of all scales, that are stuck."""

    def described(self, world: LandmarkMap) -> dict[str, Any]:
        """For machines."""
        rows = [
            {
                "environment": world.environments[world.frames.environment[frame]],
                "frame": world.frame_names[frame],
                "score": round(float(score), 4),
            }
            for frame, score in zip(self.frame, self.score, strict=True)
        ]
        return {"stuck": round(self.stuck, 4), "frames": rows}


def rank_frames(world: LandmarkMap, features: Float[Tensor, "scales rows columns c"], k: int = 10) -> RankedFrames:
    """The k frames of a map, of all its environments, that show most of what an image shows."""
    rows, columns = features.shape[1:3]
    matches = [match_landmarks(world, of_scale, (columns, rows), scale) for scale, of_scale in enumerate(features)]
    frames = _weighed(world, csr_matrix(world.sightings, dtype=np.float64))  # bags of what each is known to show
    similarity = np.asarray((frames @ image_descriptor(world, matches).T).todense())[:, 0]
    best = np.argsort(-similarity, kind="stable")[:k]
    stuck = np.concatenate([of_scale.stuck_mask for of_scale in matches])
    return RankedFrames(best, similarity[best], float(stuck.mean()) if len(stuck) else 0.0)


def image_descriptor(world: LandmarkMap, matches: Sequence[LandmarkMatches]) -> csr_matrix:
    """An image as a bag of landmarks: each patch counts for its most similar landmark, as far as above chance.

    One row of unit length, a column for each landmark of the map; `matches` are those of each scale.
    """
    weights = np.zeros(len(world))
    for scale, of_scale in enumerate(matches):
        chance = float(world.frames.chance[:, scale].mean())
        np.add.at(weights, of_scale.landmark, np.maximum(0.0, of_scale.similarity - chance))
    return _weighed(world, csr_matrix(weights[None]))


def _weighed(world: LandmarkMap, counts: csr_matrix) -> csr_matrix:
    """Many patches of one landmark count little more than one; a landmark that many frames show counts little."""
    shown_by = np.maximum(np.diff(world.sightings.tocsc().indptr), 1)
    rarity = np.log1p(len(world.frames) / shown_by)
    counts.data = np.sqrt(counts.data)
    bags = csr_matrix(counts @ diags(rarity))
    length = np.sqrt(np.asarray(bags.multiply(bags).sum(axis=1)).ravel())
    return csr_matrix(diags(1 / np.maximum(length, 1e-12)) @ bags)
