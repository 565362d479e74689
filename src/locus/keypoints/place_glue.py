"""LighterGlue that knows places: where LoCUS features say two keypoints show the same spot, it looks there first."""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from locus.keypoints.fusion import PlacedKeypoints
from locus.keypoints.lightglue import Glue, assigned

PRIOR = 10.0  # what a cosine of LoCUS features adds to the network's similarity


class PlaceGlue:
    """Matches keypoints by what they look like, where they lie in the image, and where they are in the world."""

    def __init__(self) -> None:
        self.glue = Glue("xfeat")
        self.fingerprint = f"{self.glue.fingerprint} prior {PRIOR}"

    @torch.inference_mode()
    def scores(self, a: PlacedKeypoints, b: PlacedKeypoints) -> Float[Tensor, "n m"]:
        """The logarithm of the probability that a keypoint of A is one of B."""
        scores = self.glue.scores(a.keypoints, b.keypoints)
        if not scores.numel():
            return scores
        cosines = torch.einsum("snc,smc->nm", a.places, b.places) / len(a.places)
        prior = PRIOR * cosines
        return scores + F.log_softmax(prior, dim=0) / 2 + F.log_softmax(prior, dim=1) / 2 + np.log(min(scores.shape))

    def match(self, a: PlacedKeypoints, b: PlacedKeypoints) -> tuple[Int[ndarray, "k 2"], Float[ndarray, " k"]]:
        """Rows of A and of B that are each other's best, and their probability, where it is above 0.1."""
        return assigned(self.scores(a, b), self.glue.threshold)
