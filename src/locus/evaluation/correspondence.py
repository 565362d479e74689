"""Correspondence (the protocol of Probe3D, El Banani et al. 2024): does the most similar patch lie where the spot is?

Every patch of frame a whose point frame b sees is matched to the most similar spot of frame b; the match is right
within 5, 10 or 20 pixels of where depth and poses put the point. Pairs are told apart by how much the view turns.
Features of frame b are blended between patches, or half a patch would be the best one can do. Probe3D keeps the 1000
matches that are least ambiguous; here there are fewer patches than that, and all are kept.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from locus.evaluation.bootstrap import estimate
from locus.evaluation.figures import Line, line_figure
from locus.evaluation.methods import Method, Unavailable, on_grid
from locus.evaluation.opened import EvaluationError, Place, at_least
from locus.evaluation.runner import Outcome
from locus.evaluation.table import Column, Table, unavailable
from locus.geometry import invert, pose_error, transform
from locus.scenes.patches import patch_centres
from locus.scenes.visibility import FrameGeometry, visible

PIXELS = (5.0, 10.0, 20.0)
TURNS = (0.0, 15.0, 30.0, 60.0, 180.0)


@dataclass(frozen=True)
class Correspondence:
    """The protocol."""

    pairs: int = 25
    """Pairs of frames of each place for each of the four ranges of viewpoint change, as far as there are any."""
    overlap: float = 0.1
    """Least share of each frame that the other sees."""
    refine: int = 4
    """Spots of frame b that are tried, along each side of a patch."""
    radius: float = 0.2
    """Metres: which scale of a model of several is asked."""
    seed: int = 0
    """Of the pairs drawn."""

    name = "correspondence"

    def __post_init__(self) -> None:
        at_least(1, pairs=self.pairs, refine=self.refine)

    def measure(self, method: Method, place: Place) -> dict[str, Any]:
        """Every pair of one place."""
        pairs = self.drawn(place)
        if not pairs:
            raise EvaluationError(f"no two frames of {place.scene.name} see {self.overlap:.0%} of each other")
        features = method.features(place, self.radius)
        size = place.frame(0).camera
        return {
            "image": [size.width, size.height],
            "pairs": [self._pair(features, place, a, b, turn) for a, b, turn in pairs],
        }

    def drawn(self, place: Place) -> list[tuple[int, int, float]]:
        """(frame a, frame b, degrees between them), the same for every method."""
        poses = [place.frame(row).world_from_camera for row in range(len(place))]
        both = np.minimum(place.overlap, place.overlap.T) >= self.overlap
        first, second = np.nonzero(np.triu(both, 1))
        turns = np.array([pose_error(poses[a], poses[b])[1] for a, b in zip(first, second, strict=True)])
        rng = np.random.default_rng([self.seed, zlib.crc32(place.scene.name.encode())])
        drawn = []
        for low, high in pairwise(TURNS):
            inside = np.flatnonzero((turns >= low) & (turns < high))
            chosen = np.sort(rng.choice(inside, min(self.pairs, len(inside)), replace=False))
            drawn += [(int(first[pair]), int(second[pair]), float(turns[pair])) for pair in chosen]
        return drawn

    def _pair(self, features: Tensor, place: Place, a: int, b: int, turn: float) -> dict[str, Any]:
        rows, columns = place.grid
        seen, target = landings(place, a, b)
        fine = on_grid(features[b : b + 1], (rows * self.refine, columns * self.refine))[0]
        nearest = (features[a].flatten(0, 1)[torch.from_numpy(seen)] @ fine.flatten(0, 1).T).argmax(dim=1)
        camera = place.frame(b).camera
        spots = patch_centres((rows * self.refine, columns * self.refine), camera.width, camera.height).reshape(-1, 2)
        error = np.linalg.norm(spots[nearest.numpy()] - target, axis=1)
        names = (place.frame(a).name, place.frame(b).name)
        within = [float((error <= pixels).mean()) if len(error) else None for pixels in PIXELS]
        return {"frames": names, "turn": turn, "patches": len(error), "within": within}


def landings(place: Place, a: int, b: int) -> tuple[Bool[ndarray, " n"], Float[ndarray, "seen 2"]]:
    """Which patches of frame a frame b sees, and where in its image."""
    points = place.points[a].reshape(-1, 3)
    known = np.flatnonzero(np.isfinite(points).all(axis=1))
    frame = place.frame(b)
    seen = np.zeros(len(points), bool)
    seen[known[visible(points[known], FrameGeometry.of(frame))]] = True
    pixels, _ = frame.camera.project(transform(invert(frame.world_from_camera), points[seen].astype(np.float64)))
    return seen, pixels


def tables(outcome: Outcome) -> list[Table]:
    """One for each tolerance: by viewpoint change, and over all pairs."""
    ranges = [f"{low:g}–{high:g}°" for low, high in pairwise(TURNS)]
    made = []
    for index, pixels in enumerate(PIXELS):
        rows = []
        for method in outcome.methods:
            if isinstance(method, Unavailable):
                rows.append(unavailable(method.label, method.reason))
                continue
            binned = _by_turn(outcome, method.label, index)
            everything = np.concatenate(binned)
            rows.append(outcome.row(method, [estimate(each) for each in [*binned, everything]]))
        counted = max(
            ([len(each) for each in _by_turn(outcome, part.method, index)] for part in outcome.parts), key=sum
        )
        sizes = {"{}×{}".format(*part.measured["image"]) for part in outcome.parts}
        notes = [
            f"{sum(counted)} pairs ({', '.join(map(str, counted))}) of {len(outcome.scenes)} places; "
            f"images of {', '.join(sorted(sizes))} pixels. In brackets: 95 % of bootstrap draws of pairs.",
        ]
        columns = [Column(each) for each in [*ranges, "all"]]
        made.append(
            Table(f"Correspondence: matches within {pixels:g} pixels, by viewpoint change", columns, rows, notes)
        )
    return made


def figures(outcome: Outcome) -> list[tuple[str, str]]:
    """Matches within 10 pixels against viewpoint change."""
    middle = np.arange(len(TURNS) - 1)
    lines = []
    for method in outcome.methods:
        if isinstance(method, Method) and outcome.of(method.label):
            values = [each.mean() if len(each) else np.nan for each in _by_turn(outcome, method.label, 1)]
            lines.append(Line(outcome.label(method), middle.astype(float), np.array(values), method.bound))
    labels = [f"{low:g}–{high:g}°" for low, high in pairwise(TURNS)]
    drawn = line_figure({"": lines}, "viewpoint change", "matches within 10 pixels", ticks=labels)
    return [("Matches within 10 pixels, by viewpoint change", drawn)]


def _by_turn(outcome: Outcome, label: str, pixels: int) -> Sequence[Float[ndarray, " n"]]:
    """Of every pair, by range of viewpoint change."""
    pairs = [pair for part in outcome.of(label) for pair in part.measured["pairs"] if pair["patches"]]
    turns = np.array([pair["turn"] for pair in pairs])
    values = np.array([pair["within"][pixels] for pair in pairs])
    return [values[(turns >= low) & (turns < high)] for low, high in pairwise(TURNS)]
