"""What every backbone is: a frozen module from images to a grid of patch tokens."""

import hashlib
from abc import ABC, abstractmethod
from functools import cached_property

import cv2
import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from locus.errors import LocusError
from locus.scenes.reading import AnyImage, as_array

MIN_PIXELS = 32  # a smaller side holds nothing to recognise


class BackboneError(LocusError):
    """A backbone that cannot be built, or an image it cannot take."""


class Backbone(nn.Module, ABC):
    """A frozen network. Subclasses say what its tokens are; this class knows how images become its input.

    `name`: what it is called in prints and files. `patch_size`: pixels between neighbouring tokens (the stride of a
    convolutional network). `dimension`: length of a token. `prefix`: how many tokens without a position (class,
    registers) come before those of the patches. `layer`: how many blocks (stages of a convolutional network) are run.
    `norm`: whether the network's final norm is applied. `architecture`: what the shapes of its weights do not tell.
    """

    name: str
    patch_size: int
    dimension: int
    prefix: int
    layer: int
    norm: bool
    architecture: str = ""
    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, ...] = (0.0,) * 3, std: tuple[float, ...] = (1.0,) * 3) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(3, 1, 1), persistent=False)

    @abstractmethod
    def sequence(self, images: Float[Tensor, "b 3 height width"]) -> tuple[Float[Tensor, "b n d"], tuple[int, int]]:
        """All tokens of normalised images, those without a position first, then row by row; and the (rows, columns)."""

    def forward(
        self, images: UInt8[Tensor, "b 3 height width"] | Float[Tensor, "b 3 height width"]
    ) -> tuple[Float[Tensor, "b n d"], tuple[int, int]]:
        """All tokens of RGB images (bytes, or floats in [0, 1]), and the grid they form after the first `prefix`.

        A side that is not a whole number of patches loses the rest on the right or at the bottom, as these networks do
        (a convolutional one pads instead); `prepare` resizes so that nothing is lost.
        """
        height, width = images.shape[-2:]
        if min(height, width) < self.patch_size:
            raise BackboneError(f"an image of {width}×{height} pixels is smaller than a patch of {self.name}")
        brightest = 1 if images.is_floating_point() else 255
        images = images.to(self.mean.dtype) / brightest
        return self.sequence((images - self.mean) / self.std)

    @torch.no_grad()
    def tokens(
        self, images: UInt8[Tensor, "b 3 height width"] | Float[Tensor, "b 3 height width"]
    ) -> Float[Tensor, "b h w d"]:
        """The patch tokens of RGB images (bytes, or floats in [0, 1])."""
        sequence, (rows, columns) = self(images)
        return sequence[:, self.prefix :].unflatten(1, (rows, columns))

    def size(self, width: int, height: int, resolution: int | None = None) -> tuple[int, int]:
        """The whole number of patches, in pixels, nearest to an image's (width, height).

        With a resolution, of the image scaled so that its shorter side has that many pixels.
        """
        if min(width, height) < MIN_PIXELS:
            raise BackboneError(f"an image of {width}×{height} pixels is too small; {MIN_PIXELS} is the least")
        scale = 1.0 if resolution is None else resolution / min(width, height)
        step = self.patch_size
        return max(step, round(width * scale / step) * step), max(step, round(height * scale / step) * step)

    def prepare(self, image: AnyImage, resolution: int | None = None) -> UInt8[Tensor, "3 rows columns"]:
        """An image resized to whole patches, so that the grid of tokens spans all of it."""
        image = as_array(image)
        height, width = image.shape[:2]
        size = self.size(width, height, resolution)
        if size != (width, height):
            shrinks = size[0] * size[1] < width * height
            image = cv2.resize(image, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that tells what tokens come out: weights, blocks that are run, mean and deviation of pixels."""
        what = (type(self).__name__, self.architecture, self.layer, self.norm, self.patch_size)
        digest = hashlib.sha256(" ".join(map(str, what)).encode())
        digest.update(f"{self.mean.flatten().tolist()} {self.std.flatten().tolist()}".encode())
        for name, weight in sorted(self.state_dict().items()):
            if not name.endswith("mask_token"):  # serves pretraining alone, and not every published file has it
                digest.update(f"{name} {tuple(weight.shape)}".encode())
                digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]
