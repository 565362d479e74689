"""What a batch is: overlapping frames of one or several environments, and the landmarks drawn from their patches.

A batch depends on the seed and the step alone, so that a resumed run and every process of a run draw the same ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from numpy import ndarray
from torch import Tensor

from locus.objective import draw_landmarks
from locus.training.environments import Environment
from locus.training.settings import Settings


@dataclass(frozen=True)
class Batch:
    """Patches of several frames, frame by frame, those of one grid together."""

    sequences: list[tuple[Float[Tensor, "b tokens d"], tuple[int, int]]]
    positions: Float[Tensor, "n 3"]
    environments: Int[Tensor, " n"]
    frames: Int[Tensor, " n"]
    landmarks: Int[Tensor, " m"]

    def share(self, rank: int, count: int) -> "Batch":
        """The part of one of several processes: every `count`-th frame, and the landmarks drawn from those."""
        sequences, first = [], 0
        for tokens, grid in self.sequences:
            if mine := [i for i in range(len(tokens)) if (first + i) % count == rank]:
                sequences.append((tokens[mine], grid))
            first += len(tokens)
        rows = self.frames % count == rank
        number = rows.cumsum(0) - 1
        own = self.landmarks[rows[self.landmarks]]
        return Batch(sequences, self.positions[rows], self.environments[rows], self.frames[rows], number[own])

    def to(self, device: torch.device) -> "Batch":
        """Tokens on a device, the rest where it can be ranked: in float64, which Apple's MPS does not have."""
        ranked_on = torch.device("cpu") if device.type == "mps" else device
        sequences = [(tokens.to(device), grid) for tokens, grid in self.sequences]
        rest = (self.positions, self.environments, self.frames, self.landmarks)
        return Batch(sequences, *(part.to(ranked_on) for part in rest))


def assemble(
    drawn: Sequence[tuple[int, Float[Tensor, "k tokens d"], Float32[ndarray, "k rows columns 3"]]],
    settings: Settings,
    rng: np.random.Generator,
) -> Batch:
    """A batch of (number of the environment, tokens of its frames, their points)."""
    sequences, positions, environments, frames = [], [], [], []
    count = 0
    for number, tokens, points in drawn:
        rows, columns = points.shape[1:3]
        sequences.append((tokens, (rows, columns)))
        positions.append(torch.from_numpy(points).reshape(-1, 3))
        environments.append(torch.full((len(points) * rows * columns,), number))
        frames.append(torch.arange(count, count + len(points)).repeat_interleave(rows * columns))
        count += len(points)
    position, environment, frame = torch.cat(positions), torch.cat(environments), torch.cat(frames)
    landmarks = draw_landmarks(
        position, environment, frame, min(settings.radii), settings.landmarks, rng, settings.sampling
    )
    return Batch(sequences, position, environment, frame, landmarks)


class Sampler:
    """Batches of a run, by step."""

    def __init__(self, environments: Sequence[Environment], settings: Settings) -> None:
        self.environments = list(environments)
        self.settings = settings

    def batch(self, step: int) -> Batch:
        """The batch of a step."""
        rng = np.random.default_rng([self.settings.seed, 0, step])
        count = min(self.settings.environments_per_batch, len(self.environments))
        shares = np.full(count, self.settings.frames_per_batch // count)
        shares[: self.settings.frames_per_batch % count] += 1
        drawn = []
        for number, share in zip(rng.choice(len(self.environments), count, replace=False), shares, strict=True):
            environment = self.environments[number]
            drawn.append((int(number), *environment.read(environment.draw(rng, int(share)), rng)))
        return assemble(drawn, self.settings, rng)
