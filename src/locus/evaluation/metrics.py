"""What benchmarks count, each defined once: pose errors and their AUC; AP, IoU and the Jaccard index of labels."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from numpy import ndarray
from torch import Tensor

from locus.geometry import invert, pose_error
from locus.objective import average_precision_per_landmark
from locus.scenes.scene import LabelClass

STILL = 0.01  # metres: a camera that moved less has no direction of motion one could get wrong


class PoseError(NamedTuple):
    """Of an estimated motion."""

    metres: float
    """Between camera B's true and estimated position, seen from camera A."""
    degrees: float
    """Of rotation."""
    direction: float
    """Degrees between the directions of motion; its sign is not counted (as by SuperGlue), nor where there is none."""


def error_of(estimated: Float[ndarray, "4 4"], true: Float[ndarray, "4 4"], *, scale_from_truth: bool) -> PoseError:
    """Of two `b_from_a`. With the scale from the truth, the estimated translation is as long as the true one."""
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
Figures = dict[str, Any]


def group_scores(
    truth: Int[ndarray, " n"],
    predicted: Int[ndarray, " n"],
    classes: Sequence[LabelClass],
    scores: Float[ndarray, "n k"] | None = None,
) -> dict[str, tuple[Figures, list[Figures]]]:
    """Of stuff, of things and of all, on their patches only: figures of the group, and of each class or object in it.

    A group or class that no patch shows is left out. AP is one class against all the others. `Jaccard` is
    TP / (TP + FP + FN), counted over all classes together, as the authors' code does; `Jaccard as printed` the mean
    over classes of TP / (FP + FN), as the paper prints it, None where one is perfect.

    Args:
        truth: Ids of `classes`.
        predicted: The same, or 0 for none of them.
        scores: By which each of `classes`, in their order, ranks the patches, such as `log_odds`; None: there is no AP.
    """
    found = {}
    shown = [(column, label) for column, label in enumerate(classes) if (truth == label.id).any()]
    for group in GROUPS:
        members = [each for each in shown if group in ("all", {"stuff": "stuff", "thing": "things"}[each[1].kind])]
        if members:
            columns, present = zip(*members, strict=True)
            inside = np.isin(truth, [label.id for label in present])
            kept = None if scores is None else scores[inside][:, columns]
            found[group] = _scores(truth[inside], predicted[inside], present, kept)
    return found


def _scores(
    truth: Int[ndarray, " n"],
    predicted: Int[ndarray, " n"],
    present: Sequence[LabelClass],
    scores: Float[ndarray, "n c"] | None,
) -> tuple[Figures, list[Figures]]:
    ids = np.array([label.id for label in present])
    is_true: Bool[ndarray, "n c"] = truth[:, None] == ids
    is_predicted: Bool[ndarray, "n c"] = predicted[:, None] == ids
    right = (is_true & is_predicted).sum(axis=0)
    wrong = (is_true ^ is_predicted).sum(axis=0)  # false positives and false negatives
    precisions: list[Any] = [None] * len(present)
    if scores is not None:
        ranked, every = torch.from_numpy(np.ascontiguousarray(scores)), torch.ones(scores.shape, dtype=torch.bool)
        precisions = average_precision_per_landmark(ranked, torch.from_numpy(is_true), every).tolist()
    overlaps = (right / (right + wrong)).tolist()
    group = {
        "mAP": None if scores is None else float(np.mean(precisions)),
        "mIoU": float(np.mean(overlaps)),
        # A prediction of a class that no patch of the group shows is wrong too, and counted once, as a false negative.
        "Jaccard": float(right.sum() / (right.sum() + wrong.sum())),
        "Jaccard as printed": float((right / wrong).mean()) if wrong.all() else None,
        "classes": len(present),
    }
    names = ("name", "kind", "patches", "average_precision", "iou")
    counts = is_true.sum(axis=0).tolist()
    rows = [
        (label.name, label.kind, *figures)
        for label, *figures in zip(present, counts, precisions, overlaps, strict=True)
    ]
    return group, [dict(zip(names, row, strict=True)) for row in rows]
