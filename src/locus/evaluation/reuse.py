"""Reuse: does a landmark's embedding serve in other places too, as the paper's "don't care" region is meant to allow?

Two measures over several unseen places. *Cross-place AP*: a landmark's feature ranks every labelled patch of another
place, and those of its class should come first. *Service*: in another place an embedding stands for the spot it is most
like; it serves that place if it then finds that spot in other frames, among all that lies within κ radii, with an AP of
at least 0.5. The smaller κ, the less an embedding must be told from, and the more places it can serve.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.figures import Line, line_figure
from locus.evaluation.methods import Competitor, Method, Truth
from locus.evaluation.opened import EvaluationError, Place, at_least, labelled_rows
from locus.evaluation.ranking import Patches
from locus.evaluation.runner import Outcome
from locus.evaluation.table import Column, Table, unavailable
from locus.objective import average_precision_per_landmark, draw_landmarks, retrieval_sets
from locus.scenes.drawing import draw_frames
from locus.tasks.patch_labels import class_targets, majority_labels

SERVES = 0.5  # an embedding whose AP in a place is at least this serves it


@dataclass(frozen=True)
class Reuse:
    """The protocol."""

    radius: float = 0.2
    """Metres within which two points are the same spot."""
    kappas: tuple[float, ...] = (2.5, 5.0, 10.0, 25.0, 50.0)
    """How many radii around it an embedding must tell its spot from."""
    frames: int = 16
    """Frames of each place that are looked at."""
    landmarks: int = 64
    """Landmarks taken from each place."""
    seed: int = 0
    """Of the frames and landmarks."""

    name = "reuse"

    def __post_init__(self) -> None:
        at_least(2, frames=self.frames)
        at_least(1, landmarks=self.landmarks)

    def measure_together(self, method: Method, places: Sequence[Place]) -> dict[str, Any]:
        """Of every landmark of every place, in every place."""
        if len(places) < 2:
            raise EvaluationError("reuse is measured between places: name at least two scenes")
        drawn = [self._drawn(method, place) for place in places]
        return {
            "landmarks": [self._landmarks(drawn, home) for home in range(len(places))],
            "scenes": [place.scene.name for place in places],
        }

    def check(self, place: Place) -> None:
        """Refuse a place without landmarks, which could say nothing."""
        if not len(self._patches(place)[1].landmarks):
            raise EvaluationError(f"{place.scene.name}: no spot is seen in two frames within {self.radius:g} m")

    def _drawn(self, method: Method, place: Place) -> "Drawn":
        rows, patches = self._patches(place)
        features = method.features(place, self.radius)[torch.from_numpy(rows)].flatten(0, 2)
        return Drawn(patches, features, _classes(place, rows))

    def _patches(self, place: Place) -> tuple[Int[np.ndarray, " k"], Patches]:
        """The frames (rows of the place) that are looked at, and their patches."""
        rng = np.random.default_rng([self.seed, zlib.crc32(place.scene.name.encode())])
        usable = np.flatnonzero(place.known.reshape(len(place), -1).any(axis=1))
        rows = draw_frames(place.overlap, usable, rng, self.frames)
        positions = torch.from_numpy(place.points[rows].reshape(-1, 3))
        frames = torch.arange(len(rows)).repeat_interleave(place.grid[0] * place.grid[1])
        alone = torch.zeros_like(frames)
        landmarks = draw_landmarks(positions, alone, frames, self.radius, self.landmarks, rng)
        return rows, Patches(positions, alone, frames, landmarks)

    def _landmarks(self, drawn: Sequence["Drawn"], home: int) -> dict[str, Any]:
        """Of the landmarks of one place: class AP elsewhere, and how many other places each serves, for every κ."""
        own = drawn[home]
        embeddings = own.features[own.patches.landmarks]
        elsewhere = [each for number, each in enumerate(drawn) if number != home]
        served = {
            f"{kappa:g}": [
                sum(values)
                for values in zip(*(self._serves(embeddings, each, kappa).tolist() for each in elsewhere), strict=True)
            ]
            for kappa in self.kappas
        }
        at_home = {f"{kappa:g}": self._serves(embeddings, own, kappa).tolist() for kappa in self.kappas}
        return {"class AP": self._class_precision(own, elsewhere), "served": served, "at home": at_home}

    def _serves(self, embeddings: Float[Tensor, "m c"], place: "Drawn", kappa: float) -> Tensor:
        """Whether each embedding finds, in other frames, the spot of a place that it is most like."""
        known = place.patches.positions.isfinite().all(dim=1)
        scores = place.features @ embeddings.T
        spots = scores.masked_fill(~known[:, None], -torch.inf).argmax(dim=0)
        geometry = (place.patches.positions, place.patches.environments, place.patches.frames, spots)
        positive, universe = retrieval_sets(*geometry, self.radius, kappa, exclude_same_frame=True)
        return average_precision_per_landmark(scores, positive, universe) >= SERVES

    def _class_precision(self, own: "Drawn", elsewhere: Sequence["Drawn"]) -> list[dict[str, float]]:
        """Of every landmark in every other place that shows its class, AP and what chance gives."""
        found = []
        for other in elsewhere:
            if own.classes is None or other.classes is None:
                continue
            labelled = np.flatnonzero(other.classes != "")
            wanted = own.classes[own.patches.landmarks.numpy()]
            kept = np.flatnonzero((wanted != "") & np.isin(wanted, other.classes[labelled]))
            if not len(kept):
                continue
            positive = torch.from_numpy(other.classes[labelled, None] == wanted[kept])
            embeddings = own.features[own.patches.landmarks[torch.from_numpy(kept)]]
            scores = other.features[torch.from_numpy(labelled)] @ embeddings.T
            values = average_precision_per_landmark(scores, positive, torch.ones_like(positive))
            shares = positive.double().mean(dim=0)
            pairs = zip(values.tolist(), shares.tolist(), strict=True)
            found += [{"AP": value, "chance": share} for value, share in pairs]
        return found


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is looked at of a place."""

    patches: Patches
    features: Float[Tensor, "n c"]
    classes: np.ndarray | None
    """The name of each patch's class, empty where it has none; None in a place without labels."""


def _classes(place: Place, rows: Int[np.ndarray, " k"]) -> np.ndarray | None:
    if not place.scene.classes or not (labelled := labelled_rows(place)):
        return None
    targets = class_targets(place.scene, [place.indices[row] for row in labelled])
    names = np.array(["", *(label.name for label in targets.classes)])
    column = np.zeros(1 + max(label.id for label in targets.classes), int)
    for number, label in enumerate(targets.classes, 1):
        column[label.id] = number
    labels = np.zeros((len(rows), *place.grid), int)
    for number in np.flatnonzero(np.isin(rows, labelled)):
        labels[number] = majority_labels(targets.of(place.frame(int(rows[number]))), place.grid)
    return names[column[labels]].reshape(-1)


def tables(outcome: Outcome) -> list[Table]:
    """Class AP, and places served against κ."""
    kappas = [f"{kappa:g}" for kappa in outcome.benchmark.kappas]
    classes, service = [], []
    for method in outcome.methods:
        if not isinstance(method, Competitor):
            row = unavailable(method.label, method.reason)
            classes, service = [*classes, row], [*service, row]
            continue
        homes = _homes(outcome, method.label)
        precisions = [home["class AP"] for home in homes if home["class AP"]]
        if precisions and not isinstance(method, Truth):
            cells = [_over_places(precisions, name) for name in ("AP", "chance")]
            classes.append(outcome.row(method, cells))
        if homes and not isinstance(method, Truth):
            cells = [estimate(np.array([np.mean(home["served"][kappa]) for home in homes])) for kappa in kappas]
            cells += [estimate(np.array([np.mean(home["at home"][kappas[-1]]) for home in homes]))]
            service.append(outcome.row(method, cells))
    count = len(outcome.parts[0].measured["scenes"])
    note = f"In brackets: 95 % of {DRAWS:,} bootstrap draws of {count} places."
    made = []
    if any(row.kind != "unavailable" for row in classes):
        told = "A landmark's feature ranks every labelled patch of another place; those of its class should come first."
        columns = [Column("class AP, other places"), Column("chance", better="neither")]
        made.append(Table("Reuse: the same class in another place", columns, classes, [told, note]))
    columns = [*(Column(f"κ = {kappa}", 2) for kappa in kappas), Column(f"at home, κ = {kappas[-1]}", 2)]
    told = f"Of {count - 1} other places, how many an embedding serves: AP ≥ {SERVES} for the most similar spot."
    made.append(Table("Reuse: other places that a landmark's embedding serves", columns, service, [told, note]))
    return made


def figures(outcome: Outcome) -> list[tuple[str, str]]:
    """Places served against κ."""
    kappas = np.array(outcome.benchmark.kappas)
    lines = []
    for method in outcome.methods:
        homes = _homes(outcome, method.label)
        if homes and isinstance(method, Competitor) and not isinstance(method, Truth):
            values = [np.mean([np.mean(home["served"][f"{kappa:g}"]) for home in homes]) for kappa in kappas]
            lines.append(Line(method.label, kappas, np.array(values), method.bound))
    drawn = line_figure({"": lines}, "κ", "other places served", log=True)
    return [("Other places that a landmark's embedding serves, against κ", drawn)]


def _homes(outcome: Outcome, label: str) -> list[dict[str, Any]]:
    return [home for part in outcome.of(label) for home in part.measured["landmarks"]]


def _over_places(precisions: Sequence[Sequence[dict[str, float]]], name: str) -> Any:
    return estimate(np.array([np.mean([each[name] for each in home]) for home in precisions]))
