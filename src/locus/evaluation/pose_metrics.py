"""How far an estimated motion is off: the paper's errors, and the AUC that the field reports."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.geometry import invert, pose_error

STILL = 0.01  # metres: a camera that moved less has no direction of motion one could get wrong


@dataclass(frozen=True)
class PoseError:
    """Infinite for a pair without a pose."""

    metres: float
    """Between camera B's true and estimated place, seen from camera A."""
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
    """Of two `b_from_a`. With the scale from the truth, the estimated way is as long as the true one."""
    if estimated is None:
        return NO_POSE
    ours, theirs = invert(estimated), invert(true)  # camera B in camera A's frame
    way, true_way = ours[:3, 3], theirs[:3, 3]
    length, true_length = np.linalg.norm(way), np.linalg.norm(true_way)
    if scale_from_truth and length > 0:
        ours = ours.copy()
        ours[:3, 3] = way * (true_length / length)
    metres, degrees = pose_error(ours, theirs)
    direction = 0.0
    if true_length >= STILL:
        cosine = abs(way @ true_way) / max(length * true_length, 1e-12)
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
