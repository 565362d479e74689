"""ALIKED (Zhao et al. 2023): keypoints finer than a pixel, with deformable descriptors of 128 dimensions."""

from pathlib import Path

import torch

from locus.keypoints.detection import Detector, Image, Keypoints, in_image, resized
from locus.keypoints.networks import filled, kornia_features, read_weights


class Aliked(Detector):
    """kornia's ALIKED-N(16) with the authors' weights."""

    name = "aliked"
    dimension = 128

    def __init__(self, count: int, weights: str | Path | None = None) -> None:
        kornia, found = kornia_features(), read_weights(self.name, weights)
        self.count = count
        network = kornia.ALIKED("aliked-n16", max_num_keypoints=count, detection_threshold=0.0)
        self.network = filled(network, found, derived="dkd.hw_grid")
        self.fingerprint = f"aliked {found.fingerprint} {count} 1"

    @torch.inference_mode()
    def found(self, image: Image) -> Keypoints:
        pixels = resized(image)
        output = self.network(pixels)[0]
        return in_image(output.keypoints, output.keypoint_scores, output.descriptors, image, pixels)
