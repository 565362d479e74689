"""What a batch is: overlapping frames of one or several places, and the landmarks drawn from their patches.

A batch depends on the seed and the step alone, so that a resumed run and every process of a run draw the same ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, UInt8
from numpy import ndarray
from torch import Tensor

from locus.backbones import Backbone
from locus.features.cache import CachedScene
from locus.objective import draw_landmarks
from locus.scenes.drawing import draw_frames
from locus.training.live import LiveScene
from locus.training.settings import Settings

# What a frame is to a batch: its tokens, or the pixels that they are still to be made from.
Sequences = Float[Tensor, "b tokens d"] | UInt8[Tensor, "b 3 h w"]


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a plane in the world: where `direction` leads at least `least` far."""

    direction: Float[ndarray, " 3"]
    least: float

    @property
    def other(self) -> "Side":
        return Side(-self.direction, float(np.nextafter(-self.least, np.inf)))

    def of(self, points: Float32[ndarray, "*rest 3"]) -> Float32[ndarray, "*rest 3"]:
        """Points on this side; NaN in place of the others."""
        return np.where((points @ self.direction >= self.least)[..., None], points, np.float32(np.nan))


@dataclass(frozen=True)
class Environment:
    """A place: a scene that is read live; or its cache, and the caches of its augmented copies."""

    scenes: Sequence[CachedScene] | Sequence[LiveScene]
    """The scene as it is first."""
    usable: Int[ndarray, " k"]
    """Frames that may be drawn."""
    side: Side | None = None
    """The part of the place that is meant, if not all of it."""

    @property
    def name(self) -> str:
        return self.scenes[0].name

    def draw(self, rng: np.random.Generator, count: int) -> Int[ndarray, " drawn"]:
        """A random frame, and others by their overlap with it."""
        return draw_frames(self.scenes[0].overlap, self.usable, rng, count)

    def read(
        self, frames: Int[ndarray, " k"], rng: np.random.Generator | None = None
    ) -> tuple[Sequences, Float32[ndarray, "k rows columns 3"]]:
        """Tokens (pixels, if live) and points of frames as they are; with `rng`, of a random copy of each."""
        sequences, points = self._read(frames, rng)
        return sequences, points if self.side is None else self.side.of(points)

    def _read(
        self, frames: Int[ndarray, " k"], rng: np.random.Generator | None
    ) -> tuple[Sequences, Float32[ndarray, "k rows columns 3"]]:
        first = self.scenes[0]
        if isinstance(first, LiveScene):
            return first.read(frames, rng)
        copies = np.zeros_like(frames) if rng is None else rng.integers(len(self.scenes), size=len(frames))
        chosen = [(self.scenes[copy], frame) for copy, frame in zip(copies, frames, strict=True)]
        tokens = np.stack([scene.tokens[frame] for scene, frame in chosen])
        return torch.from_numpy(tokens).float(), np.stack([scene.points[frame] for scene, frame in chosen])


@dataclass(frozen=True)
class Batch:
    """Patches of several frames, frame by frame, those of one grid together."""

    sequences: list[tuple[Sequences, tuple[int, int]]]
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
        sequences = [(tokens.to(device), grid) for tokens, grid in self.sequences]
        rest = (self.positions, self.environments, self.frames, self.landmarks)
        return Batch(sequences, *(part.to(device) for part in rest))

    @torch.no_grad()
    def through(self, backbone: Backbone) -> "Batch":
        """With the frozen backbone's tokens wherever there are pixels."""
        made = [(backbone(part)[0] if part.dtype == torch.uint8 else part, grid) for part, grid in self.sequences]
        return replace(self, sequences=made)


def assemble(
    drawn: Sequence[tuple[int, Sequences, Float32[ndarray, "k rows columns 3"]]],
    settings: Settings,
    rng: np.random.Generator,
) -> Batch:
    """A batch of (number of the place, its frames as read, their points)."""
    sequences, positions, environments, frames = [], [], [], []
    count = 0
    for number, sequence, points in drawn:
        rows, columns = points.shape[1:3]
        sequences.append((sequence, (rows, columns)))
        positions.append(torch.from_numpy(points).reshape(-1, 3))
        environments.append(torch.full((len(points) * rows * columns,), number))
        frames.append(torch.arange(count, count + len(points)).repeat_interleave(rows * columns))
        count += len(points)
    place, environment_of, frame_of = torch.cat(positions), torch.cat(environments), torch.cat(frames)
    landmarks = draw_landmarks(
        place, environment_of, frame_of, min(settings.radii), settings.landmarks, rng, settings.sampling
    )
    return Batch(sequences, place, environment_of, frame_of, landmarks)


class Sampler:
    """Batches of a run, by step."""

    def __init__(self, environments: Sequence[Environment], settings: Settings) -> None:
        self.environments = list(environments)
        self.settings = settings

    def batch(self, step: int, stream: int = 0) -> Batch:
        """The batch of a step; another stream gives other batches, for what is no part of training."""
        rng = np.random.default_rng([self.settings.seed, stream, step])
        places = min(self.settings.environments_per_batch, len(self.environments))
        shares = np.full(places, self.settings.frames // places)
        shares[: self.settings.frames % places] += 1
        drawn = []
        for number, share in zip(rng.choice(len(self.environments), places, replace=False), shares, strict=True):
            environment = self.environments[number]
            drawn.append((int(number), *environment.read(environment.draw(rng, int(share)), rng)))
        return assemble(drawn, self.settings, rng)
