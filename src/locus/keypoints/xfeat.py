"""XFeat (Potje et al. 2024): small, quick, 64 dimensions."""

from pathlib import Path

import torch

from locus.keypoints.detection import Detector, Image, Keypoints, in_image, resized
from locus.keypoints.networks import filled, kornia_features, read_weights


class XFeat(Detector):
    """kornia's XFeat with the authors' weights."""

    name = "xfeat"
    dimension = 64

    def __init__(self, count: int, weights: str | Path | None = None) -> None:
        kornia, found = kornia_features(), read_weights(self.name, weights)
        self.count = count
        self.network = kornia.XFeat(top_k=count).eval()
        filled(self.network.net, found)
        self.fingerprint = f"xfeat {found.fingerprint} {count} 1"

    @torch.inference_mode()
    def found(self, image: Image) -> Keypoints:
        pixels = resized(image)  # in whole blocks, so that kornia does not resize it again
        output = self.network.detectAndCompute(pixels)[0]
        return in_image(output["keypoints"], output["scores"], output["descriptors"], image, pixels)
