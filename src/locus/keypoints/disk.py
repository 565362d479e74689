"""DISK (Tyszkiewicz et al. 2020): keypoints learned by reinforcement, 128 dimensions."""

from typing import Any

from torch import Tensor

from locus.keypoints.networks import KorniaDetector, Weights, filled


class Disk(KorniaDetector):
    """kornia's DISK with the authors' weights that were trained with depth."""

    name = "disk"
    dimension = 128

    def built(self, kornia: Any, weights: Weights) -> Any:
        tensors = {key.removeprefix("extractor."): tensor for key, tensor in weights.tensors.items()}
        return filled(kornia.DISK(), weights._replace(tensors=tensors))

    def seen(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        output = self.network(pixels, n=self.count)[0]
        return output.keypoints, output.detection_scores, output.descriptors
