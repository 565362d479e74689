"""Segmentation, counted in patches: AP, IoU, and the Jaccard index as the paper prints it and as its code counts it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from locus.objective import average_precision_per_landmark
from locus.scenes.scene import LabelClass

GROUPS = ("stuff", "things", "all")


@dataclass(frozen=True)
class Scores:
    """Of one class or object."""

    name: str
    kind: str
    patches: int
    average_precision: float | None
    """One against all the others; None for systems that give masks and no scores."""
    iou: float


@dataclass(frozen=True)
class GroupScores:
    """Of stuff, of things, or of all: means over classes and objects, and one count over all of them."""

    classes: Sequence[Scores]
    jaccard: float
    """TP / (TP + FP + FN), counted over all classes together, as the authors' code does."""
    jaccard_printed: float
    """TP / (FP + FN), the mean over classes, as the paper prints it; infinite if one is perfect."""

    def json(self) -> dict[str, Any]:
        precisions = [each.average_precision for each in self.classes if each.average_precision is not None]
        return {
            "mAP": float(np.mean(precisions)) if precisions else None,
            "mIoU": float(np.mean([each.iou for each in self.classes])),
            "Jaccard": self.jaccard,
            "Jaccard as printed": self.jaccard_printed if np.isfinite(self.jaccard_printed) else None,
            "classes": len(self.classes),
        }


def group_scores(
    truth: Int[ndarray, " n"],
    predicted: Int[ndarray, " n"],
    classes: Sequence[LabelClass],
    likely: Float[ndarray, "n k"] | None = None,
) -> dict[str, GroupScores]:
    """On the patches of stuff only, of things only, and all together; a group nothing belongs to is left out.

    Args:
        truth: Ids of `classes`.
        predicted: The same, or 0 for none of them.
        classes: Only those that some patch shows are scored.
        likely: How likely each of `classes` is, in their order.
    """
    found = {}
    for group in GROUPS:
        members = [label for label in classes if group in ("all", {"stuff": "stuff", "thing": "things"}[label.kind])]
        inside = np.isin(truth, [label.id for label in members])
        if not inside.any():
            continue
        columns = {label.id: column for column, label in enumerate(classes)}
        kept = None if likely is None else likely[inside]
        found[group] = _scores(truth[inside], predicted[inside], members, kept, columns)
    return found


def _scores(
    truth: Int[ndarray, " n"],
    predicted: Int[ndarray, " n"],
    members: Sequence[LabelClass],
    likely: Float[ndarray, "n k"] | None,
    columns: dict[int, int],
) -> GroupScores:
    present = [label for label in members if (truth == label.id).any()]
    ids = np.array([label.id for label in present])
    is_true: Bool[ndarray, "n c"] = truth[:, None] == ids
    is_predicted: Bool[ndarray, "n c"] = predicted[:, None] == ids
    right = (is_true & is_predicted).sum(axis=0)
    wrong = (is_true ^ is_predicted).sum(axis=0)  # false positives and false negatives
    precisions: list[float | None] = [None] * len(present)
    if likely is not None:
        scores = torch.from_numpy(np.ascontiguousarray(likely[:, [columns[label.id] for label in present]]))
        every = torch.ones(scores.shape, dtype=torch.bool)
        precisions = average_precision_per_landmark(scores, torch.from_numpy(is_true), every).tolist()
    with np.errstate(divide="ignore"):
        printed = right / wrong
    listed = [
        Scores(label.name, label.kind, int(count), precision, float(iou))
        for label, count, precision, iou in zip(
            present, is_true.sum(axis=0), precisions, right / (right + wrong), strict=True
        )
    ]
    # A prediction of a class that no patch of the group shows is wrong too, and counted once, as a false negative.
    return GroupScores(listed, float(right.sum() / (right.sum() + wrong.sum())), float(printed.mean()))
