"""Networks of kornia with weights from LoCUS's store or from a file; kornia itself never downloads anything."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from locus.backbones.conversion import mismatches, read
from locus.backbones.sources import PICKLED, locate
from locus.backbones.store import WEIGHTS
from locus.errors import LocusError, WeightsError
from locus.files import content_hash
from locus.keypoints.detection import Detector, Image, Keypoints, in_image, resized

Network = TypeVar("Network", bound=nn.Module)


class Weights(NamedTuple):
    """A network's tensors as a file names them."""

    tensors: Mapping[str, Tensor]
    where: Path
    fingerprint: str


def kornia_features() -> Any:
    """kornia's module of features. It takes half a second to import, so only those who use it do."""
    try:
        import kornia.feature
    except ImportError as error:
        raise LocusError(
            f"keypoint networks need kornia ({error}); install it with `pip install kornia`, on Python 3.11 or later"
        ) from None
    return kornia.feature


def read_weights(name: str, given: str | Path | None = None) -> Weights:
    """Those of a name in `locus weights list` or of a Hugging Face id; or of a file or folder given in their place."""
    path = Path(given) if given else locate(name).folder
    if path.is_dir():
        path = next((path / file for file in (WEIGHTS, PICKLED) if (path / file).is_file()), path / WEIGHTS)
    return Weights(read(path), path, content_hash(path))


def filled(network: Network, weights: Weights, derived: str = "") -> Network:
    """The network with exactly these tensors, ready to use; the one that it computes itself may be missing."""
    own = network.state_dict()
    expected = {key: tensor.shape for key, tensor in own.items() if key != derived}
    tensors = {key: tensor for key, tensor in weights.tensors.items() if key != derived}
    if wrong := mismatches(tensors, expected):
        raise WeightsError(f"{weights.where} holds no {type(network).__name__}: {wrong}")
    if bad := [key for key, tensor in tensors.items() if not tensor.isfinite().all()]:
        raise WeightsError(f"{weights.where} has weights that are not numbers ({bad[0]}); make or fetch it again")
    network.load_state_dict({**own, **tensors})
    return network.eval().requires_grad_(False)


class KorniaDetector(Detector):
    """A detector whose network kornia has."""

    def __init__(self, count: int, weights: str | Path | None = None) -> None:
        found = read_weights(self.name, weights)
        self.count = count
        self.network = self.built(kornia_features(), found)
        self.fingerprint = f"{self.name} {found.fingerprint} {count} 1"

    @torch.inference_mode()
    def found(self, image: Image) -> Keypoints:
        pixels = resized(image)
        return in_image(*self.seen(pixels), image, pixels)

    @abstractmethod
    def built(self, kornia: Any, weights: Weights) -> Any:
        """The network, filled with the weights."""

    @abstractmethod
    def seen(self, pixels: Float[Tensor, "1 3 h w"]) -> tuple[Tensor, Tensor, Tensor]:
        """Positions, scores and descriptors of the keypoints of an image."""
