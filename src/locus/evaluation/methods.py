"""The methods compared: most give every patch of a scene a feature of unit length."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from locus.evaluation.scene_patches import EvaluationError, ScenePatches
from locus.features.dense import SceneFeatures, scene_features
from locus.model import LoCUS

Features = Float[Tensor, "frames rows columns c"]


class Competitor(ABC):
    """One row of a table."""

    label: str
    """What the row is called."""
    bound: ClassVar[bool] = False
    """Whether it is the ceiling or the floor, and no competitor."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that changes its answers, so that finished parts can be told."""

    def grid(self, width: int, height: int) -> tuple[int, int] | None:
        """The (rows, columns) of patches it gives by itself for an image, if it has any."""
        return None


class Method(Competitor):
    """What gives features."""

    @abstractmethod
    def features(self, patches: ScenePatches, radius: float) -> Features:
        """Of every frame on the grid, unit length; for spots of about this radius in metres."""


@dataclass(frozen=True)
class Unavailable:
    """A method that is not available here: a row that says so."""

    label: str
    reason: str


class ModelMethod(Method):
    """A trained model, or a backbone reduced by PCA."""

    def __init__(self, label: str, model: LoCUS, cache: Path | None = None) -> None:
        self.label = label
        self.model = model
        self.cache = cache
        self._recent: SceneFeatures | None = None

    @property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    def grid(self, width: int, height: int) -> tuple[int, int] | None:
        return self.model.grid(width, height)

    def scale(self, radius: float) -> int:
        """The scale trained for the radius nearest to this one."""
        return int(np.abs(np.log(np.array(self.model.radii) / radius)).argmin())

    def features(self, patches: ScenePatches, radius: float) -> Features:
        return on_grid(self.seen(patches).features[self.scale(radius)], patches.grid)

    def seen(self, patches: ScenePatches) -> SceneFeatures:
        """Every scale, on the model's own grid, of the frames that are compared."""
        dense = self._recent
        if dense is None or dense.scene is not patches.scene:  # one scene is asked about several times in a row
            dense = self._recent = scene_features(self.model, patches.scene, self.cache)
        rows = {index: row for row, index in enumerate(dense.indices)}
        missing = [index for index in patches.indices if index not in rows]
        if missing:
            name = patches.scene.sources[missing[0]].name
            raise EvaluationError(f"{self.label} gives no features for frame {name} of {patches.scene.name}")
        kept = [rows[index] for index in patches.indices]
        return SceneFeatures(patches.scene, patches.indices, dense.points[kept], dense.features[:, kept])


class Truth(Method):
    """The ceiling: features that are the patch's point in the world, so that the most similar are the nearest.

    A point p becomes (εp, √(1 − ε²p²)), on a sphere so large that cosines fall with the distance, in float64.
    """

    label = "ground truth"
    bound = True
    fingerprint: ClassVar[str] = "truth 1"
    EPSILON: ClassVar[float] = 1e-4

    def features(self, patches: ScenePatches, radius: float) -> Features:
        points = torch.from_numpy(patches.points).double()
        known = torch.isfinite(points).all(dim=-1, keepdim=True)
        centre = points[known[..., 0]].mean(dim=0)
        flat = torch.where(known, points - centre, 0.0) * self.EPSILON
        height = (1 - flat.square().sum(dim=-1, keepdim=True)).sqrt()
        return torch.cat([flat, torch.where(known, height, -1.0)], dim=-1)  # no point: unlike all that have one


class Chance(Method):
    """The floor: random features, the same for the same frame."""

    label = "random"
    bound = True
    fingerprint: ClassVar[str] = "random 1"
    DIMENSION: ClassVar[int] = 64

    def features(self, patches: ScenePatches, radius: float) -> Features:
        maps = []
        for index in patches.indices:
            name = f"{patches.scene.name}/{patches.scene.sources[index].name}"
            seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
            maps.append(np.random.default_rng(seed).normal(size=(*patches.grid, self.DIMENSION)))
        return F.normalize(torch.from_numpy(np.stack(maps)).float(), dim=-1)


def on_grid(features: Features, grid: tuple[int, int]) -> Float[Tensor, "frames _ _ c"]:
    """Features at the centres of another grid's patches, blended from the nearest four; as they are on their own."""
    if features.shape[1:3] == grid:
        return features
    channels_first = features.permute(0, 3, 1, 2)
    blended = F.interpolate(channels_first, size=grid, mode="bilinear", align_corners=False)
    return F.normalize(blended.permute(0, 2, 3, 1), dim=-1)
