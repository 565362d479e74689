"""What a keypoint is, what finds them, and the detectors by name."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.rows import Rows
from locus.scenes.reading import AnyImage, as_array

SHORTER = 480  # pixels that an image's shorter side is brought to for the networks, about what they were trained on,
LARGER = 2.0  # but enlarged at most so many times
WHOLE = 32  # sides are made multiples of this: the networks halve them five times
DETECTORS = {"xfeat": "XFeat", "aliked": "Aliked", "disk": "Disk", "superpoint": "SuperPoint", "sift": "Sift"}

Image = UInt8[ndarray, "height width 3"]


@dataclass(frozen=True, eq=False)
class Keypoints(Rows):
    """Spots of one image and what they look like, the best first."""

    pixels: Float[ndarray, "n 2"]
    """x and y; the centre of the top-left pixel is at (0.5, 0.5)."""
    scores: Float[ndarray, " n"]
    """How good the detector thinks they are; its own scale."""
    descriptors: Float[Tensor, "n c"]
    """Unit length, float32, on the CPU."""
    size: tuple[int, int]
    """Width and height of the image."""

    def __getitem__(self, rows: slice | Sequence[int] | Int[ndarray, " k"] | Bool[ndarray, " n"]) -> "Keypoints":
        return self.take(rows if isinstance(rows, slice) or len(rows) else slice(0))


class Detector(ABC):
    """Finds the keypoints of an image. The same image always gives the same ones."""

    name: str
    fingerprint: str
    """Of everything that changes its answers, so that keypoints can be kept."""
    count: int
    """How many keypoints an image may have at most."""
    dimension: int
    """Of its descriptors."""

    def detect(self, image: AnyImage) -> Keypoints:
        """Of an image of any size, an array of RGB bytes, a PIL image or a file; none where it has no texture."""
        image = as_array(image)
        if (image == image[0, 0]).all():  # networks would find the artefacts of their own borders
            size = (image.shape[1], image.shape[0])
            return Keypoints(np.zeros((0, 2)), np.zeros(0), torch.zeros(0, self.dimension), size)
        return self.found(image)

    @abstractmethod
    def found(self, image: Image) -> Keypoints:
        """Of an image that has some texture."""


def detector(name: str, count: int = 2048) -> Detector:
    """A detector by its name: xfeat, aliked, disk, superpoint or sift; NAME=FILE takes weights of your own."""
    kind, _, weights = name.partition("=")
    if kind not in DETECTORS or (kind == "sift" and weights):
        raise LocusError(f"{name} is no keypoint detector; known are {', '.join(DETECTORS)}, or NAME=FILE of weights")
    if count < 1:
        raise LocusError(f"a detector finds at least one keypoint, not {count}")
    make = getattr(import_module(f"locus.keypoints.{kind}"), DETECTORS[kind])
    return make(count, weights) if weights else make(count)


def resized(image: Image) -> Float[Tensor, "1 3 h w"]:
    """The image in [0, 1], with a shorter side of `SHORTER` pixels, or less if it is small, and both sides whole."""
    height, width = image.shape[:2]
    factor = min(SHORTER / min(height, width), LARGER)
    size = [max(1, round(side * factor / WHOLE)) * WHOLE for side in (width, height)]
    pixels = cv2.resize(image, size, interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR)
    return torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255


def in_image(
    positions: Float[Tensor, "n 2"],
    scores: Float[Tensor, " n"],
    descriptors: Float[Tensor, "n c"],
    image: Image,
    resized: Float[Tensor, "1 3 h w"],
) -> Keypoints:
    """Keypoints as a network gives them, with pixel centres at whole numbers of the resized image, best first."""
    height, width = image.shape[:2]
    order = scores.argsort(descending=True, stable=True)
    ratio = np.array([width / resized.shape[3], height / resized.shape[2]])
    pixels = (positions[order].double().numpy() + 0.5) * ratio
    unit = F.normalize(descriptors[order].float(), dim=-1)
    return Keypoints(pixels, scores[order].double().numpy(), unit, (width, height))
