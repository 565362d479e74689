"""Reuse: does a landmark's embedding serve other environments, as the paper's "don't care" region is meant to allow?

Two measures over several unseen scenes. *Class AP*: a landmark's feature ranks every labelled patch of another scene,
and those of its class should come first. *Service*: in another scene an embedding stands for the spot it is most
similar to; it serves that scene if it then finds that spot in other frames, among all that lies within κ radii, with an
AP of at least 0.5. The smaller κ, the less an embedding must be told from, and the more scenes it can serve.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.figures import line_figure
from locus.evaluation.methods import Competitor, Method, Truth
from locus.evaluation.outcome import Outcome, SampledSpots
from locus.evaluation.patch_truth import PatchTruth
from locus.evaluation.scene_patches import EvaluationError, LandmarkBatch, ScenePatches, at_least
from locus.evaluation.table import Cell, Column, Table
from locus.objective import average_precision_per_landmark, retrieval_sets

SERVES = 0.5  # an embedding whose AP in a scene is at least this serves it


@dataclass(frozen=True, eq=False)
class ReusePatches:
    """What is looked at of a scene."""

    batch: LandmarkBatch
    features: Float[Tensor, "n c"]
    classes: np.ndarray | None
    """The name of each patch's class, empty where it has none; None in a scene without labels."""


@dataclass(frozen=True)
class Reuse(SampledSpots):
    """Does a landmark's embedding serve in other environments too? Needs several scenes.

    AP of the same class in another scene (labelled scenes), and how many other scenes an embedding serves, against κ.
    """

    kappas: tuple[float, ...] = (2.5, 5.0, 10.0, 25.0, 50.0)
    """How many radii around it an embedding must tell its spot from."""
    frames_per_scene: int = 16
    """Frames of each scene that are looked at."""
    landmarks: int = 64
    """Landmarks taken from each scene."""

    name = "reuse"
    together = True

    def __post_init__(self) -> None:
        at_least(2, frames_per_scene=self.frames_per_scene)
        at_least(1, landmarks=self.landmarks)

    def measure(self, method: Method, scenes: Sequence[ScenePatches]) -> dict[str, Any]:
        """Of every landmark of every scene, in every scene."""
        if len(scenes) < 2:
            raise EvaluationError("reuse is measured between scenes: name at least two")
        drawn = [self._drawn(method, patches) for patches in scenes]
        return {
            "landmarks": [self._landmarks(drawn, home) for home in range(len(scenes))],
            "scenes": [patches.scene.name for patches in scenes],
        }

    def check(self, patches: ScenePatches) -> None:
        """Refuse a scene without landmarks, which could say nothing."""
        if not len(self._batch(patches).landmarks):
            raise EvaluationError(f"{patches.scene.name}: no spot is seen in two frames within {self.radius:g} m")

    def _batch(self, patches: ScenePatches) -> LandmarkBatch:
        return patches.draw(patches.random(self.seed), self.frames_per_scene, self.landmarks, self.radius)

    def _drawn(self, method: Method, patches: ScenePatches) -> ReusePatches:
        batch = self._batch(patches)
        features = method.features(patches, self.radius)[torch.from_numpy(batch.rows)].flatten(0, 2)
        classes = None
        if patches.scene.classes:
            truth = PatchTruth.of(patches, objects=False)
            names = np.full(1 + max(label.id for label in truth.classes), "", object)
            for label in truth.classes:
                names[label.id] = label.name
            classes = names[truth.labels[batch.rows]].reshape(-1)
        return ReusePatches(batch, features, classes)

    def _landmarks(self, drawn: Sequence[ReusePatches], home: int) -> dict[str, Any]:
        """Of the landmarks of one scene: class AP elsewhere, and how many other scenes each serves, for every κ."""
        own = drawn[home]
        embeddings = own.features[own.batch.landmarks]
        elsewhere = [each for number, each in enumerate(drawn) if number != home]
        served = {
            f"{kappa:g}": torch.stack([self._serves(embeddings, each, kappa) for each in elsewhere]).sum(dim=0).tolist()
            for kappa in self.kappas
        }
        at_home = {f"{kappa:g}": self._serves(embeddings, own, kappa).tolist() for kappa in self.kappas}
        return {"class AP": self._class_precision(own, elsewhere), "served": served, "at home": at_home}

    def _serves(self, embeddings: Float[Tensor, "m c"], scene: ReusePatches, kappa: float) -> Bool[Tensor, " m"]:
        """Whether each embedding finds, in other frames, the spot of a scene that it is most similar to."""
        positions, environments, frames, _ = scene.batch.geometry
        known = positions.isfinite().all(dim=1)
        scores = scene.features @ embeddings.T
        spots = scores.masked_fill(~known[:, None], -torch.inf).argmax(dim=0)
        sets = retrieval_sets(positions, environments, frames, spots, self.radius, kappa, exclude_same_frame=True)
        return average_precision_per_landmark(scores, *sets) >= SERVES

    def _class_precision(self, own: ReusePatches, elsewhere: Sequence[ReusePatches]) -> list[dict[str, float]]:
        """Of every landmark in every other scene that shows its class, AP and what chance gives."""
        found = []
        for other in elsewhere:
            if own.classes is None or other.classes is None:
                continue
            labelled = np.flatnonzero(other.classes != "")
            wanted = own.classes[own.batch.landmarks.numpy()]
            kept = np.flatnonzero((wanted != "") & np.isin(wanted, other.classes[labelled]))
            if not len(kept):
                continue
            positive = torch.from_numpy((other.classes[labelled, None] == wanted[kept]).astype(bool))
            embeddings = own.features[own.batch.landmarks[torch.from_numpy(kept)]]
            scores = other.features[torch.from_numpy(labelled)] @ embeddings.T
            values = average_precision_per_landmark(scores, positive, torch.ones_like(positive))
            shares = positive.double().mean(dim=0)
            pairs = zip(values.tolist(), shares.tolist(), strict=True)
            found += [{"AP": value, "chance": share} for value, share in pairs]
        return found

    def tables(self, outcome: Outcome) -> list[Table]:
        """Class AP, where scenes have labels, and scenes served against κ."""
        labelled = any(home["class AP"] for part in outcome.parts for home in part.measured["landmarks"])
        return [_classes(outcome), _service(outcome)] if labelled else [_service(outcome)]

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        """Scenes served against κ."""
        kappas = np.array(self.kappas)

        def served(method: Competitor) -> Any:
            homes = _homes(outcome, method)
            means = [np.mean([np.mean(home["served"][f"{kappa:g}"]) for home in homes]) for kappa in kappas]
            return np.array(means) if homes else None

        drawn = line_figure({"": outcome.lines(kappas, served)}, "κ", "other scenes served", log=True)
        return [("Other scenes that a landmark's embedding serves, against κ", drawn)]


def _homes(outcome: Outcome, method: Competitor) -> list[dict[str, Any]]:
    """Of every scene, what its landmarks reach; nothing of the ceiling, whose features mean one scene's coordinates."""
    return [] if isinstance(method, Truth) else outcome.measured(method.label, "landmarks")


def _classes(outcome: Outcome) -> Table:
    def cells(method: Competitor) -> list[Cell] | None:
        homes = [home["class AP"] for home in _homes(outcome, method) if home["class AP"]]
        means = [[np.mean([each[name] for each in home]) for home in homes] for name in ("AP", "chance")]
        return [estimate(np.array(values)) for values in means] if homes else None

    note = "A landmark's feature ranks every labelled patch of another scene; those of its class should come first."
    columns = [Column("class AP, other scenes"), Column("chance", better="neither")]
    return Table("Reuse: the same class in another scene", columns, outcome.rows(cells), [note, _drawn_from(outcome)])


def _service(outcome: Outcome) -> Table:
    kappas = [f"{kappa:g}" for kappa in outcome.benchmark.kappas]

    def cells(method: Competitor) -> list[Cell] | None:
        homes = _homes(outcome, method)
        values = [[np.mean(home["served"][kappa]) for home in homes] for kappa in kappas]
        values.append([np.mean(home["at home"][kappas[-1]]) for home in homes])
        return [estimate(np.array(each)) for each in values] if homes else None

    others = len(outcome.parts[0].measured["scenes"]) - 1
    note = f"Of {others} other scenes, how many an embedding serves: AP ≥ {SERVES} for the most similar spot."
    columns = [*(Column(f"κ = {kappa}", 2) for kappa in kappas), Column(f"at home, κ = {kappas[-1]}", 2)]
    title = "Reuse: other scenes that a landmark's embedding serves"
    return Table(title, columns, outcome.rows(cells), [note, _drawn_from(outcome)])


def _drawn_from(outcome: Outcome) -> str:
    count = len(outcome.parts[0].measured["scenes"])
    return f"In brackets: 95 % of {DRAWS:,} bootstrap draws of {count} scenes."
