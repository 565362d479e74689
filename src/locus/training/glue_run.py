"""Training of the matcher of placed keypoints: LighterGlue, from its published weights, on pairs with known depth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor

from locus.checksums import sealed_tensors
from locus.errors import LocusError
from locus.files import atomic
from locus.keypoints import detector
from locus.keypoints.place_glue import PlaceGlueNetwork
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Scene
from locus.training.glue_pairs import NONE, GluePair, PlacedFrames, draw_pair

KEYPOINTS = 2048  # found in a frame
PLACES_FASTER = 100.0  # times the rate: for the few numbers that multiply LoCUS similarities
WARMUP = 30  # steps
WRITE_EVERY = 200  # steps: what an interrupted run leaves
LONGEST = 1.0  # norm of a gradient


@dataclass(frozen=True)
class GlueSettings:
    """How to train a matcher."""

    steps: int = 1800
    """Optimiser steps."""
    pairs_per_step: int = 2
    """Pairs of frames a step learns from."""
    keypoints: int = 1024
    """Keypoints of a frame that a step looks at, drawn from those found."""
    learning_rate: float = 1e-4
    seed: int = 0
    """Same seed, same machine, same result."""

    def __post_init__(self) -> None:
        for name in ("steps", "pairs_per_step", "keypoints"):
            if getattr(self, name) < 1:
                raise LocusError(f"{name.replace('_', ' ')} must be at least 1, not {getattr(self, name)}")

    def rate(self, step: int) -> float:
        """The share of the learning rate that a step, counted from 0, uses."""
        return min(1.0, (step + 1) / WARMUP) * (0.5 + 0.5 * math.cos(math.pi * step / self.steps))


@dataclass(frozen=True)
class GlueSummary:
    """What a run came to, first and last tenth of the steps: the loss, and the share of true matches it names first."""

    loss: tuple[float, float]
    found: tuple[float, float]


def train_glue(
    scenes: Sequence[Scene],
    model: LoCUS,
    out: Path,
    settings: GlueSettings = GlueSettings(),  # noqa: B008  frozen
    progress: bool = False,
) -> GlueSummary:
    """Train on scenes with depth, and write the weights, in half precision, to `out`."""
    torch.manual_seed(settings.seed)
    random = np.random.default_rng(settings.seed)
    finder = detector("xfeat", KEYPOINTS)
    seen = [PlacedFrames.of(scene, model, finder) for scene in track(scenes, "scenes", len(scenes), progress)]
    seen = [each for each in seen if len(each.pairs)]
    if not seen:
        raise LocusError("no two frames of any scene overlap enough to learn matching from")
    network = PlaceGlueNetwork.untrained().train().requires_grad_(True)
    optimiser, said = optimiser_of(network, settings), []
    for step in track(range(settings.steps), "training", settings.steps, progress):
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * settings.rate(step)
        optimiser.zero_grad()
        for _ in range(settings.pairs_per_step):
            pair = draw_pair(seen, random, settings.keypoints)
            scores = network(pair.a, pair.b)
            loss = loss_of(scores, pair)
            (loss / settings.pairs_per_step).backward()
            said.append((float(loss.detach()), found(scores.detach(), pair)))
        torch.nn.utils.clip_grad_norm_(network.parameters(), LONGEST)
        optimiser.step()
        if (step + 1) % WRITE_EVERY == 0 or step + 1 == settings.steps:
            with atomic(out) as file:
                halves = {name: tensor.half() for name, tensor in network.state_dict().items()}
                file.write_bytes(sealed_tensors(save(halves)))
    tenth = max(1, len(said) // 10)
    (loss_first, found_first), (loss_last, found_last) = (
        np.mean(part, axis=0) for part in (said[:tenth], said[-tenth:])
    )
    return GlueSummary((loss_first, loss_last), (found_first, found_last))


def optimiser_of(network: PlaceGlueNetwork, settings: GlueSettings) -> torch.optim.Optimizer:
    """The published network learns slowly; the numbers that weigh places, which it never had, fast."""
    published = list(network.glue.parameters())
    places = [network.attention, network.similarity, network.matchability]
    rate = settings.learning_rate
    groups = [{"params": published, "peak": rate}, {"params": places, "peak": PLACES_FASTER * rate}]
    return torch.optim.AdamW(groups, lr=rate, weight_decay=0.0)


def loss_of(scores: Float[Tensor, "n_and_none m_and_none"], pair: GluePair) -> Float[Tensor, ""]:
    """LightGlue's: minus the mean logarithm of the probability of what is true, matches and the unmatched in halves."""
    rows = np.flatnonzero(pair.of_a >= 0)
    matches = scores[rows, pair.of_a[rows]].mean()
    alone_a, alone_b = scores[:-1, -1][pair.of_a == NONE].mean(), scores[-1, :-1][pair.of_b == NONE].mean()
    return -(matches / 2 + alone_a / 4 + alone_b / 4)


def found(scores: Float[Tensor, "n_and_none m_and_none"], pair: GluePair) -> float:
    """The share of A's keypoints with a partner for which it is the likeliest."""
    rows = np.flatnonzero(pair.of_a >= 0)
    return float((scores[:-1, :-1].argmax(dim=1).numpy()[rows] == pair.of_a[rows]).mean())
