"""Localization: a map from half of a place's frames, and where the others were taken."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Int
from numpy import ndarray
from torch import Tensor

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.figures import line_figure
from locus.evaluation.methods import Competitor, ModelMethod
from locus.evaluation.metrics import median
from locus.evaluation.outcome import Benchmark, Outcome
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, at_least
from locus.evaluation.table import Cell, Column, Table
from locus.features.dense import SceneFeatures
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from locus.tasks.localize import localize_features

LIMITS = ((0.25, 2.0), (0.5, 5.0), (1.0, 10.0), (5.0, 30.0))
"""Metres and degrees that an answer may be off."""
WAVES = 2.0  # radians a metre


class TrueMap(ModelMethod):
    """The ceiling that landmarks and solver set: features that tell points of the world apart, and nothing else."""

    bound = True
    fingerprint: ClassVar[str] = "true map 1"

    def __init__(self) -> None:
        # A map is a model's: this one lends its dimension and radius, and sees nothing.
        super().__init__("ground truth", LoCUS("classic", head="identity"))

    def grid(self, width: int, height: int) -> tuple[int, int] | None:
        return None

    def seen(self, patches: ScenePatches) -> SceneFeatures:
        features = true_features(patches.points, self.model.dimension)
        return SceneFeatures(patches.scene, patches.indices, features[None], patches.points)


def true_features(
    points: Float32[ndarray, "frames rows columns 3"], dimension: int
) -> Float[Tensor, "frames rows columns c"]:
    """Random waves of a patch's point, about half a metre fine, at unit length; zero for a patch without one."""
    waves = np.random.default_rng(0).normal(scale=WAVES, size=(3, dimension // 2))
    phase = torch.from_numpy(np.nan_to_num(points) @ waves).float()
    features = F.normalize(torch.cat([phase.sin(), phase.cos()], dim=-1), dim=-1)
    features[torch.from_numpy(~np.isfinite(points).all(axis=-1))] = 0
    return features


@dataclass(frozen=True)
class Localization(Benchmark):
    """Where were the frames taken that a map was not made from?

    The share placed to within 0.25 m and 2°, 0.5 m and 5°, 1 m and 10°, 5 m and 30°.
    """

    depth: bool = True
    """Whether the frame to be placed brings its depth; else its pixels alone are posed against the map."""
    queries: int = 50
    """Frames of each place that are placed, of the half that the map was not made from, as far as there are any."""
    seed: int = 0
    """Of the halves, and of the random samples of the solver."""

    name = "localization"

    def __post_init__(self) -> None:
        at_least(1, queries=self.queries)

    def measure(self, method: Competitor, place: ScenePatches) -> dict[str, Any]:
        """How far every answer of one place is off; None where there is none."""
        if not isinstance(method, ModelMethod):
            raise EvaluationError(f"{method.label} is no model, and maps are made with models")
        mapped, asked = self.halves(place)
        seen = method.seen(place)
        indices = [seen.indices[row] for row in mapped]
        half = SceneFeatures(seen.scene, indices, seen.features[:, mapped], seen.points[mapped])
        world = LandmarkMap.build(method.model, half)
        answers = []
        for row in asked:
            frame = place.frame(int(row))
            depth = frame.depth if self.depth else None
            found = localize_features(world, seen.features[:, row], frame.camera, depth, seed=self.seed)
            error = None
            if found.world_from_camera is not None:
                error = pose_error(found.world_from_camera, frame.world_from_camera)
            answers.append({"frame": frame.name, "error": error, "here": found.here})
        return {"queries": answers, "landmarks": len(world)}

    def halves(self, place: ScenePatches) -> tuple[Int[ndarray, " k"], Int[ndarray, " q"]]:
        """Frames (rows) for the map, and frames to place, each of which sees a part of what the map's frames see."""
        rng = np.random.default_rng([self.seed, zlib.crc32(place.scene.name.encode())])
        order = rng.permutation(len(place))
        mapped, others = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        return mapped, np.sort(rng.choice(others, min(self.queries, len(others)), replace=False))

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        return {"truth": TrueMap}

    def tables(self, outcome: Outcome) -> list[Table]:
        return tables(outcome)

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        return figures(outcome)


def errors(outcome: Outcome, label: str) -> Float[ndarray, "queries 2"]:
    """Metres and degrees, infinite where there is no answer."""
    queries = [query for part in outcome.of(label) for query in part.measured["queries"]]
    return np.array([query["error"] or [np.inf] * 2 for query in queries]).reshape(-1, 2)


def tables(outcome: Outcome) -> list[Table]:
    """Recall at the four limits."""
    columns = [Column(f"{metres:g} m, {degrees:g}°") for metres, degrees in LIMITS]
    columns += [Column("median, m", 2, "lower"), Column("median, °", 1, "lower"), Column("no answer", 2, "neither")]

    def row(method: Competitor) -> list[Cell]:
        found = errors(outcome, method.label)
        cells: list[Cell] = []
        if len(found):
            cells += [estimate((found <= limits).all(axis=1).astype(float)) for limits in LIMITS]
            cells += [estimate(found[:, 0], median), estimate(found[:, 1], median)]
            cells += [float(np.isinf(found[:, 0]).mean())]
        return cells

    count = max(len(errors(outcome, method.label)) for method in outcome.methods)
    how = "with depth" if outcome.benchmark.depth else "from pixels alone"
    notes = [
        f"{count} frames of {len(outcome.scenes)} places, {how}, in maps of the other half of each place's frames. The "
        "share that is placed to within so many metres and degrees; no answer is wrong.",
        f"In brackets: 95 % of {DRAWS:,} bootstrap draws of frames.",
    ]
    return [Table("Localization", columns, outcome.rows(row), notes)]


def figures(outcome: Outcome) -> list[tuple[str, str]]:
    """The share of frames placed to within so many metres."""
    limits = np.linspace(0, 2, 81)
    lines = outcome.lines(limits, lambda method: (errors(outcome, method.label)[:, :1] <= limits).mean(axis=0))
    return [("Frames placed to within so many metres", line_figure({"": lines}, "metres", "share", (0, 2), (0, 1)))]
