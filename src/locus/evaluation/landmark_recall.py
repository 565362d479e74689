"""Landmark recall: are chosen landmarks found again in views that took no part in choosing them?

Landmarks are chosen in the first half of a scene's frames and looked for in the second: in each view, the most similar
of all its patches. Beside them stand random spots of the first half that at least two of its frames show, as is asked
of landmarks, looked for by the feature of one patch, and by the mean feature of the patches around, as landmarks are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.methods import Competitor, Method
from locus.evaluation.outcome import Outcome, SampledRanking, SampledSpots
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, at_least
from locus.evaluation.table import Cell, Column, Table
from locus.evaluation.true_map import TrueMap
from locus.features.dense import SceneFeatures
from locus.landmarks import observations
from locus.landmarks.describe import CANDIDATES, VIEWS, observed
from locus.landmarks.observations import ObservedPatches, within
from locus.landmarks.selection import candidates, landmark_scores

SPOTS = ("best by Smooth-AP_j", "best by worth", "random spots", "random patches")
FIGURES = ("shown", "blind", "times")
WRONG = 0.05  # of the views that do not show a spot: in how many it may be claimed to be found

Spots = tuple[Float[ndarray, "m 3"], Float[ndarray, "m c"]]
"""Where they are, and the feature that they are looked for by."""


@dataclass(frozen=True)
class LandmarkRecall(SampledSpots, SampledRanking):
    """Are landmarks found again in views that took no part in choosing them, more often than random spots?"""

    best: float = 0.1
    """The share of the candidates that is chosen."""
    random: int = 1000
    """Random spots of each environment, at most."""

    name = "landmarks"

    def __post_init__(self) -> None:
        at_least(1, random=self.random)
        if not 0 < self.best <= 1:
            raise EvaluationError(f"--best is a share of the candidates, above 0 and at most 1, not {self.best:g}")

    def measure(self, method: Method, patches: ScenePatches) -> dict[str, Any]:
        """For every kind of spot: in which share of the views it is found again."""
        features = method.features(patches, self.radius).float()
        seen = SceneFeatures(patches.scene, patches.indices, patches.points, features[None])
        middle = len(seen) // 2
        chosen_in, held_out = seen.take(range(middle)), seen.take(range(middle, len(seen)))
        found = observations.patches(chosen_in)
        found = replace(found, label=np.full_like(found.label, -1))  # labels take no part
        spots = self._spots(found, found.features(chosen_in, 0))
        if not all(len(positions) for positions, _ in spots):
            raise EvaluationError(f"{patches.scene.name}: no spot is seen in {VIEWS} frames of the first half")
        searched = [look_for(*each, held_out, self.radius) for each in spots]
        if not all(each[..., 0].any() for each in searched):
            raise EvaluationError(f"{patches.scene.name}: the second half of the frames shows nothing of the first")
        return {kind: figures_of(each) for kind, each in zip(SPOTS, searched, strict=True)}

    def _spots(self, found: ObservedPatches, features: Float[ndarray, "n c"]) -> list[Spots]:
        chosen = candidates(found.point, self.radius, CANDIDATES)
        ranked = torch.from_numpy(features), found.point, found.frame, chosen
        scores = landmark_scores(*ranked, self.radius, self.kappa, self.tau)
        described = observed(within(found.point[chosen], found.point, self.radius), found, features, 0)
        described = replace(described, score=scores.astype(np.float32))
        again = np.flatnonzero(described.views >= VIEWS)
        spots = []
        for value in (described.score, described.worth):
            best = again[np.argsort(-value[again])[: max(1, round(self.best * len(again)))]]
            spots.append((found.point[chosen[best]], described.embedding[best]))
        # In random order, so that the first of those seen again are an even draw among them.
        drawn = np.random.default_rng(self.seed).permutation(len(features))[: 4 * self.random]
        around = observed(within(found.point[drawn], found.point, self.radius), found, features, 0)
        again = np.flatnonzero(around.views >= VIEWS)[: self.random]
        positions = found.point[drawn[again]]
        return [*spots, (positions, around.embedding[again]), (positions, features[drawn[again]])]

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        return {"truth": TrueMap}

    def tables(self, outcome: Outcome) -> list[Table]:
        """A row for every kind of spot; and how much oftener landmarks are found than random spots."""

        def cells(method: Competitor, kind: str) -> list[Cell] | None:
            parts = [part.measured for part in outcome.of(method.label)]
            if not parts:
                return None
            found = [estimate(np.array([part[kind][name] for part in parts])) for name in FIGURES]
            blind = {each: np.mean([part[each]["blind"] for part in parts]) for each in SPOTS}
            return [*found, *(float(blind[kind] / blind[other]) if blind[other] else None for other in SPOTS[2:])]

        columns = [Column(name, 2 if name == "times" else 3) for name in FIGURES]
        columns += [Column(f"blind, × {kind}", 2) for kind in SPOTS[2:]]
        told = [
            f"The best {self.best:.0%} of the candidates in the first half of the frames, looked for in the "
            "second half: in each view, the most similar patch.",
            "Shown: of the views that show the spot, those in which that patch lies within the radius. Blind: it must "
            f"also be more similar than in {1 - WRONG:.0%} of the views that do not show the spot. Times: views "
            "in which each is found.",
            f"In brackets: 95 % of {DRAWS:,} bootstrap draws of environments.",
        ]
        return [Table("Landmarks that are found again", columns, outcome.rows_of_kinds(SPOTS, cells), told)]


def look_for(
    positions: Float[ndarray, "m 3"], embeddings: Float[ndarray, "m c"], views: SceneFeatures, radius: float
) -> Float[ndarray, "m views 3"]:
    """For each spot and view: is it shown, does the most similar patch lie there, and how similar is that."""
    searches = []
    for row in range(len(views)):
        points = views.points[row].reshape(-1, 3)
        known = np.isfinite(points).all(axis=1)
        near = np.linalg.norm(np.where(known[:, None], points, np.inf) - positions[:, None], axis=-1) <= radius
        similarity = embeddings @ views.features[0, row].flatten(0, 1).numpy().T
        hit = near[np.arange(len(positions)), similarity.argmax(axis=1)]
        searches.append(np.stack([near.any(axis=1), hit, similarity.max(axis=1)], axis=-1))
    return np.stack(searches, axis=1)


def figures_of(searches: Float[ndarray, "m views 3"]) -> dict[str, float]:
    """Found in views that show the spot; the same when that is not known; and the views in which each is found."""
    times = searches[..., 1].sum(axis=1).mean()
    shown, hit, similarity = searches.reshape(-1, 3).T
    shown, hit = shown > 0, hit > 0
    absent = similarity[~shown]
    claimed = similarity > (np.quantile(absent, 1 - WRONG) if len(absent) else -np.inf)
    values = hit[shown].mean(), (hit & claimed)[shown].mean(), times
    return {name: float(value) for name, value in zip(FIGURES, values, strict=True)}
