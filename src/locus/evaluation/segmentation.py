"""Segmentation (Table 2): stuff by class and every thing by itself, told from frozen features by a linear probe.

Counted in patches: one belongs to a class or object if more than half of its pixels do, others straddle and are left
out. `held-out`: the probe is fitted on half of the frames and scored on the others; `same-images`: fitted and scored on
all frames, as the paper's code does.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from locus.evaluation.masks import MaskMethod, oracle_names
from locus.evaluation.methods import Competitor, Method, Truth
from locus.evaluation.opened import EvaluationError, Place, labelled_rows
from locus.evaluation.segmentation_metrics import group_scores
from locus.scenes.scene import LabelClass
from locus.tasks.patch_labels import LabelledPatches, Targets, majority_labels, object_targets
from locus.tasks.probe import fit_probe


@dataclass(frozen=True)
class Segmentation:
    """The protocol."""

    split: Literal["held-out", "same-images"] = "held-out"
    """Score the probe on frames it was not fitted on, or, as the paper's code, on the same ones."""
    radius: float = 0.2
    """Metres: which scale of a model of several is asked."""
    l2: float = 1e-6
    """How strongly the probe's weights are drawn to zero."""
    seed: int = 0
    """Of the split."""

    name = "segmentation"

    def measure(self, method: Competitor, place: Place) -> dict[str, Any]:
        """Groups, classes, and what was left out, of one place."""
        known = truth_of(place)
        answer = self.answer(method, place, known)
        scored = answer.scored & (known.labels > 0)
        fitted = np.unique(known.labels[answer.fitted & (known.labels > 0)])
        # What the probe was never shown it cannot tell: left out, and counted.
        absent = scored & ~np.isin(known.labels, fitted)
        scored &= ~absent
        kept = [label for label in known.classes if label.id in fitted]
        columns = [label.id - 1 for label in kept]
        likely = None if answer.likely is None else answer.likely[scored][:, columns]
        groups = group_scores(known.labels[scored], answer.predicted[scored], kept, likely)
        if not groups:
            raise EvaluationError(f"{place.scene.name}: the scored frames show nothing that the others show")
        return {
            "groups": {group: scores.json() for group, scores in groups.items()},
            "classes": [vars(each) for each in groups["all"].classes],
            "patches": int(scored.sum()),
            "straddling": int(((known.labels == 0) & answer.scored).sum()),
            "absent classes": len(np.unique(known.labels[absent])),
            "absent patches": int(absent.sum()),
        }

    def answer(self, method: Competitor, place: Place, known: "Known") -> "Answer":
        """What a method says of every patch."""
        fitted, scored = self._split(place)
        whole = [np.broadcast_to(rows[:, None, None], known.labels.shape) for rows in (fitted, scored)]
        if isinstance(method, MaskMethod):  # fitted to nothing, but scored on the same patches as the others
            predicted = np.stack([_reduced(method, place, row, known) for row in range(len(place))])
            return Answer(predicted, None, *whole)
        if not isinstance(method, Method):
            raise EvaluationError(f"{method.label} gives neither features nor masks")
        features = _one_hot(known) if isinstance(method, Truth) else method.features(place, self.radius)
        probe = fit_probe(_labelled(features, known, fitted), l2=self.l2, objects=True)
        numbers = np.array([label.id for label in known.classes if label.name in {each.name for each in probe.classes}])
        scores = probe.logits(features).softmax(dim=-1)
        likely = torch.zeros(*known.labels.shape, len(known.classes), dtype=scores.dtype)
        likely[..., numbers - 1] = scores
        predicted = numbers[scores.argmax(dim=-1).numpy()]
        return Answer(predicted, likely.numpy(), *whole)

    def _split(self, place: Place) -> tuple[Bool[ndarray, " frames"], Bool[ndarray, " frames"]]:
        """Frames to fit on and to score on."""
        if self.split == "same-images":
            every = np.ones(len(place), bool)
            return every, every
        rng = np.random.default_rng([self.seed, zlib.crc32(place.scene.name.encode())])
        fitted = np.zeros(len(place), bool)
        fitted[rng.permutation(len(place))[: len(place) // 2]] = True
        return fitted, ~fitted


@dataclass(frozen=True, eq=False)
class Known:
    """The truth of a place, patch by patch."""

    targets: Targets
    labels: Int[ndarray, "frames rows columns"]
    """Ids of `classes`, 0 where a patch straddles or is unlabelled."""
    classes: tuple[LabelClass, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", self.targets.classes)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method says of every patch, and which patches probes are fitted on and all are scored on."""

    predicted: Int[ndarray, "frames rows columns"]
    likely: Float[ndarray, "frames rows columns k"] | None
    fitted: Bool[ndarray, "frames rows columns"]
    scored: Bool[ndarray, "frames rows columns"]


def truth_of(place: Place) -> Known:
    """Stuff by class, things one by one, as the scene's labels say."""
    rows = labelled_rows(place)
    targets = object_targets(place.scene, [place.indices[row] for row in rows])
    labels = np.zeros((len(place), *place.grid), np.int64)
    for row in rows:
        labels[row] = majority_labels(targets.of(place.frame(row)), place.grid)
    return Known(targets, labels)


def _one_hot(known: Known) -> Float[Tensor, "frames rows columns k"]:
    """The ceiling's features: what the patch shows."""
    return F.one_hot(torch.from_numpy(known.labels), len(known.classes) + 1).float()


def _labelled(features: Tensor, known: Known, frames: Bool[ndarray, " frames"]) -> LabelledPatches:
    labels = torch.from_numpy(known.labels)
    kept = (labels > 0) & torch.from_numpy(frames)[:, None, None]
    number = torch.arange(len(labels))[:, None, None].expand(labels.shape)
    left_out = int((labels == 0).sum())
    return LabelledPatches(features[kept], labels[kept], number[kept], known.classes, len(labels), left_out)


def _reduced(method: MaskMethod, place: Place, row: int, known: Known) -> Int[ndarray, "rows columns"]:
    """A system's label map as ids of the scene's classes and objects, patch by patch."""
    if not known.labels[row].any():  # nothing of it is scored
        return np.zeros(place.grid, np.int64)
    segments = method.segments(place, row)
    if method.oracle:
        names = {label.id: label.name for label in known.classes}
        segments = oracle_names(segments, known.targets.of(place.frame(row)), names)
    ids = {label.name: label.id for label in known.classes}
    table = np.zeros(max([0, *segments.names, int(segments.ids.max())]) + 1, np.int64)
    for number, name in segments.names.items():
        table[number] = ids.get(name, 0)
    return majority_labels(table[segments.ids], place.grid).astype(np.int64)


def names_in(scores: Sequence[dict[str, Any]]) -> list[str]:
    """The classes that objects belong to: `sofa 12` is a sofa."""
    return sorted({class_name(each["name"], each["kind"]) for each in scores})


def class_name(name: str, kind: str) -> str:
    return name.rpartition(" ")[0] if kind == "thing" else name
