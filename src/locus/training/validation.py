"""Exact AP on fixed batches of environments: of the model, and of the untrained backbone reduced by PCA."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from locus.objective import ExactRanking
from locus.training.batches import Batch, assemble
from locus.training.environments import Environment
from locus.training.settings import Settings

Features = Callable[[Float[Tensor, "b tokens d"], tuple[int, int]], Float[Tensor, "scales b rows columns c"]]

LANDMARKS = 256  # AP of this many landmarks a batch; every patch is ranked


@dataclass(frozen=True)
class Precision:
    """Exact AP, mean over batches, environments and scales."""

    all_pairs: float
    cross_view: float
    """Pairs within one frame left out."""


def fixed_batches(environments: Sequence[Environment], settings: Settings, each: int = 2) -> list[Batch]:
    """So many batches of each environment, the same in every validation, whichever others are validated with it."""
    settings = replace(settings, landmarks=LANDMARKS, sampling="patches")
    batches = []
    for number, environment in enumerate(environments):
        for index in range(each):
            rng = np.random.default_rng([20231, zlib.crc32(environment.name.encode()), index])
            frames = environment.draw(rng, settings.frames)
            batches.append(assemble([(number, *environment.read(frames))], settings, rng))
    return [batch for batch in batches if len(batch.landmarks)]


@torch.no_grad()
def precision(features: Features, batches: Sequence[Batch], settings: Settings) -> dict[int, Precision]:
    """AP by environment."""
    found: dict[int, list[tuple[float, float]]] = {}
    for batch in batches:
        maps = torch.cat([features(*sequence).flatten(1, 3) for sequence in batch.sequences], dim=1)
        maps = maps.to(batch.positions.device)
        number = int(batch.environments[0])
        for scale, radius in enumerate(settings.radii):
            geometry = (batch.positions, batch.environments, batch.frames, batch.landmarks)
            both, cross = (
                ExactRanking(radius, settings.kappa, apart)(maps[scale], *geometry) for apart in (False, True)
            )
            found.setdefault(number, []).append((float(both.average_precision), float(cross.average_precision)))
    return {number: Precision(*np.mean(values, axis=0).tolist()) for number, values in found.items()}


def mean(precisions: dict[int, Precision]) -> Precision:
    """Over environments, each counted once."""
    values = np.mean([(each.all_pairs, each.cross_view) for each in precisions.values()], axis=0)
    return Precision(*values.tolist())
