"""DISK (Tyszkiewicz et al. 2020): keypoints learned by reinforcement, 128 dimensions."""

from pathlib import Path

import torch

from locus.keypoints.detection import Detector, Image, Keypoints, in_image, resized
from locus.keypoints.networks import filled, kornia_features, read_weights


class Disk(Detector):
    """kornia's DISK with the authors' weights that were trained with depth."""

    name = "disk"
    dimension = 128

    def __init__(self, count: int, weights: str | Path | None = None) -> None:
        kornia, found = kornia_features(), read_weights(self.name, weights)
        self.count = count
        tensors = {key.removeprefix("extractor."): tensor for key, tensor in found.tensors.items()}
        self.network = filled(kornia.DISK(), found._replace(tensors=tensors))
        self.fingerprint = f"disk {found.fingerprint} {count} 1"

    @torch.inference_mode()
    def found(self, image: Image) -> Keypoints:
        pixels = resized(image)
        output = self.network(pixels, n=self.count)[0]
        return in_image(output.keypoints, output.detection_scores, output.descriptors, image, pixels)
