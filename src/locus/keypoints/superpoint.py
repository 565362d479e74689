"""SuperPoint (DeTone et al. 2018): keypoints learned from synthetic corners, 256 dimensions."""

from pathlib import Path

import torch

from locus.backbones.conversion import mismatches, read
from locus.backbones.pretrained import configuration, pretrained
from locus.backbones.sources import locate
from locus.errors import WeightsError
from locus.files import content_hash
from locus.keypoints.detection import Detector, Image, Keypoints, in_image, resized

HUB = "magic-leap-community/superpoint"
# Its authors' names of layers (superpoint_v1.pth), and those of the transformers library.
AUTHORS = {f"conv{k + 1}{letter}": f"encoder.conv_blocks.{k}.conv_{letter}" for k in range(4) for letter in "ab"}
AUTHORS |= {f"convP{letter}": f"keypoint_decoder.conv_score_{letter}" for letter in "ab"}
AUTHORS |= {f"convD{letter}": f"descriptor_decoder.conv_descriptor_{letter}" for letter in "ab"}


class SuperPoint(Detector):
    """SuperPoint of the transformers library; with its authors' file, superpoint_v1.pth, too."""

    name = "superpoint"

    def __init__(self, count: int, weights: str | Path = HUB) -> None:
        self.count = count
        if Path(weights).is_file():
            self._from_authors(Path(weights))
            return
        located = locate(weights)
        config = configuration(located.folder)
        self.network = pretrained("SuperPointForKeypointDetection", located.folder, config)
        self.dimension = config.descriptor_decoder_dim
        self.fingerprint = f"superpoint {content_hash(config.to_dict(), *sorted(located.folder.iterdir()))} {count} 1"

    def _from_authors(self, file: Path) -> None:
        import transformers

        config = transformers.SuperPointConfig()
        network = transformers.SuperPointForKeypointDetection(config)
        tensors = {}
        for name, tensor in read(file).items():
            layer, _, part = name.rpartition(".")
            tensors[f"{AUTHORS.get(layer, layer)}.{part}"] = tensor
        if wrong := mismatches(tensors, {name: tensor.shape for name, tensor in network.state_dict().items()}):
            raise WeightsError(f"{file} is not superpoint_v1.pth: {wrong}")
        network.load_state_dict(tensors)
        self.network = network.eval().requires_grad_(False)
        self.dimension = config.descriptor_decoder_dim
        self.fingerprint = f"superpoint {content_hash(file)} {self.count} 1"

    @torch.inference_mode()
    def found(self, image: Image) -> Keypoints:
        pixels = resized(image)
        grey = pixels.mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)
        output = self.network(grey)
        there = output.mask[0].bool()
        positions = output.keypoints[0][there] * torch.tensor([pixels.shape[3], pixels.shape[2]])  # it gives shares
        found = in_image(positions, output.scores[0][there], output.descriptors[0][there], image, pixels)
        return found[: self.count]
