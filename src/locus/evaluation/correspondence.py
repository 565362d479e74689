"""Correspondence (the protocol of Probe3D, El Banani et al. 2024): does the most similar patch lie where the spot is?

Every patch of frame a whose point frame b sees is matched to the most similar spot of frame b; the match is right
within 5, 10 or 20 pixels of where depth and poses put the point. Pairs are told apart by how much the view turns.
Features of frame b are blended between patches, or half a patch would be the best one can do. Probe3D keeps the 1000
matches that are least ambiguous; here there are fewer patches than that, and all are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from locus.evaluation.bootstrap import estimate
from locus.evaluation.figures import line_figure
from locus.evaluation.methods import Competitor, Method, on_grid
from locus.evaluation.outcome import Outcome, SampledSpots
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, at_least
from locus.evaluation.table import Cell, Column, Table
from locus.geometry import pose_error
from locus.scenes.patches import patch_centres

PIXELS = (5.0, 10.0, 20.0)
TURNS = (0.0, 15.0, 30.0, 60.0, 180.0)
RANGES = tuple(f"{low:g}–{high:g}°" for low, high in pairwise(TURNS))


@dataclass(frozen=True)
class Correspondence(SampledSpots):
    """Does the most similar patch of another view lie where the spot is (the protocol of Probe3D)?

    The share of matches within 5, 10 and 20 pixels of where depth and poses put them, by how much the view turns.
    """

    pairs: int = 25
    """Pairs of frames of each scene for each of the four ranges of viewpoint change, as far as there are any."""
    overlap: float = 0.1
    """Least share of each frame that the other sees."""
    refine: int = 4
    """Spots of frame b that are tried, along each side of a patch."""

    name = "correspondence"

    def __post_init__(self) -> None:
        at_least(1, pairs=self.pairs, refine=self.refine)

    def measure(self, method: Method, patches: ScenePatches) -> dict[str, Any]:
        """Every pair of one scene."""
        pairs = self.drawn(patches)
        if not pairs:
            raise EvaluationError(f"no two frames of {patches.scene.name} see {self.overlap:.0%} of each other")
        features = method.features(patches, self.radius)
        return {
            "image": patches.size(0),
            "pairs": [self._pair(features, patches, a, b, turn) for a, b, turn in pairs],
        }

    def drawn(self, patches: ScenePatches) -> list[tuple[int, int, float]]:
        """(frame a, frame b, degrees between them), the same for every method."""
        poses = [patches.frame(row).world_from_camera for row in range(len(patches))]
        first, second = np.nonzero(np.triu(patches.mutual_overlap >= self.overlap, 1))
        turns = np.array([pose_error(poses[a], poses[b])[1] for a, b in zip(first, second, strict=True)])
        random = patches.random(self.seed)
        drawn = []
        for low, high in pairwise(TURNS):
            inside = np.flatnonzero((turns >= low) & (turns < high))
            chosen = np.sort(random.choice(inside, min(self.pairs, len(inside)), replace=False))
            drawn += [(int(first[pair]), int(second[pair]), float(turns[pair])) for pair in chosen]
        return drawn

    def _pair(self, features: Tensor, patches: ScenePatches, a: int, b: int, turn: float) -> dict[str, Any]:
        fine_grid = patches.grid[0] * self.refine, patches.grid[1] * self.refine
        seen, target = patches.seen_from(a, b)
        fine = on_grid(features[b : b + 1], fine_grid)[0]
        nearest = (features[a].flatten(0, 1)[torch.from_numpy(seen)] @ fine.flatten(0, 1).T).argmax(dim=1)
        spots = patch_centres(fine_grid, *patches.size(b)).reshape(-1, 2)
        error = np.linalg.norm(spots[nearest.numpy()] - target, axis=1)
        within = [float((error <= pixels).mean()) if len(error) else None for pixels in PIXELS]
        names = (patches.frame(a).name, patches.frame(b).name)
        return {"frames": names, "turn": turn, "patches": len(error), "within": within}

    def tables(self, outcome: Outcome) -> list[Table]:
        """One for each tolerance: by viewpoint change, and over all pairs."""
        return [_within(outcome, index) for index in range(len(PIXELS))]

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        """Matches within 10 pixels against viewpoint change."""

        def means(method: Competitor) -> Float[ndarray, " ranges"]:
            return np.array([each.mean() if len(each) else np.nan for each in _by_turn(outcome, method.label, 1)])

        lines = outcome.lines(np.arange(len(RANGES), dtype=float), means)
        drawn = line_figure({"": lines}, "viewpoint change", "matches within 10 pixels", ticks=RANGES)
        return [("Matches within 10 pixels, by viewpoint change", drawn)]


def _within(outcome: Outcome, index: int) -> Table:
    def cells(method: Competitor) -> list[Cell]:
        binned = _by_turn(outcome, method.label, index)
        return [estimate(each) for each in [*binned, np.concatenate(binned)]]

    counted = max(([len(each) for each in _by_turn(outcome, part.method, index)] for part in outcome.parts), key=sum)
    sizes = {"{}×{}".format(*part.measured["image"]) for part in outcome.parts}
    note = (
        f"{sum(counted)} pairs ({', '.join(map(str, counted))}) of {len(outcome.scenes)} scenes; "
        f"images of {', '.join(sorted(sizes))} pixels. In brackets: 95 % of bootstrap draws of pairs."
    )
    title = f"Correspondence: matches within {PIXELS[index]:g} pixels, by viewpoint change"
    return Table(title, [Column(each) for each in (*RANGES, "all")], outcome.rows(cells), [note])


def _by_turn(outcome: Outcome, label: str, index: int) -> Sequence[Float[ndarray, " n"]]:
    """The share within a tolerance, of every pair, by range of viewpoint change."""
    pairs = [pair for pair in outcome.measured(label, "pairs") if pair["patches"]]
    turns = np.array([pair["turn"] for pair in pairs])
    values = np.array([pair["within"][index] for pair in pairs])
    return [values[(turns >= low) & (turns < high)] for low, high in pairwise(TURNS)]
