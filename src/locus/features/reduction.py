"""The untrained backbone reduced by PCA, plain or whitened: what training has to beat."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from locus.backbones import Backbone
from locus.features.cache import CachedFrames, cache_frames
from locus.model import LoCUS
from locus.model.heads import start_from_pca
from locus.scenes import Scene

FRAMES = 128  # whose patches PCA is fitted to, spread evenly over the scenes
BATCH = 16  # of them embedded at once


@torch.no_grad()
def sample_rows(model: LoCUS, scenes: Sequence[CachedFrames]) -> Float[Tensor, "n d"]:
    """What comes into the head's last linear map, of `FRAMES` frames spread evenly, or of all if there are fewer."""
    device = model.backbone.mean.device
    every = max(1, sum(len(scene.frames) for scene in scenes) // FRAMES)
    rows = [
        model.head.embed(part.to(device), scene.grid).flatten(0, 1)  # ty: ignore[call-non-callable]
        for scene in scenes
        if len(scene.frames) > every // 2
        for part in torch.from_numpy(np.asarray(scene.tokens[every // 2 :: every], np.float32)).split(BATCH)
    ]
    return torch.cat(rows)


def reduced_model(
    backbone: Backbone,
    scenes: Sequence[Scene],
    dimension: int,
    resolution: int | None,
    *,
    whiten: bool,
    blocks: int = 0,
    cache: Path | None = None,
    progress: bool = False,
) -> LoCUS:
    """The backbone, and so many more of its pretrained blocks, with a linear map to principal components on scenes."""
    head = "blocks" if blocks else "linear"
    model = LoCUS(backbone, head=head, blocks=blocks, dimension=dimension, resolution=resolution)
    cached = [cache_frames(scene, backbone, resolution, folder=cache, progress=progress) for scene in scenes]
    start_from_pca(model.head, sample_rows(model, cached), whiten=whiten)
    return model
