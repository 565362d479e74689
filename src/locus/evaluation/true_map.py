"""The ceiling of benchmarks that make maps: features that are a function of the patch's point in the world."""

import zlib
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32
from numpy import ndarray
from torch import Tensor

from locus.evaluation.methods import ModelMethod
from locus.evaluation.scene_patches import ScenePatches
from locus.features.dense import SceneFeatures
from locus.model import LoCUS

WAVES = 2.0  # radians a metre


class TrueMap(ModelMethod):
    """The ceiling that landmarks and solver set: features that tell points of the world apart, and nothing else."""

    bound = True
    fingerprint: ClassVar[str] = "true map 2"

    def __init__(self) -> None:
        # A map is a model's: this one lends its dimension and radius, and sees nothing.
        super().__init__("ground truth", LoCUS("classic", head="identity"))

    def grid(self, width: int, height: int) -> tuple[int, int] | None:
        return None

    def seen(self, patches: ScenePatches) -> SceneFeatures:
        features = true_features(patches.points, self.model.dimension, zlib.crc32(patches.scene.name.encode()))
        return SceneFeatures(patches.scene, patches.indices, patches.points, features[None])


def true_features(
    points: Float32[ndarray, "frames rows columns 3"], dimension: int, seed: int
) -> Float[Tensor, "frames rows columns c"]:
    """Random waves of a patch's point, about half a metre fine, at unit length; zero for a patch without one.

    Each environment has its own seed: the same coordinates mean another point there.
    """
    waves = np.random.default_rng(seed).normal(scale=WAVES, size=(3, dimension // 2))
    phase = torch.from_numpy(np.nan_to_num(points) @ waves).float()
    features = F.normalize(torch.cat([phase.sin(), phase.cos()], dim=-1), dim=-1)
    features[torch.from_numpy(~np.isfinite(points).all(axis=-1))] = 0
    return features
