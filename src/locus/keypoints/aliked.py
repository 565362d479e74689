"""ALIKED (Zhao et al. 2023): keypoints finer than a pixel, with deformable descriptors of 128 dimensions."""

from typing import Any

from torch import Tensor

from locus.keypoints.networks import KorniaDetector, Weights, filled


class Aliked(KorniaDetector):
    """kornia's ALIKED-N(16) with the authors' weights."""

    name = "aliked"
    dimension = 128

    def built(self, kornia: Any, weights: Weights) -> Any:
        network = kornia.ALIKED("aliked-n16", max_num_keypoints=self.count, detection_threshold=0.0)
        return filled(network, weights, derived="dkd.hw_grid")

    def seen(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        output = self.network(pixels)[0]
        return output.keypoints, output.keypoint_scores, output.descriptors
