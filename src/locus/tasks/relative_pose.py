"""The motion between two cameras from matches: 5-point RANSAC from pixels, or 3D–3D alignment of points from depth."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.special import gammaln

from locus.errors import LocusError
from locus.geometry import Camera
from locus.tasks.consensus import rigid_consensus
from locus.tasks.five_point import EXPLAINED, Rays, directions, five_point
from locus.tasks.matching import Matches
from locus.tasks.probability import Evidence, inflation, least_probability, probability
from locus.tasks.uncertainty import relative_covariance, rigid_covariance, rotation_covariance

Solver = Literal["5-point", "3d-3d"]

METRES = {False: 0.15, True: 0.05}  # that an inlier may lie off in 3D: between patches, and between keypoints
LINE = 0.3  # times the threshold: points that spread less than this to either side are on a line
FEWEST = 8  # matches that must agree to tell a general motion from a rotation or a plane's, without depth
SLACK = 3  # times the epipolar threshold: off a simpler motion's prediction in two directions, not across a line


@dataclass(frozen=True, eq=False)
class RelativePose:
    """The motion between two cameras, or why there is none."""

    b_from_a: Float[ndarray, "4 4"] | None
    """Camera B's frame from camera A's. None: no pose, and `reason` says why."""
    inliers: Bool[ndarray, " n"]
    """The matches that agree with it."""
    solver: Solver
    """Whether it is from pixels (5-point) or from points in space (3d-3d)."""
    metric: bool = False
    """Whether the translation is in metres. If not, it has length 1, or 0 where its direction is not known."""
    reason: str = ""
    """Why there is no pose, or what to mind about it."""
    alternative: Float[ndarray, "4 4"] | None = None
    """Another pose that fits as well, where all matches lie on one plane."""
    covariance: Float[ndarray, "6 6"] | None = None
    """Of the pose, rotation first, in radians and metres along camera A's axes: `locus.tasks.uncertainty`. None without
    a pose, or if the direction of its translation is not known."""
    evidence: Evidence | None = None
    """What speaks for the pose; None where `covariance` is."""

    @property
    def probability(self) -> float | None:
        """How likely it is right: to 0.1 m and 5°; without a length to 5° of rotation and, if known, of direction."""
        return None if self.evidence is None else probability(self.evidence)

    @property
    def direction_known(self) -> bool:
        """Whether the translation means anything: not after a pure rotation seen without depth."""
        return self.b_from_a is not None and (self.metric or bool(self.b_from_a[:3, 3].any()))


def relative_pose(
    matches: Matches,
    camera_a: Camera,
    camera_b: Camera,
    points_a: Float[ndarray, "n 3"] | None = None,
    points_b: Float[ndarray, "n 3"] | None = None,
    *,
    threshold: float | None = None,
    min_probability: float | None = None,
    seed: int = 0,
) -> RelativePose:
    """The motion that most matches agree on: in metres if points are given, else with a translation of length 1.

    Args:
        matches: Of images A and B.
        camera_a: Intrinsics of image A, at the size that the matches' pixels are in.
        camera_b: Of image B.
        points_a: Each match's point in camera A's frame, in metres, NaN where there is none.
        points_b: In camera B's.
        threshold: How far an inlier may be off: metres for 3D–3D, else pixels from its epipolar line. By default
            0.15 m, or 0.05 m between keypoints, and `Matches.tolerance`.
        min_probability: A pose that is less likely right is none. By default what leaves one in twenty pairs of images
            that share nothing an answer (docs/evaluation.md); 0 takes all.
        seed: Same seed, same answer.
    """
    for name, size, camera in (("A", matches.size_a, camera_a), ("B", matches.size_b, camera_b)):
        if size != (camera.width, camera.height):
            raise LocusError(
                f"the matches are in an image {name} of {size[0]}×{size[1]} pixels, its camera is for "
                f"{camera.width}×{camera.height}; use Camera.resized"
            )
    if points_a is not None and points_b is not None:
        metres = METRES[matches.of_keypoints] if threshold is None else threshold
        found = pose_from_points(matches, points_a, points_b, metres, seed)
    else:
        pixels = matches.tolerance if threshold is None else threshold
        found = _from_pixels(matches, camera_a, camera_b, pixels, seed)
    return _unless_doubtful(found, min_probability)


def _unless_doubtful(found: RelativePose, least: float | None) -> RelativePose:
    """The same, or no pose if it is too likely wrong."""
    if found.evidence is None or found.probability is None:
        return found
    least = least_probability(found.evidence.kind) if least is None else least
    if found.probability >= least:
        return found
    agree = f"{found.inliers.sum()} of {counted(len(found.inliers))} agree on a motion"
    doubt = f"which is right with a probability of {found.probability:.2f} only, and {least:.2f} is needed"
    return RelativePose(None, np.zeros_like(found.inliers), found.solver, reason=f"{agree}, {doubt}")


def pose_from_points(
    matches: Matches, points_a: Float[ndarray, "n 3"], points_b: Float[ndarray, "n 3"], threshold: float, seed: int = 0
) -> RelativePose:
    """From the points that the matches show in both cameras' frames, NaN where unknown."""
    known = np.isfinite(np.hstack([points_a, points_b])).all(axis=1)
    inliers, count = np.zeros(len(points_a), bool), int(np.count_nonzero(known))
    refuse = partial(RelativePose, None, inliers, "3d-3d")
    if count < 3:
        return refuse(reason=f"{counted(len(points_a))}, {count} with depth in both images; 3D–3D needs 3")
    fit = rigid_consensus(points_a[known], points_b[known], threshold, seed=seed)
    if fit is None:
        return refuse(reason=f"no three of {counted(count)} with depth agree on a motion")
    b_from_a, following = fit
    agreeing, seen = int(following.sum()), points_b[known]
    # A wrong match lands anywhere in the box that holds the points: how often that is within the threshold.
    chance = min(1.0, 4 / 3 * np.pi * threshold**3 / np.prod(np.ptp(seen, axis=0) + 2 * threshold))
    if by_chance(count, agreeing, 3, chance):
        return refuse(reason=f"{agreeing} of {counted(count)} with depth agree on a motion, no more than chance gives")
    spread = np.linalg.svd(seen[following] - seen[following].mean(axis=0), compute_uv=False)
    if spread[1] < LINE * threshold * np.sqrt(agreeing):
        return refuse(reason="the matches that agree lie on a line: the rotation about it is not known")
    inliers[known] = following
    a, b = points_a[inliers], points_b[inliers]
    covariance = rigid_covariance(a, b, np.hypot(a[:, 2], b[:, 2]), b_from_a)
    trust = _trust("3d-3d", matches, inliers, covariance)
    return RelativePose(b_from_a, inliers, "3d-3d", metric=True, **trust)


def _from_pixels(matches: Matches, camera_a: Camera, camera_b: Camera, threshold: float, seed: int) -> RelativePose:
    none, count = np.zeros(len(matches), bool), len(matches)
    distinct = min(len(np.unique(matches.patches_a)), len(np.unique(matches.patches_b)))
    refuse = partial(RelativePose, None, none, "5-point")
    if distinct < 5:
        return refuse(reason=f"{counted(count)} of {distinct} distinct patches; 5-point needs 5")
    found = five_point(matches.pixels_a, matches.pixels_b, camera_a, camera_b, threshold, seed)
    if found is None:
        return refuse(reason=f"no five of {counted(count)} agree on a motion")
    b_from_a, inliers = found
    rays = Rays(directions(camera_a, matches.pixels_a), directions(camera_b, matches.pixels_b))
    tolerance = SLACK * threshold / camera_b.fx
    rotation = rays.rotation(inliers, tolerance)
    if rotation is not None:
        b_from_a, inliers = rotation
        chance = np.pi * (SLACK * threshold) ** 2 / np.prod(matches.size_b)  # within a circle of the image
    else:
        inliers = inliers & rays.in_front(b_from_a)
        chance = 2 * threshold / min(matches.size_b)  # within a stripe across the image
    agreeing = int(inliers.sum())
    if by_chance(count, agreeing, 5, min(1.0, chance), solutions=10):
        return refuse(reason=f"{agreeing} of {counted(count)} agree on a motion, no more than chance gives")
    if agreeing < FEWEST:
        return refuse(
            reason=f"{agreeing} of {counted(count)} agree on a motion; to tell it from a rotation takes {FEWEST}"
        )
    answer = partial(RelativePose, b_from_a, inliers, "5-point")
    if rotation is not None:
        reason = "a rotation alone explains the matches: the direction of the translation is not known"
        if matches.stuck_mask[inliers].mean() > EXPLAINED:
            reason += ", and nearly all sit at the same image position, as matches of features that know no more would"
        covariance = rotation_covariance(matches.pixels_b[inliers], rays.a[inliers], camera_b, b_from_a)
        # How far the camera moved is not known, so the pose as a whole has no covariance.
        return answer(reason=reason, evidence=_trust("rotation", matches, inliers, covariance)["evidence"])
    pixels = matches.pixels_a[inliers], matches.pixels_b[inliers]
    covariance = relative_covariance(*pixels, camera_a, camera_b, b_from_a)
    answer = partial(answer, **_trust("5-point", matches, inliers, covariance))
    other = rays.other_plane_pose(inliers, b_from_a, tolerance)
    if other is not None:
        return answer(reason="the matches lie on a plane, and another pose fits as well", alternative=other)
    return answer()


def by_chance(count: int, agreeing: int, sample: int, chance: float, solutions: int = 1) -> bool:
    """Whether so many agreeing matches are to be expected among wrong ones (a contrario: Moisan and Stival, 2004).

    Args:
        count: Matches.
        agreeing: Those within the threshold of a motion found from `sample` of them.
        sample: Matches that a motion is found from, and always fits.
        chance: How likely a wrong match is within the threshold.
        solutions: Motions that a sample gives.
    """
    if agreeing <= sample:
        return True
    expected = np.log(solutions * (count - sample)) + _log_choose(count, agreeing) + _log_choose(agreeing, sample)
    return bool(expected + (agreeing - sample) * np.log(chance) > 0)


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _trust(
    solver: Solver | Literal["rotation"],
    matches: Matches,
    inliers: Bool[ndarray, " n"],
    covariance: Float[ndarray, "6 6"],
) -> dict[str, Any]:
    """The covariance and evidence of an answer, from the covariance by the Jacobian of its inliers."""
    kind = f"{solver} of keypoints" if matches.of_keypoints else solver
    evidence = Evidence.of(kind, inliers, matches.patches_a, matches.pixels_a, matches.size_a, covariance)
    return {"covariance": inflation(kind) * covariance, "evidence": evidence}


def counted(matches: int) -> str:
    return "1 match" if matches == 1 else f"{matches} matches"
