"""Regions: is a spot, or a marked thing, found in other views, and how well do the regions fit? Needs labelled scenes.

*Spots*: a random pixel on a thing is co-segmented in all other views of its scene. The region is compared, in all views
together, with the pixels whose points lie within the radius of the pixel's, and with those of the thing it lies on; the
views are ranked by their score. *Things*: each thing, marked by its true mask in one frame, is looked for in all other
frames, of its own scene and of all scenes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from numpy import ndarray

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.figures import line_figure
from locus.evaluation.methods import Competitor, Features, Method, Truth
from locus.evaluation.outcome import Outcome, SampledSpots
from locus.evaluation.patch_truth import labelled_rows
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, at_least
from locus.evaluation.table import Cell, Column, Table
from locus.features.dense import SceneFeatures
from locus.geometry import transform
from locus.objective import average_precision
from locus.pages.pictures import enlarged
from locus.tasks import cosegmentation
from locus.tasks.cosegmentation import feature_at, similarity
from locus.tasks.image_features import frame_features
from locus.tasks.instances import MIN_SCORE, MIN_SIMILARITY, box_of, find_instance, instance_of

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(6, 20))
PRINTED = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85)
SCORES = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
TRUTHS = ("spot", "object")
TRIES = 100  # pixels drawn for each query, at most
ENOUGH = 200  # pixels of the truth in other views, for a query to count
SPOT = 50  # pixels, for a view to show the spot
MARKED, SHOWN = 0.01, 0.002  # shares of a frame: where a thing may be marked, and where it counts as shown

RANKINGS, OVERLAPS = ("AP, own scene", "AP, all scenes"), ("mask IoU", "box IoU")
BRACKETS = f"In brackets: 95 % of {DRAWS:,} bootstrap draws of {{}}."

Pixels = Bool[ndarray, "frames height width"]
Labels = Int[ndarray, "frames height width"]


@dataclass(frozen=True)
class Regions(SampledSpots):
    """Is a spot, or a marked thing, found in other views, and how well do the regions fit? Needs labelled scenes."""

    queries: int = 30
    """Pixels of each scene that are co-segmented."""

    name = "regions"
    together = True

    def __post_init__(self) -> None:
        at_least(1, queries=self.queries)

    def check(self, patches: ScenePatches) -> None:
        """Refuse a scene without things."""
        if not instances(patches).any():
            raise EvaluationError(f"{patches.scene.name} has no labelled things, which regions are compared with")

    def measure(self, method: Method, scenes: Sequence[ScenePatches]) -> dict[str, Any]:
        """Every pixel and every thing of every scene."""
        if isinstance(method, Truth):
            raise EvaluationError("regions have no ceiling: true points have no similarity that a threshold fits")
        features = [method.features(patches, self.radius).float() for patches in scenes]
        labels = [instances(patches) for patches in scenes]
        spots = [query for each in zip(scenes, features, labels, strict=True) for query in self._spots(*each)]
        return {"spots": spots, "things": self._things(scenes, features, labels), "scenes": len(scenes)}

    def _spots(self, patches: ScenePatches, features: Features, things: Labels) -> list[dict]:
        size = (things.shape[2], things.shape[1])
        measured = []
        for view, row, column, truths in self.pixels(patches, things):
            others = np.arange(len(things)) != view
            values = similarity(feature_at(features[view], column + 0.5, row + 0.5, size), features[others])
            found = np.stack([enlarged(value, size) for value in values])
            query: dict[str, Any] = {
                name: [overlap_of(found >= threshold, truth[others]) for threshold in THRESHOLDS]
                for name, truth in zip(TRUTHS, truths, strict=True)
            }
            shows = truths[0][others].sum(axis=(1, 2)) >= SPOT
            query["AP"] = precision(values.max(axis=(1, 2)), shows) if shows.any() else None
            measured.append(query)
        return measured

    def pixels(self, patches: ScenePatches, things: Labels) -> Iterator[tuple[int, int, int, tuple[Pixels, Pixels]]]:
        """Random pixels (frame, row, column) on things; the pixels of the same spot and thing in other views."""
        random = patches.random(self.seed)
        points = world_points(patches)
        left = self.queries
        for _ in range(TRIES * self.queries):
            view, row, column = (int(random.integers(length)) for length in things.shape)
            if not things[view, row, column] or not np.isfinite(points[view, row, column]).all():
                continue
            spot = np.linalg.norm(points - points[view, row, column], axis=-1) <= self.radius
            thing = things == things[view, row, column]
            spot[view] = thing[view] = False
            if min(spot.sum(), thing.sum()) >= ENOUGH:
                yield view, row, column, (spot, thing)
                left -= 1
            if not left:
                return

    def _things(
        self, scenes: Sequence[ScenePatches], features: Sequence[Features], labels: Sequence[Labels]
    ) -> list[dict[str, Any]]:
        random = np.random.default_rng(self.seed)
        seen = [
            SceneFeatures(patches.scene, patches.indices, patches.points, own[None])
            for patches, own in zip(scenes, features, strict=True)
        ]
        views = [view for each in seen for view in frame_features(each)]
        maps = [each for scene in labels for each in scene]
        owner = np.repeat(np.arange(len(scenes)), [len(scene) for scene in labels])
        measured = []
        for number, scene in enumerate(labels):
            for thing in np.unique(scene[scene > 0]):
                shares = np.zeros(len(maps))
                shares[owner == number] = (scene == thing).mean(axis=(1, 2))
                relevant = shares >= SHOWN
                if not (shares >= MARKED).any() or relevant.sum() < 2:
                    continue
                first = int(random.choice(np.flatnonzero(shares >= MARKED)))
                instance = instance_of(views[first].features[0], maps[first] == thing)
                found = [find_instance(view, instance, min_score=-1.0) for view in views]
                scores, others = np.array([each.score for each in found]), np.arange(len(views)) != first
                own = others & (owner == number)
                pairs = [(found[index], maps[index] == thing) for index in np.flatnonzero(relevant & others)]
                measured.append(
                    {
                        "AP, own scene": precision(scores[own], relevant[own]),
                        "AP, all scenes": precision(scores[others], relevant[others]),
                        "mask IoU": [overlap_of(each.mask, truth) for each, truth in pairs],
                        "box IoU": [box_overlap(each.box, box_of(truth)) for each, truth in pairs],
                        "shown": scores[relevant & others].tolist(),
                        "not shown": scores[(shares == 0) & others].tolist(),
                    }
                )
        return measured

    def tables(self, outcome: Outcome) -> list[Table]:
        """Regions of spots by threshold; things found again; whether they are there."""
        return [_spot_table(outcome), _thing_table(outcome), _score_table(outcome)]

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        """Intersection over union against the threshold."""

        def means(method: Competitor, truth: str) -> Float[ndarray, " thresholds"] | None:
            queries = outcome.measured(method.label, "spots")
            return np.mean([query[truth] for query in queries], axis=0) if queries else None

        limits = np.array(THRESHOLDS)
        panels = {truth: outcome.lines(limits, lambda method, truth=truth: means(method, truth)) for truth in TRUTHS}
        return [("How well regions fit, by the least similarity", line_figure(panels, "similarity", "IoU"))]


def instances(patches: ScenePatches) -> Labels:
    """The thing that each pixel shows, 0 for none and where there are no labels."""
    things = [label.id for label in patches.scene.classes if label.kind == "thing"]
    camera = patches.frame(0).camera
    found = np.zeros((len(patches), camera.height, camera.width), np.int32)
    for row in labelled_rows(patches) if things else ():
        frame = patches.frame(row)
        if frame.semantic is not None and frame.instance is not None:
            found[row] = np.where(np.isin(frame.semantic, things), frame.instance, 0)
    return found


def world_points(patches: ScenePatches) -> Float32[ndarray, "frames height width 3"]:
    """Of every pixel, NaN where there is no depth."""
    found = []
    for row in range(len(patches)):
        frame = patches.frame(row)
        depth = np.where(frame.depth > 0, frame.depth, np.nan)
        points = frame.camera.unproject(frame.camera.pixel_grid(), depth)
        found.append(transform(frame.world_from_camera, points).astype(np.float32))
    return np.stack(found)


def overlap_of(found: Bool[ndarray, "*n"], truth: Bool[ndarray, "*n"]) -> float:
    """Intersection over union."""
    return float((found & truth).sum() / (found | truth).sum())


def box_overlap(found: tuple[int, ...] | None, truth: tuple[int, ...] | None) -> float:
    """Intersection over union of two boxes x0, y0, x1, y1; 0 where one is missing."""
    if found is None or truth is None:
        return 0.0
    width, height = (max(0, min(found[k + 2], truth[k + 2]) - max(found[k], truth[k])) for k in (0, 1))
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (found, truth))
    return width * height / (areas - width * height)


def precision(scores: Float[ndarray, " n"], relevant: Bool[ndarray, " n"]) -> float:
    """AP of one ranked list."""
    right = torch.from_numpy(relevant)[:, None]
    return float(average_precision(torch.from_numpy(scores)[:, None], right, torch.ones_like(right)))


def _spot_table(outcome: Outcome) -> Table:
    def cells(method: Competitor, truth: str) -> list[Cell] | None:
        queries = outcome.measured(method.label, "spots")
        if not queries:
            return None
        means = dict(zip(THRESHOLDS, np.mean([query[truth] for query in queries], axis=0).tolist(), strict=True))
        best = max(means, key=lambda threshold: means[threshold])
        ranked = [query["AP"] for query in queries if query["AP"] is not None]
        ranking = estimate(np.array(ranked)) if truth == "spot" else None
        return [*(means[threshold] for threshold in PRINTED), f"{means[best]:.3f} at {best:g}", ranking]

    measured = outcome.parts[0].measured  # the same pixels for every method
    columns = [Column(f"{threshold:g}") for threshold in PRINTED]
    columns += [Column("best", better="neither"), Column("AP of the views")]
    notes = [
        f"Pixels on things: {len(measured['spots'])}. Scenes: {measured['scenes']}. Intersection over union, in all "
        f"other views together, with the pixels within {outcome.benchmark.radius:g} m of the spot, and with the whole "
        f"object; by the least similarity, by default {cosegmentation.MIN_SIMILARITY:g}.",
        f"The last column ranks the views: those that show the spot should come first. {BRACKETS.format('pixels')}",
    ]
    return Table("Regions: one spot in every view", columns, outcome.rows_of_kinds(TRUTHS, cells), notes)


def _thing_table(outcome: Outcome) -> Table:
    def cells(method: Competitor) -> list[Cell] | None:
        things = outcome.measured(method.label, "things")
        if not things:
            return None
        ranking = [estimate(np.array([thing[name] for thing in things])) for name in RANKINGS]
        return [*ranking, *(float(np.mean([value for thing in things for value in thing[name]])) for name in OVERLAPS)]

    measured = outcome.parts[0].measured
    columns = [Column(name) for name in (*RANKINGS, *OVERLAPS)]
    notes = [
        f"Things: {len(measured['things'])}, each marked in one frame by its true mask. Scenes: {measured['scenes']}. "
        f"AP: frames of which the thing fills {SHOWN:.1%} should be ranked first. Intersection over union: in these "
        f"frames, at a least similarity of {MIN_SIMILARITY:g}. {BRACKETS.format('things')}",
    ]
    return Table("Regions: a marked thing found again", columns, outcome.rows(cells), notes)


def _score_table(outcome: Outcome) -> Table:
    def cells(method: Competitor) -> list[Cell] | None:
        things = outcome.measured(method.label, "things")
        if not things:
            return None
        shown, hidden = (np.array([s for thing in things for s in thing[name]]) for name in ("shown", "not shown"))
        return [f"{(shown >= least).mean():.3f}, {(hidden >= least).mean():.3f}" for least in SCORES]

    note = (
        "The share of frames that show a thing, and of those that do not, in which it is found if a frame must have "
        f"this score; by default {MIN_SCORE:g}."
    )
    columns = [Column(f"{least:g}", better="neither") for least in SCORES]
    return Table("Regions: is the marked thing there?", columns, outcome.rows(cells), [note])
