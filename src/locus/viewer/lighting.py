"""What lights up for a click: whatever is similar, in the cloud, in every view and among the landmarks."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float32
from numpy import ndarray
from torch import Tensor

from locus.pages.pictures import enlarged
from locus.tasks.cosegmentation import similarity
from locus.viewer.cloud import Cloud


@dataclass(frozen=True, eq=False)
class Lit:
    """What is similar enough to a query: in the views' small images, in the cloud, and of the landmarks.

    A view's score is the similarity of its most similar patch.
    """

    masks: Bool[ndarray, "frames h w"]
    scores: Float32[ndarray, " frames"]
    points: Bool[ndarray, " n"]
    landmarks: Bool[ndarray, " m"]

    @property
    def views(self) -> Bool[ndarray, " frames"]:
        """Where something is lit."""
        return np.array([mask.any() for mask in self.masks])

    def best(self, count: int) -> list[int]:
        """Rows of the views that show it, the most similar first."""
        order = np.argsort(-self.scores, kind="stable")
        return [int(row) for row in order if self.views[row]][:count]


def light(
    query: Float[Tensor, " c"],
    features: Float[Tensor, "frames rows columns c"],
    cloud: Cloud,
    size: tuple[int, int],
    landmarks: Float32[ndarray, "m c"],
    threshold: float,
) -> Lit:
    """Everything whose similarity (cosine) to a unit-length query reaches the threshold.

    A point of the cloud is lit where the pixel it came from is, in the view's small image of `size` (width, height), so
    that 3D and views say the same. Landmarks are given by their embeddings.
    """
    similar = similarity(query, features)
    masks = np.stack([enlarged(of_view, size) for of_view in similar]) >= threshold
    points = masks.reshape(len(masks), -1)[cloud.frame, cloud.pixel]
    known = landmarks @ query.float().numpy() >= threshold
    return Lit(masks, similar.max(axis=(1, 2)), points, known)
