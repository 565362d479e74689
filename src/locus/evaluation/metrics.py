"""What benchmarks count, each defined once: pose errors and their AUC; AP, IoU and the Jaccard index of labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from numpy import ndarray
from torch import Tensor

from locus.geometry import invert, pose_error
from locus.objective import average_precision_per_landmark
from locus.scenes.scene import LabelClass

STILL = 0.01  # metres: a camera that moved less has no direction of motion one could get wrong


@dataclass(frozen=True)
class PoseError:
    """Infinite for a pair without a pose."""

    metres: float
    """Between camera B's true and estimated position, seen from camera A."""
    degrees: float
    """Of rotation."""
    direction: float
    """Degrees between the directions of motion; its sign is not counted (as by SuperGlue), nor where there is none."""

    @property
    def worse(self) -> float:
        """Of rotation and direction, what AUC is made of."""
        return max(self.degrees, self.direction)


NO_POSE = PoseError(np.inf, np.inf, np.inf)


def error_of(
    estimated: Float[ndarray, "4 4"] | None, true: Float[ndarray, "4 4"], *, scale_from_truth: bool
) -> PoseError:
    """Of two `b_from_a`. With the scale from the truth, the estimated translation is as long as the true one."""
    if estimated is None:
        return NO_POSE
    ours, theirs = invert(estimated), invert(true)  # camera B in camera A's frame
    translation, true_translation = ours[:3, 3], theirs[:3, 3]
    length, true_length = np.linalg.norm(translation), np.linalg.norm(true_translation)
    if scale_from_truth and length > 0:
        ours = ours.copy()
        ours[:3, 3] = translation * (true_length / length)
    metres, degrees = pose_error(ours, theirs)
    direction = 0.0
    if true_length >= STILL:
        cosine = abs(translation @ true_translation) / max(length * true_length, 1e-12)
        direction = float(np.degrees(np.arccos(min(1.0, cosine)))) if length > 0 else 90.0
    return PoseError(metres, degrees, direction)


def area_under_curve(errors: Float[ndarray, "*draws n"], threshold: float) -> Float[ndarray, "*draws"] | np.floating:
    """Of recall against error from 0 to the threshold, divided by it (SuperGlue's `pose_auc`).

    Recall rises linearly from one error to the next and is flat after the last one within the threshold.
    """
    ordered = np.sort(errors, axis=-1)
    count = ordered.shape[-1]
    clipped = np.minimum(ordered, threshold)
    before = np.concatenate([np.zeros((*ordered.shape[:-1], 1)), clipped[..., :-1]], axis=-1)
    within = ordered < threshold  # beyond it, recall stays what it was
    ranks = np.arange(1, count + 1)
    trapezoids = np.where(within, (clipped - before) * (ranks - 0.5), 0).sum(axis=-1)
    reached = within.sum(axis=-1)
    last = np.where(within, clipped, 0).max(axis=-1)
    return (trapezoids + reached * (threshold - last)) / (count * threshold)


def median(errors: Float[ndarray, "*draws n"]) -> Float[ndarray, "*draws"] | np.floating:
    """The middle error, the worse of the middle two: the mean of a number and infinity would hide it."""
    ordered = np.sort(errors, axis=-1)
    return ordered[..., ordered.shape[-1] // 2]


def log_odds(logits: Float[Tensor, "*n k"]) -> Float64[Tensor, "*n k"]:
    """log(p / (1 − p)) of every class's softmax probability p: the same ranking, without ties where p rounds to 1."""
    exact = logits.double()
    share = exact.log_softmax(dim=-1)  # log p
    rest = torch.log1p(-share.exp())  # log(1 − p), exact enough for all but the likeliest class
    best = exact.argmax(dim=-1, keepdim=True)
    others = exact.scatter(-1, best, -torch.inf).logsumexp(dim=-1, keepdim=True)
    return share - rest.scatter(-1, best, others - exact.logsumexp(dim=-1, keepdim=True))


GROUPS = ("stuff", "things", "all")


@dataclass(frozen=True)
class ClassScores:
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

    classes: Sequence[ClassScores]
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
    scores: Float[ndarray, "n k"] | None = None,
) -> dict[str, GroupScores]:
    """On the patches of stuff only, of things only, and all together; a group nothing belongs to is left out.

    Args:
        truth: Ids of `classes`.
        predicted: The same, or 0 for none of them.
        classes: Only those that some patch shows are scored.
        scores: By which each of `classes`, in their order, ranks the patches, such as `log_odds`.
    """
    found = {}
    for group in GROUPS:
        members = [label for label in classes if group in ("all", {"stuff": "stuff", "thing": "things"}[label.kind])]
        inside = np.isin(truth, [label.id for label in members])
        if not inside.any():
            continue
        columns = {label.id: column for column, label in enumerate(classes)}
        kept = None if scores is None else scores[inside]
        found[group] = _scores(truth[inside], predicted[inside], members, kept, columns)
    return found


def _scores(
    truth: Int[ndarray, " n"],
    predicted: Int[ndarray, " n"],
    members: Sequence[LabelClass],
    scores: Float[ndarray, "n k"] | None,
    columns: dict[int, int],
) -> GroupScores:
    present = [label for label in members if (truth == label.id).any()]
    ids = np.array([label.id for label in present])
    is_true: Bool[ndarray, "n c"] = truth[:, None] == ids
    is_predicted: Bool[ndarray, "n c"] = predicted[:, None] == ids
    right = (is_true & is_predicted).sum(axis=0)
    wrong = (is_true ^ is_predicted).sum(axis=0)  # false positives and false negatives
    precisions: list[float | None] = [None] * len(present)
    if scores is not None:
        ranked = torch.from_numpy(np.ascontiguousarray(scores[:, [columns[label.id] for label in present]]))
        every = torch.ones(ranked.shape, dtype=torch.bool)
        precisions = average_precision_per_landmark(ranked, torch.from_numpy(is_true), every).tolist()
    with np.errstate(divide="ignore"):
        printed = right / wrong
    listed = [
        ClassScores(label.name, label.kind, int(count), precision, float(iou))
        for label, count, precision, iou in zip(
            present, is_true.sum(axis=0), precisions, right / (right + wrong), strict=True
        )
    ]
    # A prediction of a class that no patch of the group shows is wrong too, and counted once, as a false negative.
    return GroupScores(listed, float(right.sum() / (right.sum() + wrong.sum())), float(printed.mean()))
