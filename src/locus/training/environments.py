"""Environments to train on and to validate on: each a scene, its tokens cached, and the frames that may be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from numpy import ndarray
from torch import Tensor

from locus.backbones import Backbone
from locus.features.cache import CachedScene, cache_bytes, cache_scene
from locus.scenes import Scene
from locus.scenes.covisibility import draw_frames
from locus.training.settings import Settings, TrainingError

HELD_OUT = 0.25  # share of a single scene's patches kept for validation
FEWEST = 4  # frames that must see either part of it


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a plane in the world: the points whose coordinate along `direction` is at least `least`."""

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
    """A place with coordinates of its own, as one scene shows it."""

    copies: Sequence[CachedScene]
    """The scene as it is, and augmented copies of it: the same frames in the same order."""
    usable: Int[ndarray, " k"]
    """Frames that may be drawn."""
    side: Side | None = None
    """The part of the environment that counts; by default all of it."""

    @property
    def scene(self) -> CachedScene:
        """The scene as it is."""
        return self.copies[0]

    @property
    def name(self) -> str:
        return self.scene.name

    def draw(self, rng: np.random.Generator, count: int) -> Int[ndarray, " drawn"]:
        """A random frame, and others by their overlap with it."""
        return draw_frames(self.scene.overlap, self.usable, rng, count)

    def read(
        self, frames: Int[ndarray, " k"], rng: np.random.Generator | None = None
    ) -> tuple[Float[Tensor, "k tokens d"], Float32[ndarray, "k rows columns 3"]]:
        """Tokens and points of frames as they are; with `rng`, of a random copy of each."""
        copies = np.zeros_like(frames) if rng is None else rng.integers(len(self.copies), size=len(frames))
        chosen = [(self.copies[copy], frame) for copy, frame in zip(copies, frames, strict=True)]
        tokens = torch.from_numpy(np.stack([scene.tokens[frame] for scene, frame in chosen])).float()
        points = np.stack([scene.points[frame] for scene, frame in chosen])
        return tokens, points if self.side is None else self.side.of(points)


def open_environments(
    scenes: Sequence[Scene],
    backbone: Backbone,
    settings: Settings,
    folder: Path | None,
    *,
    copies: int = 0,
    progress: bool = False,
) -> list[Environment]:
    """One environment a scene; its tokens, and those of so many augmented copies, are cached in a folder."""
    found = []
    for scene in scenes:
        cached = [
            cache_scene(scene, backbone, settings.resolution, copy=copy, folder=folder, progress=progress)
            for copy in range(1 + copies)
        ]
        check(cached[0], settings)
        found.append(Environment(cached, np.flatnonzero(_has_points(cached[0].points))))
    return found


def estimate(
    scenes: Sequence[Scene], backbone: Backbone, settings: Settings, folder: Path | None, copies: int = 0
) -> tuple[int, int]:
    """Bytes of cache that scenes and their copies take together, and of those the ones that are still to be made."""
    copied = [(scene, copy) for scene in scenes for copy in range(1 + copies)]
    sizes = [cache_bytes(scene, backbone, settings.resolution, copy, folder) for scene, copy in copied]
    return sum(total for total, _ in sizes), sum(missing for _, missing in sizes)


def check(scene: CachedScene, settings: Settings) -> None:
    """Refuse what cannot teach anything, and say why."""
    points = scene.points[np.isfinite(scene.points).all(axis=-1)]
    if not len(points):
        raise TrainingError(f"{scene.name} has no patch with valid depth; see `locus inspect`")
    extent = float(np.linalg.norm(points.max(axis=0) - points.min(axis=0)))
    if max(settings.radii) >= extent / 2:
        raise TrainingError(
            f"a radius of {max(settings.radii):g} m is too large for {scene.name}, which is {extent:.2g} m across: "
            "nearly everything would be the same spot"
        )


def split_by_space(environment: Environment) -> tuple[Environment, Environment]:
    """One environment as two, by a plane across its longest direction: what lies beyond it is kept for validation.

    Frames of one environment see the same things, so a split of frames would validate on what was trained on. It is
    the world that is split: training ignores the patches of one part, validation those of the other.
    """
    points = environment.scene.points
    known = points[np.isfinite(points).all(axis=-1)].astype(np.float64)
    longest = np.linalg.eigh(np.cov(known.T))[1][:, -1]
    beyond = Side(longest, float(np.quantile(known @ longest, 1 - HELD_OUT)))
    parts = []
    for side in (beyond.other, beyond):
        seen = np.flatnonzero(_has_points(side.of(points)))
        if len(seen) < FEWEST:
            raise TrainingError(
                f"{len(seen)} frames see a part of {environment.name}: too few to split; name --val scenes"
            )
        parts.append(Environment(environment.copies, seen, side))
    return parts[0], parts[1]


def _has_points(points: Float32[ndarray, "frames rows columns 3"]) -> Bool[ndarray, " frames"]:
    return np.any(np.isfinite(points.reshape(len(points), -1)), axis=1)
