"""The motion between two worlds that most answers agree on.

An answer is one camera's pose in both worlds, so each answer alone says how the worlds lie. Some answers are wrong, and
wrong in the same way if they look at the same thing, or if two rooms are alike: so those that agree must come from
different viewpoints, and some of them must be confident.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from locus.geometry import align

METRES, DEGREES = 0.5, 10.0  # that an answer may be off and still agree
REACH = 3.0  # metres: a rotation that is off counts as much as the points so far around the camera are off
APART = (0.5, 30.0)  # metres or degrees between different viewpoints
CONFIDENT = 0.35  # weight of an answer that images of another environment hardly ever get (docs/sessions.md)
VIEWPOINTS = 3  # with a confident answer, that must agree
SHARE = 0.3  # of the answers, each counted by its confidence, that must agree
SCALE = 0.1  # that the scale may be uncertain by, as a share of it
ROUNDS = 10  # of fitting to the answers that agree

Poses = Float[ndarray, "n 4 4"]
Fit = tuple[Float[ndarray, "4 4"], float]
"""`a_from_b`, after B's coordinates are multiplied by a scale."""


@dataclass(frozen=True, eq=False)
class AgreedMotion:
    """A motion, the answers that agree with it, and how far it can be trusted."""

    a_from_b: Float[ndarray, "4 4"]
    """Rigid. B's coordinates are multiplied by the scale before."""
    scale: float
    """A's metres for one unit of B; 1 unless it was asked for."""
    agree: Bool[ndarray, " n"]
    viewpoints: int
    """Different ones that have a confident answer which agrees."""
    share: float
    """Of the answers, counted by their confidence, that agree."""
    metres: float
    """Standard error of the positions of B's cameras in A: how much they change when viewpoints are left out."""
    degrees: float
    scale_error: float
    """Of the scale, as a share of it."""

    @property
    def reason(self) -> str:
        """Why there is no motion to trust, in one sentence; empty if there is one."""
        count = f"{int(self.agree.sum())} of {len(self.agree)} localized frames agree on a motion"
        if self.viewpoints < VIEWPOINTS:
            views = f"{self.viewpoints} different viewpoints with a confidence of {CONFIDENT} or more"
            return f"{count}, from {views}, and {VIEWPOINTS} are needed"
        if self.share < SHARE:
            return f"{count}, {self.share:.0%} of them by confidence, and {SHARE:.0%} are needed"
        if self.scale_error > SCALE:
            return f"{count}, but their scale is uncertain by {self.scale_error:.0%}, and {SCALE:.0%} is allowed"
        return ""

    def placed(self, poses_b: Poses) -> Poses:
        """Poses of B's cameras in A."""
        return self.a_from_b @ _scaled(poses_b, self.scale)


def agreed_motion(
    poses_a: Poses, poses_b: Poses, weights: Float[ndarray, " n"], *, scale: bool = False
) -> AgreedMotion:
    """The motion that at least one answer agrees with, and most do by weight.

    Args:
        poses_a: Of each camera, `world_from_camera` in A.
        poses_b: The same cameras in B.
        weights: How far each answer is to be believed: its confidence.
        scale: Whether B has an unknown unit of length, as recordings of one camera without depth do.
    """
    hypotheses = _pairs(poses_a, poses_b) if scale else [(motion, 1.0) for motion in poses_a @ np.linalg.inv(poses_b)]
    fit, best, agree = (np.eye(4), 1.0), -1.0, np.zeros(len(weights), bool)
    for each in hypotheses:
        closeness = 1 - _misfit(each, poses_a, poses_b) ** 2
        # An answer counts less the worse it fits, so that among motions with as many answers the closest wins (MSAC).
        if (quality := weights @ closeness.clip(0)) > best:
            fit, best, agree = each, quality, closeness >= 0
    for _ in range(ROUNDS if agree.any() else 0):
        fit = _fitted(poses_a[agree], poses_b[agree], weights[agree], fit[1], scale)
        agreeing = _misfit(fit, poses_a, poses_b) <= 1
        agree = agreeing if agreeing.any() else agree
    viewpoint = _viewpoints(poses_a[agree])
    errors = _errors(fit, poses_a[agree], poses_b[agree], weights[agree], viewpoint, scale)
    share = weights[agree].sum() / max(weights.sum(), 1e-12)
    confident = np.unique(viewpoint[weights[agree] >= CONFIDENT])
    return AgreedMotion(*fit, agree, len(confident), float(share), *errors)


def _pairs(poses_a: Poses, poses_b: Poses) -> list[Fit]:
    """What each two answers say of the scale, with the rotation and position of the first of them."""
    made = []
    for one, pose in enumerate(poses_a):
        for other in range(len(poses_a)):
            length_a, length_b = (np.linalg.norm(each[one, :3, 3] - each[other, :3, 3]) for each in (poses_a, poses_b))
            if length_a >= APART[0] and length_b > 0:
                scale = float(length_a / length_b)
                made.append((pose @ np.linalg.inv(_scaled(poses_b[one], scale)), scale))
    return made


def _fitted(a: Poses, b: Poses, weights: Float[ndarray, " n"], scale: float, free: bool) -> Fit:
    """The least squares over the cameras' positions, and over six points around each, which say how it is turned."""
    around = REACH * np.concatenate([np.eye(3), -np.eye(3)])
    points_a, points_b = (
        (each[:, None, :3, 3] + around @ np.swapaxes(each[:, :3, :3], 1, 2)).reshape(-1, 3)
        for each in (a, _scaled(b, scale))
    )
    a_from_b = align(points_b, points_a, np.repeat(weights, len(around)))
    if free:
        share = weights / weights.sum()
        mean_a, mean_b = share @ a[:, :3, 3], share @ b[:, :3, 3]
        turned = (b[:, :3, 3] - mean_b) @ a_from_b[:3, :3].T
        product = share @ ((a[:, :3, 3] - mean_a) * turned).sum(axis=1)
        scale = max(float(product / max(share @ (turned**2).sum(axis=1), 1e-12)), 1e-6)
        a_from_b[:3, 3] = mean_a - scale * a_from_b[:3, :3] @ mean_b
    return a_from_b, scale


def _errors(
    fit: Fit, a: Poses, b: Poses, weights: Float[ndarray, " n"], viewpoint: Int[ndarray, " n"], free: bool
) -> tuple[float, float, float]:
    """Metres at the cameras, degrees, and the share of the scale: the jackknife over viewpoints."""
    groups = np.unique(viewpoint)
    if len(groups) < 2:
        return np.inf, np.inf, np.inf if free else 0.0
    changes = []
    for group in groups:
        kept = viewpoint != group
        without = _fitted(a[kept], b[kept], weights[kept], fit[1], free)
        metres, degrees = _apart(*(motion @ _scaled(b, scale) for motion, scale in (fit, without)))
        changes.append([(metres**2).mean(), (degrees**2).mean(), (without[1] / fit[1] - 1) ** 2])
    error = np.sqrt((len(groups) - 1) / len(groups) * np.sum(changes, axis=0))
    return float(error[0]), float(error[1]), float(error[2])


def _viewpoints(poses: Poses) -> Int[ndarray, " n"]:
    """The number of each camera's viewpoint: that of the first one which is neither far from it nor turned away."""
    number = np.arange(len(poses))
    for one in range(len(poses)):
        metres, degrees = _apart(poses[:one], poses[one])
        same = np.flatnonzero((metres < APART[0]) & (degrees < APART[1]) & (number[:one] == np.arange(one)))
        number[one] = same[0] if len(same) else one
    return number


def _misfit(fit: Fit, a: Poses, b: Poses) -> Float[ndarray, " n"]:
    """How far answers are off, 1 for one that just agrees."""
    metres, degrees = _apart(fit[0] @ _scaled(b, fit[1]), a)
    return np.maximum(metres / METRES, degrees / DEGREES)


def _apart(
    a: Float[ndarray, "*n 4 4"], b: Float[ndarray, "*m 4 4"]
) -> tuple[Float[ndarray, "*k"], Float[ndarray, "*k"]]:
    """Metres between poses, and degrees."""
    cosine = (np.einsum("...ij,...ij->...", a[..., :3, :3], b[..., :3, :3]) - 1) / 2
    return np.linalg.norm(a[..., :3, 3] - b[..., :3, 3], axis=-1), np.degrees(np.arccos(cosine.clip(-1, 1)))


def _scaled(poses: Float[ndarray, "*n 4 4"], scale: float) -> Float[ndarray, "*n 4 4"]:
    return poses * np.where(np.arange(4) == 3, [[scale], [scale], [scale], [1.0]], 1.0)
