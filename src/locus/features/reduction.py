"""The untrained backbone reduced by PCA, plain or whitened: what training has to beat."""

from collections.abc import Callable, Sequence
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


def sample_tokens(scenes: Sequence[CachedFrames]) -> list[tuple[Float[Tensor, "b n d"], tuple[int, int]]]:
    """Tokens of `FRAMES` frames spread evenly over scenes, or of all if there are fewer, with their grids."""
    every = max(1, sum(len(scene.frames) for scene in scenes) // FRAMES)
    return [
        (torch.from_numpy(np.asarray(scene.tokens[every // 2 :: every], np.float32)), scene.grid)
        for scene in scenes
        if len(scene.frames) > every // 2
    ]


@torch.no_grad()
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
    embed: Callable[..., Tensor] = model.head.embed  # ty: ignore[invalid-assignment]  nn.Module knows no methods
    rows = torch.cat([embed(tokens, grid).flatten(0, 1) for tokens, grid in sample_tokens(cached)])
    start_from_pca(model.head, rows, whiten=whiten)
    return model
