"""Probe3D's correspondence (El Banani et al. 2024), which LoCo reports too: dense matches of two images.

Points of image A, four pixels apart, are matched to the most similar of image B's; the thousand least ambiguous count.
An error is the distance between where depth and poses put A's point in B and where it was matched to.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64, Int
from numpy import ndarray
from torch import Tensor

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.methods import Chance, Competitor, ModelMethod, Truth
from locus.evaluation.outcome import Outcome
from locus.evaluation.protocols.frame_protocol import FrameProtocol
from locus.evaluation.protocols.image_pairs import PairScene
from locus.evaluation.scene_patches import EvaluationError
from locus.evaluation.table import Cell, Column, Table
from locus.files import content_hash
from locus.geometry import pose_error, transform
from locus.scenes import Frame

STEP = 4  # pixels between points: Probe3D works on images of a quarter of the size
KEPT = 1000  # matches, those with the smallest ratio of the two nearest distances
FAR = 100.0  # metres: the radius of the sphere on which the ceiling's features lie, with points as `Truth` has them
AT_ONCE = 1024  # points that are matched together


@dataclass(frozen=True, eq=False)
class SeenPoints:
    """Points of an image that have depth."""

    pixels: Float[ndarray, "n 2"]
    camera: Float[ndarray, "n 3"]
    """In the camera's frame."""
    descriptors: Float[Tensor, "n c"]
    """Unit length."""


@dataclass(frozen=True)
class DenseCorrespondence(FrameProtocol):
    """What both data sets have in common."""

    radius: float = 0.2
    """Metres: which scale of a model of several is asked."""

    pixels: ClassVar[tuple[float, ...]]
    """Distances in the image within which a match is right,"""
    unit: ClassVar[float]
    """in so many pixels,"""
    metres: ClassVar[tuple[float, ...]]
    """and distances in space."""
    turns: ClassVar[tuple[float, ...]]
    """Degrees between two views: where ranges begin and end,"""
    counted: ClassVar[str]
    """and what is told by range."""

    def measure(self, method: Competitor, scene: PairScene) -> dict[str, Any]:
        """The share of matches within each limit, of every pair."""
        rows = {source.name: row for row, source in enumerate(scene.sources)}
        measured = []
        for pair in scene.pairs:
            a, b = (self._seen(method, scene[rows[name]], name) for name in (pair.a, pair.b))
            first, second = least_ambiguous(a.descriptors, b.descriptors)
            there = transform(pair.b_from_a, a.camera[first])
            camera = scene[rows[pair.b]].camera
            moved = np.linalg.norm(camera.project(there)[0] - b.pixels[second], axis=1) / self.unit
            apart = np.linalg.norm(there - b.camera[second], axis=1)
            within = {f"{limit:g} px": moved < limit for limit in self.pixels}
            within |= {f"{100 * limit:g} cm": apart < limit for limit in self.metres}
            shares = {name: float(right.mean()) if len(right) else 0.0 for name, right in within.items()}
            measured.append({"frames": (pair.a, pair.b), "turn": pose_error(np.eye(4), pair.b_from_a)[1], **shares})
        return {"pairs": measured}

    def _seen(self, method: Competitor, frame: Frame, name: str) -> SeenPoints:
        grid = (slice(STEP // 2, None, STEP), slice(STEP // 2, None, STEP))
        pixels, depth = frame.camera.pixel_grid()[grid].reshape(-1, 2), frame.depth[grid].ravel().astype(np.float64)
        pixels, depth = pixels[depth > 0], depth[depth > 0]
        if len(depth) < 2:
            raise EvaluationError(f"{name} has no depth")
        points = frame.camera.unproject(pixels, depth)
        if isinstance(method, Truth):
            world = torch.from_numpy(transform(frame.world_from_camera, points)) / FAR
            found = torch.cat([world, (1 - world.square().sum(dim=1, keepdim=True)).clamp(min=0).sqrt()], dim=1)
        elif isinstance(method, Chance):
            seed = int(content_hash(name)[:8], 16)
            found = torch.from_numpy(np.random.default_rng(seed).normal(size=(len(pixels), method.DIMENSION)))
        elif isinstance(method, ModelMethod):
            size = np.array([frame.camera.width, frame.camera.height])
            found = sampled(method.model.features(frame.image).cpu()[method.scale(self.radius)], pixels / size)
        else:
            raise EvaluationError(f"{method.label} gives no features")
        return SeenPoints(pixels, points, F.normalize(found, dim=1))

    def tables(self, outcome: Outcome) -> list[Table]:
        """By limit, and by viewpoint change."""
        names = [f"{limit:g} px" for limit in self.pixels] + [f"{100 * limit:g} cm" for limit in self.metres]
        pairs = outcome.parts[0].measured["pairs"]
        note = (
            f"{len(pairs)} pairs; pixels of {self.unit:g}×{self.unit:g} image pixels. In brackets: 95 % of {DRAWS:,} "
            "bootstrap draws of pairs."
        )

        def by_limit(method: Competitor) -> list[Cell]:
            found = outcome.measured(method.label, "pairs")
            return [estimate(np.array([pair[name] for pair in found])) for name in names]

        def by_turn(method: Competitor) -> list[Cell]:
            found = outcome.measured(method.label, "pairs")
            turn, values = (np.array([pair[name] for pair in found]) for name in ("turn", self.counted))
            return [estimate(values[(turn >= low) & (turn < high)]) for low, high in pairwise(self.turns)]

        ranges = [Column(f"{low:g}–{high:g}°") for low, high in pairwise(self.turns)]
        title = f"{self.name}: matches within"
        return [
            Table(title, [Column(name) for name in names], outcome.rows(by_limit), [note]),
            Table(f"{title} {self.counted}, by viewpoint change", ranges, outcome.rows(by_turn)),
        ]


def sampled(features: Float[Tensor, "rows columns c"], places: Float64[ndarray, "n 2"]) -> Float[Tensor, "n c"]:
    """Features at places from 0 to 1, blended between the nearest four patches."""
    grid = torch.from_numpy(2 * places - 1).to(features)[None, None]
    found = F.grid_sample(features.permute(2, 0, 1)[None], grid, padding_mode="border", align_corners=False)
    return found[0, :, 0].T


@torch.no_grad()
def least_ambiguous(a: Float[Tensor, "n c"], b: Float[Tensor, "m c"]) -> tuple[Int[ndarray, " k"], Int[ndarray, " k"]]:
    """Points of A and their nearest of B, the thousand whose second nearest is furthest from it in proportion."""
    nearest, ratios = [], []
    for start in range(0, len(a), AT_ONCE):
        similarity, index = (a[start : start + AT_ONCE] @ b.T).topk(2, dim=1)
        distance = (1 - similarity).clamp(min=1e-9)
        nearest.append(index[:, 0])
        ratios.append(distance[:, 0] / distance[:, 1])
    best = torch.cat(ratios).sort(stable=True).indices[:KEPT]
    return best.numpy(), torch.cat(nearest)[best].numpy()
