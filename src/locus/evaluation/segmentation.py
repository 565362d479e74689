"""Segmentation (Table 2): stuff by class and every thing by itself, told from frozen features by a linear probe.

Counted in patches: one belongs to a class or object if more than half of its pixels do, others straddle and are left
out. `held-out`: the probe is fitted on half of the frames and scored on the others; `same-images`: fitted and scored on
all frames, as the paper's code does. With `--probe`, it is fitted on other scenes, and things go by their class too.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import cv2
import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.masks import MaskMethod, MaskPredictions, oracle_names
from locus.evaluation.methods import Competitor, Method, Truth
from locus.evaluation.metrics import GROUPS, group_scores, log_odds
from locus.evaluation.outcome import Benchmark, Outcome
from locus.evaluation.patch_truth import PatchTruth
from locus.evaluation.published import SEGMENTATION
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, first_size, read_patches
from locus.evaluation.specs import MASKS, predictions
from locus.evaluation.table import Cell, Column, Row, Table
from locus.pages.pictures import Picture, resized, sheet
from locus.scenes import Scene
from locus.scenes.collection import find_scenes, open_scenes
from locus.scenes.fingerprint import scene_fingerprint
from locus.scenes.scene import LabelClass
from locus.tasks.patch_labels import majority_labels, merged, same_names
from locus.tasks.probe import Probe, fit_probe
from locus.tasks.region_pictures import label_colours, label_picture

MEASURES = ("mAP", "mIoU", "Jaccard")
MOST = 30  # classes listed one by one
WIDTH = 240  # pixels of a frame in a picture
VIEWS = 4  # frames in a picture


@dataclass(frozen=True, eq=False)
class PatchAnswer:
    """What a method says of every patch."""

    predicted: Int[ndarray, "frames rows columns"]
    """Ids of the truth's classes, 0 for none of them."""
    known: Sequence[int]
    """Ids that the probe was fitted to, in rising order."""
    scores: Float[ndarray, "frames rows columns k"] | None
    """Log-odds of the known ids, in their order; None for systems that give masks."""


@dataclass(frozen=True)
class Segmentation(Benchmark):
    """How well do a linear probe's labels fit, stuff by class and every thing by itself (the paper's Table 2)?

    Needs labelled scenes. Further methods: mask2former, mask2former+oracle, and predictions:FOLDER, with or without
    +oracle: masks made elsewhere (docs/evaluation.md).
    """

    split: Literal["held-out", "same-images"] = "held-out"
    """Score the probe on frames it was not fitted on, or, as the paper's code, on the same ones."""
    probe: tuple[str, ...] = ()
    """Labelled scenes to fit the probe to instead: classes go by name, things too, and every frame is scored."""
    radius: float = 0.2
    """Metres: which scale of a model of several is asked."""
    l2: float | None = None
    """How strongly the probe's weights are drawn to zero. By default 1e-6, and 1e-4 with --probe."""
    seed: int = 0
    """Of the split."""

    name = "segmentation"

    def measure(self, method: Competitor, patches: ScenePatches) -> dict[str, Any]:
        """Groups, classes, and what was left out, of one scene."""
        truth = self.truth(patches)
        fitted, scored_frames = self._split(patches)
        answer = self.answer(method, patches, truth, fitted)
        scored = np.broadcast_to(scored_frames[:, None, None], truth.labels.shape)
        straddling = int((scored & (truth.labels == 0)).sum())
        # What the probe was never shown it cannot tell: left out, and counted.
        absent = scored & (truth.labels > 0) & ~np.isin(truth.labels, answer.known)
        scored = scored & np.isin(truth.labels, answer.known)
        kept = [label for label in truth.classes if label.id in answer.known]
        scores = None if answer.scores is None else answer.scores[scored]
        groups = group_scores(truth.labels[scored], answer.predicted[scored], kept, scores)
        if not groups:
            raise EvaluationError(f"{patches.scene.name}: the scored frames show nothing that the probe was shown")
        return {
            "groups": {group: figures for group, (figures, _) in groups.items()},
            "classes": [each | {"class": self._class_of(each["name"], each["kind"])} for each in groups["all"][1]],
            "patches": int(scored.sum()),
            "straddling": straddling,
            "absent classes": len(np.unique(truth.labels[absent])),
            "absent patches": int(absent.sum()),
        }

    def truth(self, patches: ScenePatches) -> PatchTruth:
        return PatchTruth.of(patches, objects=not self.probe)

    def answer(
        self, method: Competitor, patches: ScenePatches, truth: PatchTruth, fitted: Bool[ndarray, " frames"]
    ) -> PatchAnswer:
        """What a method says of every patch, its probe fitted to some of the frames, or to other scenes."""
        if isinstance(method, MaskMethod):  # fitted to nothing, but scored on the same patches as the others
            if self.probe:
                raise EvaluationError(f"{method.label} gives masks of single things, which --probe does not tell apart")
            predicted = np.stack([_masked(method, patches, row, truth) for row in range(len(patches))])
            shown = np.unique(truth.labels[fitted])
            return PatchAnswer(predicted, shown[shown > 0].tolist(), None)
        if not isinstance(method, Method):
            raise EvaluationError(f"{method.label} gives neither features nor masks")
        if self.probe:
            classes, probe = self._shared_probe(method)
        else:
            classes = truth.classes
            features = self._features(method, patches, truth, classes)
            probe = fit_probe(truth.labelled(features, fitted), l2=self.l2, objects=True)
        logits = probe.logits(self._features(method, patches, truth, classes))
        numbers = same_names(probe.classes, truth.classes)  # from the probe's ids to the truth's, 0 for none
        known = np.array([column for column in numbers[1:].argsort() if numbers[1 + column]], np.int64)
        scores = log_odds(logits)[..., torch.from_numpy(known)].numpy()
        return PatchAnswer(numbers[1 + logits.argmax(dim=-1).numpy()], numbers[1 + known].tolist(), scores)

    def _features(
        self, method: Method, patches: ScenePatches, truth: PatchTruth, classes: Sequence[LabelClass]
    ) -> Float[Tensor, "frames rows columns c"]:
        return truth.one_hot(classes) if isinstance(method, Truth) else method.features(patches, self.radius)

    @cached_property
    def _probe_scenes(self) -> list[Scene]:
        return open_scenes(find_scenes(self.probe))

    @cached_property
    def _probes(self) -> dict[str, tuple[Sequence[LabelClass], Probe]]:
        return {}

    def _shared_probe(self, method: Method) -> tuple[Sequence[LabelClass], Probe]:
        """A method's probe of the scenes given with --probe, and their classes; fitted once."""
        if method.fingerprint not in self._probes:
            every = [read_patches(scene, method.grid(*first_size(scene))) for scene in self._probe_scenes]
            truths = [self.truth(patches) for patches in every]
            classes = list({label.name: label for truth in truths for label in truth.classes}.values())
            shown = [
                truth.labelled(self._features(method, patches, truth, classes), np.ones(len(patches), bool))
                for truth, patches in zip(truths, every, strict=True)
            ]
            self._probes[method.fingerprint] = classes, fit_probe(merged(shown), l2=self.l2)
        return self._probes[method.fingerprint]

    def _split(self, patches: ScenePatches) -> tuple[Bool[ndarray, " frames"], Bool[ndarray, " frames"]]:
        """Frames to fit on and to score on."""
        every = np.ones(len(patches), bool)
        if self.probe or self.split == "same-images":
            return every, every
        fitted = ~every
        fitted[patches.random(self.seed).permutation(len(patches))[: len(patches) // 2]] = True
        return fitted, ~fitted

    def _class_of(self, name: str, kind: str) -> str:
        """The class that an object belongs to: `sofa 12` is a sofa."""
        return name.rpartition(" ")[0] if kind == "thing" and not self.probe else name

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        return {**MASKS, **predictions(given, MaskPredictions.named)}

    def fingerprint(self) -> Any:
        return asdict(self) | {"probe": [scene_fingerprint(scene) for scene in self._probe_scenes]}

    def tables(self, outcome: Outcome) -> list[Table]:
        """The paper's Table 2, the Jaccard index as it prints it, and class by class."""
        return [_main(outcome), _printed(outcome), _by_class(outcome), SEGMENTATION]

    def pictures(self, methods: Sequence[Competitor], patches: ScenePatches) -> list[tuple[str, Picture]]:
        """Columns are views; rows the image, the truth, and each method. An object has one colour in every view."""
        truth = self.truth(patches)
        fitted, scored = self._split(patches)
        colours = label_colours(truth.classes)
        compared = [each for each in methods if not each.bound]
        answers = [self.answer(method, patches, truth, fitted).predicted for method in compared]
        rows = np.flatnonzero(scored)
        # The views of which most is labelled.
        chosen = rows[np.argsort(-(truth.labels[rows] > 0).sum(axis=(1, 2)), kind="stable")][:VIEWS]
        images = [patches.frame(int(row)).image for row in chosen]
        strips = [[resized(image, WIDTH) for image in images]]
        for labels in (truth.labels, *answers):
            strip = []
            for row, image in zip(chosen, images, strict=True):
                size = (image.shape[1], image.shape[0])
                whole = cv2.resize(labels[row].astype(np.int32), size, interpolation=cv2.INTER_NEAREST)
                strip.append(resized(label_picture(image, whole, colours), WIDTH))
            strips.append(strip)
        names = ["images", "truth (grey where a patch straddles)", *(method.label for method in compared)]
        caption = f"{patches.scene.name}, top to bottom: {'; '.join(names)}. An object has one colour in all views."
        return [(caption, sheet(strips))]


def _masked(method: MaskMethod, patches: ScenePatches, row: int, truth: PatchTruth) -> Int[ndarray, "rows columns"]:
    """A system's label map as ids of the scene's classes and objects, patch by patch."""
    if not truth.labels[row].any():  # nothing of it is scored
        return np.zeros(patches.grid, np.int64)
    segments = method.segments(patches, row)
    if method.oracle:
        names = {label.id: label.name for label in truth.classes}
        segments = oracle_names(segments, truth.targets.of(patches.frame(row)), names)
    ids = {label.name: label.id for label in truth.classes}
    table = np.zeros(max([0, *segments.names, int(segments.ids.max())]) + 1, np.int64)
    for number, name in segments.names.items():
        table[number] = ids.get(name, 0)
    return majority_labels(table[segments.ids], patches.grid).astype(np.int64)


def _values(outcome: Outcome, method: Competitor, group: str, measure: str) -> Float[ndarray, " scenes"]:
    """One a scene that has any of the group."""
    groups = [part.measured["groups"].get(group, {}) for part in outcome.of(method.label)]
    return np.array([each[measure] for each in groups if each.get(measure) is not None], float)


def _main(outcome: Outcome) -> Table:
    keys = [(group, measure) for group in GROUPS for measure in MEASURES]
    rows = outcome.rows(lambda method: [estimate(_values(outcome, method, *key)) for key in keys])
    scenes = {part.scene: part.measured for part in outcome.parts}  # all methods are scored on the same patches
    names = ("patches", "straddling", "absent classes", "absent patches")
    counts = {name: sum(measured[name] for measured in scenes.values()) for name in names}
    without = [scene for scene, measured in scenes.items() if "things" not in measured["groups"]]
    protocol = outcome.benchmark
    how = f"a probe fitted to {', '.join(protocol.probe)}" if protocol.probe else protocol.split
    notes = [
        f"{len(outcome.scenes)} scenes, {how}; {counts['patches']:,} patches scored, "
        f"{counts['straddling']:,} that straddle or are unlabelled left out. What the probe was never shown is left "
        f"out for every method: {counts['absent classes']} classes or objects, {counts['absent patches']:,} patches.",
        "Jaccard: TP/(TP+FP+FN) over all classes together, as the authors' code counts."
        + (f" No things in {', '.join(without)}." if without else ""),
        f"In brackets: 95 % of {DRAWS:,} bootstrap draws of scenes."
        if len(outcome.scenes) > 1
        else "One scene: nothing to draw intervals from.",
    ]
    columns = [Column(f"{measure}, {group}") for group, measure in keys]
    return Table("Segmentation", columns, rows, notes)


def _printed(outcome: Outcome) -> Table:
    def cells(method: Competitor) -> list[Cell]:
        return [estimate(_values(outcome, method, group, "Jaccard as printed")) for group in GROUPS]

    note = (
        "TP/(FP+FN), mean over classes; scenes in which a class is predicted without error, where it is infinite, are "
        "left out."
    )
    columns = [Column(group) for group in GROUPS]
    return Table("Jaccard as the paper prints it", columns, outcome.rows(cells), [note])


def _by_class(outcome: Outcome) -> Table:
    """AP and IoU by class, objects of one class together."""
    methods = [method for method in outcome.methods if isinstance(method, Competitor) and outcome.of(method.label)]
    found = {method.label: outcome.measured(method.label, "classes") for method in methods}
    counts = Counter(each["class"] for each in found[methods[0].label])
    shown = sorted(counts, key=lambda name: (-counts[name], name))[:MOST]
    rows = []
    for name in shown:
        cells: list[Cell] = [float(counts[name])]
        for method in methods:
            own = [each for each in found[method.label] if each["class"] == name]
            for measure in ("average_precision", "iou"):
                values = [each[measure] for each in own if each[measure] is not None]
                cells.append(float(np.mean(values)) if values else None)
        rows.append(Row(name, cells))
    columns = [Column("objects", 0, "neither")]
    columns += [
        Column(f"{measure}, {outcome.label(m)}", better="neither") for m in methods for measure in ("AP", "IoU")
    ]
    notes = [f"Means over objects; the {len(shown)} commonest of {len(counts)} classes."] if len(counts) > MOST else []
    return Table("Segmentation by class", columns, rows, notes)
