"""Visual place recognition: is an image of the same place among the most similar images of a database?

An image is described as AnyLoc does it: VLAD of its features, over a vocabulary of the database's own. GeM was tried
beside it in generated houses, and found fewer of the frames that were taken near by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.cluster.vq import kmeans2

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.methods import Chance, Competitor, ModelMethod
from locus.evaluation.outcome import Outcome
from locus.evaluation.protocols.frame_protocol import FrameProtocol, ProtocolScene
from locus.evaluation.scene_patches import EvaluationError, at_least
from locus.evaluation.table import Cell, Column, Table
from locus.scenes import Scene

FIRST = (1, 5, 10)
SAMPLED = 50_000  # features that the vocabulary is made from
ROUNDS = 25  # of k-means


@dataclass(frozen=True, eq=False)
class PlaceScene(ProtocolScene):
    """The images of a database, and after them those that are looked for in it."""

    database: int = 0
    """How many are the database."""
    positives: tuple[frozenset[int], ...] = ()
    """Of each query, the images of the database that show the same place."""

    def truth(self) -> object:
        return self.database, [sorted(each) for each in self.positives]


@dataclass(frozen=True)
class PlaceRecognition(FrameProtocol):
    """What all layouts have in common."""

    words_of_vlad: int = 64
    """Size of the vocabulary."""
    radius: float = 0.6
    """Metres: which scale of a model of several is asked."""
    seed: int = 0
    """Of the vocabulary."""

    def __post_init__(self) -> None:
        at_least(1, words_of_vlad=self.words_of_vlad)

    def fingerprint(self) -> Any:
        return [self.words_of_vlad, self.radius, self.seed]

    def measure(self, method: Competitor, scene: PlaceScene) -> dict[str, Any]:
        """For every query, the place of the first right image in the list; None if there is none to find."""
        if isinstance(method, Chance):
            described = np.random.default_rng(self.seed).normal(size=(len(scene), method.DIMENSION))
        elif isinstance(method, ModelMethod):
            described = self._described(method, scene)
        else:
            raise EvaluationError(f"{method.label} is no model; images are described by models' features")
        order = np.argsort(-described[scene.database :] @ described[: scene.database].T, axis=1, kind="stable")
        return {"ranks": first_ranks(order, scene.positives), "database": scene.database}

    def _described(self, method: ModelMethod, scene: PlaceScene) -> Float[ndarray, "images d"]:
        # Twice over the images: the features of thousands do not fit into memory.
        share = max(1, SAMPLED // scene.database)
        random = np.random.default_rng(self.seed)
        samples = []
        for index in range(scene.database):
            flat = self._flat(method, scene, index)
            samples.append(flat[random.permutation(len(flat))[:share]])
        pooled = np.concatenate(samples)
        words, _ = kmeans2(pooled, min(self.words_of_vlad, len(pooled)), ROUNDS, minit="++", seed=self.seed)
        return np.stack([vlad(self._flat(method, scene, index), words) for index in range(len(scene))])

    @torch.no_grad()
    def _flat(self, method: ModelMethod, scene: Scene, index: int) -> Float[ndarray, "n c"]:
        features = method.model.features(scene[index].image)[method.scale(self.radius)]
        return features.cpu().double().flatten(0, 1).numpy()

    def tables(self, outcome: Outcome) -> list[Table]:
        """Recall at 1, 5 and 10, of each layout and its queries."""

        def cells(method: Competitor) -> list[Cell]:
            ranks = outcome.measured(method.label, "ranks")
            places = np.array([np.inf if rank is None else rank for rank in ranks], np.float64)
            return [estimate((places < first).astype(float)) for first in FIRST]

        parts = {part.scene: part.measured for part in outcome.parts}
        ranks = [rank for measured in parts.values() for rank in measured["ranks"]]
        lost = sum(rank is None for rank in ranks)
        images = sum(measured["database"] for measured in parts.values())
        notes = [
            f"{len(ranks)} queries, {images} images in the database; VLAD of {self.words_of_vlad} words."
            + (f" {lost} queries have no image of their place in the database, and count as wrong." if lost else ""),
            f"In brackets: 95 % of {DRAWS:,} bootstrap draws of queries.",
        ]
        columns = [Column(f"Recall@{first}") for first in FIRST]
        return [Table(f"{self.name}: place recognition", columns, outcome.rows(cells), notes)]


def vlad(features: Float[ndarray, "n c"], words: Float[ndarray, "k c"]) -> Float[ndarray, " kc"]:
    """What is left of each feature after its nearest word, summed by word, each sum and the whole at unit length."""
    nearest = ((words**2).sum(axis=1) - 2 * features @ words.T).argmin(axis=1)
    sums = np.zeros_like(words)
    np.add.at(sums, nearest, features - words[nearest])
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return sums.ravel() / max(float(np.linalg.norm(sums)), 1e-12)


def first_ranks(order: Int[ndarray, "queries database"], positives: Sequence[frozenset[int]]) -> list[int | None]:
    """Where in its list each query has the first right image, from 0; None if nothing is right."""
    found: list[int | None] = []
    for row, right in zip(order, positives, strict=True):
        hits = np.flatnonzero(np.isin(row, list(right)))
        found.append(int(hits[0]) if len(hits) else None)
    return found
