"""SuperPoint (DeTone et al. 2018): keypoints learned from synthetic corners, 256 dimensions."""

from pathlib import Path

import torch

from locus.backbones.pretrained import configuration, pretrained
from locus.backbones.sources import locate
from locus.files import content_hash
from locus.keypoints.detection import Detector, Image, Keypoints, in_image, resized

HUB = "magic-leap-community/superpoint"


class SuperPoint(Detector):
    """SuperPoint of the transformers library."""

    name = "superpoint"

    def __init__(self, count: int, weights: str | Path = HUB) -> None:
        located = locate(weights)
        self.count = count
        config = configuration(located.folder)
        self.network = pretrained("SuperPointForKeypointDetection", located.folder, config)
        self.dimension = config.descriptor_decoder_dim
        self.fingerprint = f"superpoint {content_hash(config.to_dict(), *sorted(located.folder.iterdir()))} {count} 1"

    @torch.inference_mode()
    def found(self, image: Image) -> Keypoints:
        pixels = resized(image)
        grey = pixels.mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)
        output = self.network(grey)
        there = output.mask[0].bool()
        positions = output.keypoints[0][there] * torch.tensor([pixels.shape[3], pixels.shape[2]])  # it gives shares
        found = in_image(positions, output.scores[0][there], output.descriptors[0][there], image, pixels)
        return found[: self.count]
