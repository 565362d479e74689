"""Retrieval (Table 1): does a landmark's feature find the patches that show the same spot?

Fixed batches: of each place some frames that overlap, the same for every method and every run, every patch of theirs
ranked against landmarks drawn among them. AP depends on how the list is drawn, so all of that is part of the result.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray

from locus.evaluation.methods import Method, Truth
from locus.evaluation.opened import EvaluationError, Place, at_least
from locus.evaluation.ranking import VIEWS, Patches, rank
from locus.objective import RetrievalObjective, draw_landmarks
from locus.scenes.drawing import draw_frames

LANDMARK_STEPS = 20  # the distribution of per-landmark AP is told by its quantiles


@dataclass(frozen=True)
class Retrieval:
    """The protocol."""

    radii: tuple[float, ...] = (0.2,)
    """Metres within which two points are the same spot."""
    kappa: float = 50.0
    """Patches further than this many radii from a landmark are "don't care"."""
    tau: float = 0.01
    """Temperature of V-Smooth-AP."""
    frames: int = 16
    """Frames in a batch: a random one, and others drawn by how much they overlap it."""
    batches: int = 4
    """Batches of each place."""
    landmarks: int = 256
    """Landmarks drawn for a batch, each seen in two frames; every patch is ranked for each."""
    seed: int = 0

    name = "retrieval"

    def __post_init__(self) -> None:
        at_least(2, frames=self.frames)
        at_least(1, batches=self.batches, landmarks=self.landmarks)

    def measure(self, method: Method, place: Place) -> dict[str, Any]:
        """Every batch of one place: `{radius: [{view: {...}, ...}]}`."""
        batches = list(self.drawn(place))
        if not batches:
            raise EvaluationError(
                f"{place.scene.name}: no spot is seen in two frames within {min(self.radii):g} m; "
                "do its frames overlap (`locus inspect`)?"
            )
        measured = {}
        for radius in self.radii:
            features = method.features(place, radius)
            measured[f"{radius:g}"] = [self._batch(method, features, *batch, radius) for batch in batches]
        return {"radii": measured}

    def drawn(self, place: Place) -> Iterator[tuple[Int[ndarray, " k"], Patches]]:
        """The frames (rows of the place) and patches of each batch."""
        usable = np.flatnonzero(place.known.reshape(len(place), -1).any(axis=1))
        for number in range(self.batches):
            rng = np.random.default_rng([self.seed, zlib.crc32(place.scene.name.encode()), number])
            rows = draw_frames(place.overlap, usable, rng, self.frames)
            positions = torch.from_numpy(place.points[rows].reshape(-1, 3))
            frames = torch.arange(len(rows)).repeat_interleave(place.grid[0] * place.grid[1])
            alone = torch.zeros_like(frames)
            landmarks = draw_landmarks(positions, alone, frames, min(self.radii), self.landmarks, rng)
            if len(landmarks):
                yield rows, Patches(positions, alone, frames, landmarks)

    def _batch(
        self, method: Method, features: torch.Tensor, rows: Int[ndarray, " k"], patches: Patches, radius: float
    ) -> dict[str, Any]:
        flat = features[torch.from_numpy(rows)].flatten(0, 2)
        rankings = rank(flat, patches, radius, self.kappa)
        result: dict[str, Any] = {}
        for view in VIEWS:
            ranking = rankings[view]
            result[view] = {
                "AP": ranking.average_precision,
                "V-Smooth-AP": None if isinstance(method, Truth) else self._smooth(flat, patches, radius, view),
                "chance": ranking.chance,
                "positives": len(ranking.above),
                "pairs": len(ranking.above) + ranking.negatives,
                "curve": ranking.curve().round(5).tolist(),
                "landmarks": np.quantile(ranking.per_landmark, np.linspace(0, 1, LANDMARK_STEPS + 1)).round(5).tolist(),
            }
        return result

    @torch.no_grad()
    def _smooth(self, features: torch.Tensor, patches: Patches, radius: float, view: str) -> float:
        objective = RetrievalObjective(radius, self.kappa, self.tau, exclude_same_frame=view == "cross-view")
        return float(objective(features, *vars(patches).values()))
