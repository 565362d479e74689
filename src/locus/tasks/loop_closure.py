"""Loop closures: the newest frame of a growing map shows what a much earlier one showed, so one knows how they lie.

A frame's poses come from odometry, which drifts, so the map says nothing of where an earlier frame with the same view
is now: it is found by what it looks like, and the motion between the two cameras by the points that both see. Two
rooms may look alike. So a closure counts when others, from other viewpoints, say the same about the drift.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.geometry import invert, transform
from locus.keypoints.fusion import point_scales
from locus.landmarks import GrowingMap
from locus.landmarks.points import FramePoints
from locus.tasks.localize_points import CANDIDATES, METRES, most_similar
from locus.tasks.matching import matched_pixels
from locus.tasks.placed_points import point_matcher
from locus.tasks.relative_pose import pose_from_points

RECENT = 12  # frames before a frame that close no loop with it
SIGHTINGS = 64  # of a landmark that vote, spread over all


@dataclass(frozen=True, eq=False)
class LoopClosure:
    """Two frames of one environment and the motion between their cameras, as seen, not as odometry says."""

    earlier: int
    """Row of the map's frames."""
    later: int
    later_from_earlier: Float[ndarray, "4 4"]
    covariance: Float[ndarray, "6 6"]
    """Rotation first, in radians and metres along the earlier camera's axes: `locus.tasks.uncertainty`."""
    keypoints: int
    """That agree with the motion."""


def closures_of(growing: GrowingMap, frame: int) -> list[LoopClosure]:
    """What a frame of the map has in common with earlier ones, as far as its keypoints agree on a motion."""
    shown = growing.points(frame)
    if shown is None:
        return []
    candidates = {row: growing.points(row) for row in _ranked(growing, frame, shown)}
    found = []
    for row, there in most_similar({row: each for row, each in candidates.items() if each is not None}, shown.placed):
        pairs, likely = point_matcher().match(there.placed, shown.placed)
        pairs, likely = pairs[order := np.argsort(-likely, kind="stable")], likely[order]
        keypoints = there.placed.keypoints, shown.placed.keypoints
        pixels = [each.pixels[rows] for each, rows in zip(keypoints, pairs.T, strict=True)]
        matches = matched_pixels(*pixels, likely, *(each.size for each in keypoints))
        points = [
            transform(invert(growing.poses[of]), each.position[rows])
            for of, each, rows in ((row, there, pairs[:, 0]), (frame, shown, pairs[:, 1]))
        ]
        pose = pose_from_points(matches, *points, METRES)
        if pose.b_from_a is not None and pose.covariance is not None:
            found.append(LoopClosure(row, frame, pose.b_from_a, pose.covariance, int(pose.inliers.sum())))
    return found


def _ranked(growing: GrowingMap, frame: int, shown: FramePoints) -> list[int]:
    """The frames, none of them recent, that show most of the landmarks which a frame's points are similar to.

    Bags of landmarks as in `locus.tasks.frame_ranking`, but only landmarks that are found are looked at.
    """
    score: defaultdict[int, float] = defaultdict(float)
    for scale, features in zip(point_scales(growing.model.radii), shown.placed.places, strict=True):
        similarity, rows = growing.landmarks.similar(scale, features.numpy())
        found, of_found = np.unique(rows, return_inverse=True)
        weights = np.bincount(of_found, similarity.clip(0), len(found))
        for row, weight in zip(found.tolist(), weights.tolist(), strict=True):
            seen = growing.landmarks.shown_by[row]
            rarity = np.log1p(len(growing) / len(seen))
            for earlier, count in seen[:: len(seen) // SIGHTINGS + 1]:
                if earlier < frame - RECENT:
                    score[earlier] += rarity**2 * np.sqrt(weight * count)
    length = {row: np.sqrt(growing.landmarks.shows[row]) for row in score}
    return sorted(score, key=lambda row: -score[row] / length[row])[:CANDIDATES]
