"""Colour and gradient statistics: a backbone without weights, for tests and as the least one should beat."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from locus.backbones.backbone import Backbone

CELLS = 2  # a patch is described by 2×2 cells
ORIENTATIONS = 8


class Classic(Backbone):
    """Of each quarter of a patch: mean and spread of three opponent colours, and a histogram of gradient directions."""

    name = "classic"
    patch_size = 14
    dimension = CELLS**2 * (6 + ORIENTATIONS)
    prefix = 0
    layer = 1
    norm = False
    black: Tensor

    def __init__(self) -> None:
        super().__init__()
        grey, red_green, yellow_blue = (1 / 3, 1 / 3, 1 / 3), (0.5, -0.5, 0.0), (0.25, 0.25, -0.5)
        self.register_buffer("opponent", torch.tensor([grey, red_green, yellow_blue]), persistent=False)
        # Black is not quite 0: a patch of nothing else would be a feature without a direction.
        self.register_buffer("black", torch.tensor([1e-5, 0, 0]).view(3, 1, 1))  # kept: a part of the fingerprint

    def sequence(self, images: Float[Tensor, "b 3 height width"]) -> tuple[Float[Tensor, "b n d"], tuple[int, int]]:
        rows, columns = images.shape[-2] // self.patch_size, images.shape[-1] // self.patch_size
        images = images[..., : rows * self.patch_size, : columns * self.patch_size]
        colours = torch.einsum("kc,bchw->bkhw", self.opponent, images) + self.black
        cell = self.patch_size // CELLS
        mean = F.avg_pool2d(colours, cell)
        spread = (F.avg_pool2d(colours**2, cell) - mean**2).clamp(min=0).sqrt()
        histogram = F.avg_pool2d(_oriented_gradients(colours[:, :1]), cell)
        # Colours differ by tenths, gradients of whole cells by hundredths; the root evens them out.
        cells = torch.cat([mean, spread, histogram.sqrt()], dim=1)
        return F.pixel_unshuffle(cells, CELLS).flatten(2).transpose(1, 2), (rows, columns)


def _oriented_gradients(grey: Float[Tensor, "b 1 h w"]) -> Float[Tensor, "b orientations h w"]:
    """The gradient's length, shared between the two nearest of eight directions."""
    padded = F.pad(grey, (1, 1, 1, 1), mode="replicate")
    dx = (padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]) / 2
    dy = (padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]) / 2
    turn = torch.atan2(dy, dx) / (2 * math.pi) * ORIENTATIONS
    directions = torch.arange(ORIENTATIONS, device=grey.device).view(1, -1, 1, 1)
    apart = torch.remainder(turn - directions + ORIENTATIONS / 2, ORIENTATIONS) - ORIENTATIONS / 2
    return (1 - apart.abs()).clamp(min=0) * (dx**2 + dy**2).sqrt()  # ONNX has no hypot
