"""Dense features of a whole scene: every patch of every frame, with the point of the world it shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray
from torch import Tensor

from locus.features.cache import cache_frames
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Frame, Scene

FRAMES_AT_ONCE = 8


@dataclass(frozen=True, eq=False)
class ReadFrames:
    """The frames of a scene that could be read and are of one size, in the scene's order, and their patches."""

    scene: Scene
    indices: list[int]
    """Each frame's place in the scene."""
    points: Float32[ndarray, "frames rows columns 3"]
    """World points of the patches, NaN where there is none."""

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def grid(self) -> tuple[int, int]:
        """(rows, columns) of patches."""
        return self.points.shape[1], self.points.shape[2]

    def frame(self, row: int) -> Frame:
        """The frame that a row is of."""
        return self.scene[self.indices[row]]


@dataclass(frozen=True, eq=False)
class SceneFeatures(ReadFrames):
    """What a model sees of a scene."""

    features: Float[Tensor, "scales frames rows columns c"]
    """Unit length, on the CPU."""

    def take(self, rows: Sequence[int]) -> "SceneFeatures":
        """Some of the frames."""
        chosen = list(rows)
        return SceneFeatures(
            self.scene, [self.indices[row] for row in chosen], self.points[chosen], self.features[:, chosen]
        )


@torch.no_grad()
def scene_features(model: LoCUS, scene: Scene, cache: Path | None = None, *, progress: bool = False) -> SceneFeatures:
    """The features of every frame, from the cache of the backbone's tokens, which is made if there is none.

    Frames that cannot be read, or are of another size than the first, are left out with a warning.
    """
    cached = cache_frames(scene, model.backbone, model.resolution, folder=cache, progress=progress)
    device = next(model.buffers()).device
    parts = []
    for first in track(
        range(0, len(cached.frames), FRAMES_AT_ONCE), "features", -(-len(cached.frames) // FRAMES_AT_ONCE), progress
    ):
        tokens = torch.from_numpy(np.asarray(cached.tokens[first : first + FRAMES_AT_ONCE], np.float32))
        parts.append(model.head_features(tokens.to(device), cached.grid).cpu())
    places = {source.name: index for index, source in enumerate(scene.sources)}
    return SceneFeatures(scene, [places[name] for name in cached.frames], cached.points, torch.cat(parts, dim=1))
