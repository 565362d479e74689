"""The untrained backbone reduced by PCA, plain and whitened: what training has to beat, and where heads start."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from locus.model import LoCUS
from locus.model.pca import principal_components
from locus.training.batches import Sampler
from locus.training.validation import Features

FRAMES = 128  # of the training places, whose tokens PCA is fitted to


def embedded(model: LoCUS, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b patches c"]:
    """What PCA is fitted to: the input of the head's last map, or of the paper's head, which starts at random."""
    if model.config["head"] == "paper":
        return sequence[:, model.backbone.prefix :]
    return model.head.embed(sequence, grid)  # ty: ignore[call-non-callable]


@torch.no_grad()
def sample_rows(model: LoCUS, sampler: Sampler, device: torch.device) -> Float[Tensor, "n d"]:
    """Embedded patches of random training frames."""
    rows: list[Tensor] = []
    frames = step = 0
    while frames < FRAMES and step < FRAMES:
        for sequence, grid in sampler.batch(step, stream=1).to(device).through(model.backbone).sequences:
            rows.append(embedded(model, sequence, grid).flatten(0, 1))
            frames += len(sequence)
        step += 1
    return torch.cat(rows)


def pca_features(model: LoCUS, rows: Float[Tensor, "n d"], whiten: bool) -> Features:
    """Features of the untrained backbone: unit-length principal components."""
    components = principal_components(rows, min(model.dimension, *rows.shape), whiten=whiten)

    def features(sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "1 b rows columns c"]:
        reduced = components(embedded(model, sequence, grid))
        return F.normalize(reduced, dim=-1).unflatten(1, grid)[None]

    return features
