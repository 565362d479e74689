"""Loop closures: the newest frame of a growing map shows what a much earlier one showed, so one knows how they lie.

A frame's poses come from odometry, which drifts, so the map says nothing of where an earlier frame with the same view
is now: it is found by what it looks like, and the motion between the two cameras by the points that both see. Two
rooms, or two walls of one, may look alike, and their points may fit to the centimetre. So a closure counts only if
odometry can have drifted as far as it says, and if others, from other viewpoints, say the same.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.geometry import invert, pose_error, transform
from locus.keypoints.fusion import point_scales
from locus.landmarks import GrowingMap
from locus.landmarks.points import FramePoints
from locus.tasks.localize_points import CANDIDATES, METRES, most_similar
from locus.tasks.matching import matched_pixels
from locus.tasks.placed_points import point_matcher
from locus.tasks.relative_pose import RelativePose, pose_from_points

RECENT = 12  # frames before a frame that close no loop with it
SIGHTINGS = 64  # of a landmark that vote, spread over all
HALF, STEEPNESS = 20, 2  # keypoints that make a motion right as often as not, and how fast that grows: docs/growing.md
LIKELY = 0.9  # probability, from which a closure is looked at
VIEWPOINTS = 3  # that must agree,
APART = (0.25, 15.0)  # metres or degrees between different ones
CLOSE = (0.1, 3.0)  # metres and degrees that two closures may differ by,
DRIFT = 0.05  # and the share of what odometry went from one to the other;
FARTHEST = (1.0, 20.0)  # where that is more, nothing can be said
PLAUSIBLE = 0.1  # the share of the way that odometry can have drifted, at most: a closure that says more is refused
NEIGHBOURS = 32  # closures before, that may confirm one


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

    @property
    def probability(self) -> float:
        """How likely a plausible motion is right, to 0.1 m and 5°, by how many keypoints agree (docs/growing.md)."""
        return float(1 / (1 + (HALF / self.keypoints) ** STEEPNESS))


class LoopCloser:
    """Finds the loop closures of a growing map while frames come."""

    def __init__(self, growing: GrowingMap) -> None:
        self.growing = growing
        self.closures: list[LoopClosure] = []
        """All that were confirmed."""
        self.unconfirmed: list[LoopClosure] = []
        """Those of recent frames that are likely, and wait for others to agree."""
        self._travelled = [np.zeros(2)]  # metres and degrees along the way, up to each frame

    def update(self) -> list[LoopClosure]:
        """Of the newest frame, and of earlier ones, what is confirmed now: call it after each frame.

        A closure that is likely and plausible is confirmed by others that are too, from `VIEWPOINTS` viewpoints in all,
        and from which odometry leads to it.
        """
        return self.add(closures_of(self.growing, len(self.growing) - 1))

    def add(self, found: Sequence[LoopClosure]) -> list[LoopClosure]:
        """The same, if the closures of the newest frame are known."""
        poses, newest = self.growing.poses, len(self.growing) - 1
        for row in range(len(self._travelled), newest + 1):
            self._travelled.append(self._travelled[-1] + pose_error(poses[row - 1], poses[row]))
        recent = [each for each in self.unconfirmed if each.later > newest - RECENT]
        likely = [each for each in found if each.probability >= LIKELY and self.plausible(each)]
        self.unconfirmed = recent + likely
        confirmed = [each for each in self.unconfirmed if self._confirmed(each)]
        self.unconfirmed = [each for each in self.unconfirmed if each not in confirmed]
        self.closures += confirmed
        return confirmed

    def _confirmed(self, closure: LoopClosure) -> bool:
        near = [each for each in self.closures[-NEIGHBOURS:] + self.unconfirmed if each.later != closure.later]
        viewpoints = [self.growing.poses[closure.later]]
        for each in near:
            pose = self.growing.poses[each.later]
            if self._agree(closure, each) and all(_apart(pose, other) for other in viewpoints):
                viewpoints.append(pose)
        return len(viewpoints) >= VIEWPOINTS

    def plausible(self, closure: LoopClosure) -> bool:
        """Whether odometry, all the way or from a closure before, whichever is nearer, can have drifted so far."""
        ways = [self._off(closure, each, PLAUSIBLE) for each in (None, *self.closures[-NEIGHBOURS:])]
        error, allowed = min(ways, key=lambda way: float(way[1, 1]))
        return bool((error <= allowed).all())

    def _agree(self, a: LoopClosure, b: LoopClosure) -> bool:
        """Whether odometry leads from one closure round to the motion of the other, and can be trusted to."""
        error, allowed = self._off(a, b, DRIFT)
        return bool((error <= allowed).all() and (allowed <= FARTHEST).all())

    def _off(self, a: LoopClosure, b: LoopClosure | None, drift: float) -> Float[ndarray, "2 2"]:
        """Metres and degrees between a closure and what odometry and another one say, and how many drift explains."""
        poses, way = self.growing.poses, self._travelled
        if b is None:
            legs, expected = way[a.later] - way[a.earlier], invert(poses[a.later]) @ poses[a.earlier]
        else:
            legs = abs(way[a.later] - way[b.later]) + abs(way[a.earlier] - way[b.earlier])
            later, earlier = invert(poses[a.later]) @ poses[b.later], invert(poses[b.earlier]) @ poses[a.earlier]
            expected = later @ b.later_from_earlier @ earlier
        metres, degrees = np.array(CLOSE) + drift * legs
        metres += np.radians(degrees) * np.linalg.norm(a.later_from_earlier[:3, 3])
        return np.array([pose_error(a.later_from_earlier, expected), (metres, degrees)])


def _apart(a: Float[ndarray, "4 4"], b: Float[ndarray, "4 4"]) -> bool:
    """Whether two cameras are different viewpoints."""
    metres, degrees = pose_error(a, b)
    return metres >= APART[0] or degrees >= APART[1]


def closures_of(growing: GrowingMap, frame: int) -> list[LoopClosure]:
    """What a frame of the map has in common with earlier ones, as far as its keypoints agree on a motion."""
    shown = growing.points(frame)
    if shown is None:
        return []
    candidates = {row: growing.points(row) for row in earlier_frames(growing, frame, shown)}
    similar = most_similar({row: each for row, each in candidates.items() if each is not None}, shown.placed)
    poses = {row: _motion(there, growing.poses[row], shown, growing.poses[frame]) for row, there in similar}
    return [
        LoopClosure(row, frame, pose.b_from_a, pose.covariance, int(pose.inliers.sum()))
        for row, pose in poses.items()
        if pose.b_from_a is not None and pose.covariance is not None
    ]


def _motion(
    a: FramePoints, world_from_a: Float[ndarray, "4 4"], b: FramePoints, world_from_b: Float[ndarray, "4 4"]
) -> RelativePose:
    """By the points of both frames, each in its own camera's frame: their places in the world have drifted."""
    pairs, likely = point_matcher().match(a.placed, b.placed)
    best = np.argsort(-likely, kind="stable")
    rows_a, rows_b = pairs[best].T
    keypoints_a, keypoints_b = a.placed.keypoints, b.placed.keypoints
    pixels = keypoints_a.pixels[rows_a], keypoints_b.pixels[rows_b]
    matches = matched_pixels(*pixels, likely[best], keypoints_a.size, keypoints_b.size)
    points_a = transform(invert(world_from_a), a.position[rows_a])
    points_b = transform(invert(world_from_b), b.position[rows_b])
    return pose_from_points(matches, points_a, points_b, METRES)


def earlier_frames(growing: GrowingMap, frame: int, shown: FramePoints) -> list[int]:
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
