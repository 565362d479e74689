"""The untrained backbone reduced by PCA, plain and whitened: what training has to beat, and where heads start."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from locus.features.cache import CachedScene
from locus.features.reduction import sample_tokens
from locus.model import LoCUS

BATCH = 16  # frames embedded at once


def untrained(model: LoCUS) -> LoCUS:
    """The model that PCA starts: itself, or, since the paper's head starts at random, a linear one beside it."""
    if model.config["head"] != "paper":
        return model
    linear = LoCUS(model.backbone, dimension=model.dimension, radii=model.radii, head="linear")
    return linear.to(model.backbone.mean.device)


@torch.no_grad()
def sample_rows(model: LoCUS, scenes: Sequence[CachedScene]) -> Float[Tensor, "n d"]:
    """What comes into the head's last linear map, of frames spread evenly over scenes."""
    device = model.backbone.mean.device
    rows = [
        model.head.embed(part.to(device), grid).flatten(0, 1)  # ty: ignore[call-non-callable]
        for tokens, grid in sample_tokens(scenes)
        for part in tokens.split(BATCH)
    ]
    return torch.cat(rows)
