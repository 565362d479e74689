"""Exact AP on fixed batches of environments: of the model, and of the untrained backbone reduced by PCA."""

import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

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
PAIRS = {"all pairs": False, "cross-view": True}  # whether those within one frame are left out
Precision = dict[str, float]  # by those names


def fixed_batches(environments: Sequence[Environment], settings: Settings, each: int = 2) -> list[Batch]:
    """So many batches of each environment, the same in every validation, whichever others are validated with it."""
    settings = replace(settings, landmarks=LANDMARKS, sampling="patches")
    batches = []
    for number, environment in enumerate(environments):
        for index in range(each):
            rng = np.random.default_rng([20231, zlib.crc32(environment.name.encode()), index])
            frames = environment.draw(rng, settings.frames_per_batch)
            batches.append(assemble([(number, *environment.read(frames))], settings, rng))
    return [batch for batch in batches if len(batch.landmarks)]


@torch.no_grad()
def precision(features: Features, batches: Sequence[Batch], settings: Settings) -> dict[int, Precision]:
    """Exact AP by environment, mean over its batches and over scales."""
    found: dict[int, list[Precision]] = {}
    for batch in batches:
        maps = torch.cat([features(*sequence).flatten(1, 3) for sequence in batch.sequences], dim=1)
        maps = maps.to(batch.positions.device)
        geometry = (batch.positions, batch.environments, batch.frames, batch.landmarks)
        for scale, radius in enumerate(settings.radii):
            rankings = {name: ExactRanking(radius, settings.kappa, apart) for name, apart in PAIRS.items()}
            values = {name: float(rank(maps[scale], *geometry).average_precision) for name, rank in rankings.items()}
            found.setdefault(int(batch.environments[0]), []).append(values)
    return {number: mean(values) for number, values in found.items()}


def mean(precisions: Collection[Precision]) -> Precision:
    """Each counted once."""
    return {name: float(np.mean([each[name] for each in precisions])) for name in PAIRS}
