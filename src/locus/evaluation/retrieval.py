"""Retrieval (Table 1): does a landmark's feature find the patches that show the same spot?

Fixed batches: some frames of each scene that overlap, the same for every method and every run, every patch of theirs
ranked for landmarks drawn among them. AP depends on how the list is drawn, so all of that is part of the result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.figures import line_figure
from locus.evaluation.methods import Competitor, Method, Truth
from locus.evaluation.outcome import Outcome, SampledRanking
from locus.evaluation.published import PLACE_RECOGNITION
from locus.evaluation.scene_patches import EvaluationError, LandmarkBatch, ScenePatches, at_least
from locus.evaluation.table import Cell, Column, Table
from locus.features.viz import heat, span
from locus.objective import ExactRanking, RetrievalObjective, retrieval_sets
from locus.pages.pictures import Picture, resized, sheet
from locus.scenes.patches import patch_centres

# Every pair of the universe; and without the pairs of one frame, which are easy and dominate.
EXCLUDE_SAME_FRAME = {"all pairs": False, "cross-view": True}
LANDMARK_STEPS = 20  # the distribution of per-landmark AP is told by its quantiles
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
WIDTH = 240  # pixels of a frame in a picture
OTHERS = 4  # frames in a picture beside the landmark's own


@dataclass(frozen=True)
class Retrieval(SampledRanking):
    """Does a landmark's feature find the patches that show the same spot (the paper's Table 1)?

    V-Smooth-AP and exact AP over every patch of fixed, seeded batches: over all pairs, and cross-view, without the
    pairs of one frame, which are easy and dominate.
    """

    radii: tuple[float, ...] = (0.2,)
    """Metres within which two points are the same spot."""
    frames_per_batch: int = 16
    """Frames in a batch: a random one, and others drawn by how much they overlap it."""
    batches: int = 4
    """Batches of each scene."""
    landmarks: int = 256
    """Landmarks drawn for a batch, each seen in two frames; every patch is ranked for each."""

    name = "retrieval"

    def __post_init__(self) -> None:
        at_least(2, frames_per_batch=self.frames_per_batch)
        at_least(1, batches=self.batches, landmarks=self.landmarks)

    def measure(self, method: Method, patches: ScenePatches) -> dict[str, Any]:
        """Every batch of one scene: `{radius: [{"all pairs": {...}, "cross-view": {...}}, ...]}`."""
        batches = list(self.drawn(patches))
        if not batches:
            raise EvaluationError(
                f"{patches.scene.name}: no spot is seen in two frames within {min(self.radii):g} m; "
                "do its frames overlap (`locus inspect`)?"
            )
        measured = {}
        for radius in self.radii:
            features = method.features(patches, radius)
            measured[f"{radius:g}"] = [self._batch(method, features, batch, radius) for batch in batches]
        return {"radii": measured}

    def drawn(self, patches: ScenePatches) -> Iterator[LandmarkBatch]:
        """The batches of one scene that have landmarks."""
        for number in range(self.batches):
            random = patches.random(self.seed, number)
            batch = patches.draw(random, self.frames_per_batch, self.landmarks, min(self.radii))
            if len(batch.landmarks):
                yield batch

    @torch.no_grad()
    def _batch(
        self, method: Method, features: Float[Tensor, "frames rows columns c"], batch: LandmarkBatch, radius: float
    ) -> dict[str, Any]:
        flat = features[torch.from_numpy(batch.rows)].flatten(0, 2)
        quantiles = np.linspace(0, 1, LANDMARK_STEPS + 1)
        result: dict[str, Any] = {}
        for pairs, exclude_same_frame in EXCLUDE_SAME_FRAME.items():
            exact = ExactRanking(radius, self.kappa, exclude_same_frame)
            smooth = RetrievalObjective(radius, self.kappa, self.tau, exclude_same_frame)
            ranked, own = exact(flat, *batch.geometry), exact.per_landmark(flat, *batch.geometry)
            result[pairs] = {
                "AP": float(ranked.average_precision),
                "V-Smooth-AP": None if isinstance(method, Truth) else float(smooth(flat, *batch.geometry)),
                "chance": ranked.chance,
                "pairs": len(ranked.above) + ranked.negatives,
                "curve": ranked.curve().numpy().round(5).tolist(),
                "landmarks": np.quantile(own.numpy(), quantiles).round(5).tolist(),
            }
        return result

    def tables(self, outcome: Outcome) -> list[Table]:
        """For every radius: the paper's Table 1, by scene, and by landmark."""
        radii = [f"{radius:g}" for radius in self.radii]
        made = [table(outcome, radius) for radius in radii for table in (_main, _by_scene, _by_landmark)]
        return [*made, PLACE_RECOGNITION]

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        """Precision against recall, for every radius."""
        made = []
        for radius in (f"{radius:g}" for radius in self.radii):
            panels = {
                pairs: outcome.lines(np.arange(1, 101) / 100, partial(_curve, outcome, radius, pairs))
                for pairs in ("cross-view", "all pairs")
            }
            caption = f"Precision where recall reaches a share of all pairs, radius {radius} m, mean over batches."
            made.append((caption, line_figure(panels, "recall", "precision", (0, 1), (0, 1))))
        return made

    def pictures(self, methods: Sequence[Competitor], patches: ScenePatches) -> list[tuple[str, Picture]]:
        """Rows of frames, one a method, glowing where a method finds a landmark; the first row shows where it is."""
        radius = self.radii[0]
        batch = next(self.drawn(patches), None)
        if batch is None:
            return []
        landmark, positive = _most_seen(batch, radius, self.kappa)
        per_frame = patches.grid[0] * patches.grid[1]
        own = landmark // per_frame
        counts = positive.reshape(len(batch.rows), per_frame).sum(axis=1)
        counts[own] = 0
        most = np.argsort(-counts, kind="stable")[:OTHERS].tolist()
        chosen = [own, *(row for row in most if counts[row])]
        images = [patches.frame(int(batch.rows[each])).image for each in chosen]
        marked = [
            _marked(image, positive, landmark, each, patches.grid) for image, each in zip(images, chosen, strict=True)
        ]
        shown, names = [marked], ["the landmark (square) and where it is seen (dots)"]
        for method in methods:
            if not isinstance(method, Method) or method.bound:
                continue
            features = method.features(patches, radius)[torch.from_numpy(batch.rows)]
            maps = [features[each] for each in chosen]
            query = features.flatten(0, 2)[landmark]
            limits = span(maps, query)
            pairs = zip(images, maps, strict=True)
            shown.append([resized(heat(image, each, query, limits), WIDTH) for image, each in pairs])
            names.append(method.label)
        caption = f"{patches.scene.name}, top to bottom: {'; '.join(names)}. The landmark's own frame is the first."
        return [(caption, sheet(shown))]


def _batches(outcome: Outcome, method: Competitor, radius: str) -> list[dict[str, Any]]:
    return [batch for part in outcome.of(method.label) for batch in part.measured["radii"][radius]]


def _curve(outcome: Outcome, radius: str, pairs: str, method: Competitor) -> Float[ndarray, " n"] | None:
    if isinstance(method, Truth):
        return None
    return np.mean([batch[pairs]["curve"] for batch in _batches(outcome, method, radius)], axis=0)


def _units(
    outcome: Outcome, method: Competitor, group: str, radius: str, pairs: str, measure: str
) -> Float[ndarray, " units"]:
    """One value a scene, the mean of its batches; one a batch if there is but one scene, for all methods."""
    parts = outcome.of(method.label, group)
    scenes = [[batch[pairs][measure] for batch in part.measured["radii"][radius]] for part in parts]
    if not scenes or any(value is None for values in scenes for value in values):
        return np.zeros(0)
    single = len({part.scene for part in outcome.parts if part.group == group}) == 1
    return np.array(scenes[0]) if single else np.array([np.mean(values) for values in scenes])


def _main(outcome: Outcome, radius: str) -> Table:
    groups = [group for group in ("training", "unseen") if any(part.group == group for part in outcome.parts)]
    keys = [
        (pairs, measure, group) for pairs in EXCLUDE_SAME_FRAME for measure in ("V-Smooth-AP", "AP") for group in groups
    ]
    columns = [
        Column(f"{measure}, {pairs}" + (f", {group}" if len(groups) > 1 else "")) for pairs, measure, group in keys
    ]
    rows = outcome.rows(
        lambda method: [
            estimate(_units(outcome, method, group, radius, pairs, measure)) for pairs, measure, group in keys
        ]
    )
    protocol = outcome.benchmark
    every = [batch for part in outcome.parts for batch in part.measured["radii"][radius]]
    chance = [np.mean([batch[pairs]["chance"] for batch in every]) for pairs in EXCLUDE_SAME_FRAME]
    unit = "batches of one scene" if len(outcome.scenes) == 1 else "scenes"
    notes = [
        f"{len(outcome.scenes)} unseen scenes, {protocol.batches} batches of {protocol.frames_per_batch} frames each, "
        f"{protocol.landmarks} landmarks, every patch; κ = {protocol.kappa:g}, τ = {protocol.tau:g}, "
        f"seed {protocol.seed}; {np.mean([batch['all pairs']['pairs'] for batch in every]):,.0f} pairs a batch, "
        f"of which {chance[0]:.2%} are right, {chance[1]:.2%} of the cross-view ones: what chance gives.",
        f"In brackets: 95 % of {DRAWS:,} bootstrap draws of {unit}. cross-view: without pairs of one frame.",
    ]
    return Table(f"Retrieval, radius {radius} m", columns, rows, notes)


def _by_scene(outcome: Outcome, radius: str) -> Table:
    def cells(method: Competitor) -> list[Cell]:
        values = {
            part.scene: float(np.mean([batch["cross-view"]["AP"] for batch in part.measured["radii"][radius]]))
            for part in outcome.of(method.label)
        }
        return [values.get(scene) for scene in outcome.scenes]

    columns = [Column(scene) for scene in outcome.scenes]
    return Table(f"AP, cross-view, by scene, radius {radius} m", columns, outcome.rows(cells))


def _by_landmark(outcome: Outcome, radius: str) -> Table:
    def cells(method: Competitor) -> list[Cell] | None:
        batches = _batches(outcome, method, radius)
        # Quantiles of every batch hold as many landmarks as any other's: together they are a sample of all.
        values = [batch["cross-view"]["landmarks"] for batch in batches]
        return np.quantile(np.concatenate(values), QUANTILES).tolist() if values else None

    columns = [Column("median" if share == 0.5 else f"{share:.0%}") for share in QUANTILES]
    title = f"AP of single landmarks, cross-view, radius {radius} m: this share of landmarks reaches no more than"
    return Table(title, columns, outcome.rows(cells))


def _most_seen(batch: LandmarkBatch, radius: float, kappa: float) -> tuple[int, Bool[ndarray, " n"]]:
    """The landmark that is seen in most other frames, and its positives."""
    positive, _ = retrieval_sets(*batch.geometry, radius, kappa, exclude_same_frame=True)
    frames = batch.geometry[2]
    best = int(np.argmax([len(frames[column].unique()) for column in positive.T]))
    return int(batch.landmarks[best]), positive[:, best].numpy()


def _marked(image: Picture, positive: Bool[ndarray, " n"], landmark: int, frame: int, grid: tuple[int, int]) -> Picture:
    small = resized(image, WIDTH).copy()
    centres = patch_centres(grid, small.shape[1], small.shape[0]).reshape(-1, 2)
    count = len(centres)
    for x, y in centres[positive[frame * count : (frame + 1) * count]]:
        cv2.circle(small, (round(x), round(y)), 3, (255, 90, 30), -1, cv2.LINE_AA)
    if landmark // count == frame:
        x, y = centres[landmark % count]
        half = small.shape[0] / grid[0] / 2
        low, high = ((round(x + sign * half), round(y + sign * half)) for sign in (-1, 1))
        cv2.rectangle(small, low, high, (255, 220, 0), 2)
    return small
