"""The exact pose of an image in one environment of a map, from its keypoints and the points of the map's frames."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from numpy import ndarray
from torch import Tensor

from locus.geometry import Camera
from locus.keypoints.fusion import PlacedKeypoints
from locus.landmarks import LandmarkMap
from locus.landmarks.points import FramePoints
from locus.rows import Rows
from locus.scenes.patches import points_at
from locus.tasks.absolute_pose import absolute_pose, refined_pose
from locus.tasks.consensus import Motion, rigid_consensus
from locus.tasks.frame_ranking import rank_frames
from locus.tasks.placed_points import point_matcher

CANDIDATES = 12  # frames of the map that landmarks name
FRAMES = 2  # of these, the most similar by their points, that the image's keypoints are matched with
COUNTED = 100  # mutual neighbours that say how similar, the best ones
KEYPOINTS = 768  # of the image, that are matched: more take longer and find no more
PIXELS = 4.0  # that a keypoint may be off in an image whose shorter side is 480 pixels
METRES = 0.05  # that its point may be off, with depth
HALF = 200  # keypoints that must agree for a confidence of 0.5

MatchedFrame = tuple[int, Int[ndarray, " _"], Float[ndarray, "_ 3"], Float[ndarray, " _"]]
"""A frame of the map, keypoints of an image, the points that they are matched with, and how likely each match is."""


@dataclass(frozen=True, eq=False)
class PointMatches(Rows):
    """Keypoints of an image and points of a map. One keypoint may be matched in several frames of the map.

    Positions are in metres in the environment's world, frames are rows of the environment's frames that show the
    points, and the probability that a match is right is the matcher's. Inliers agree with the pose.
    """

    keypoint: Int[ndarray, " n"]
    pixel: Float[ndarray, "n 2"]
    position: Float[ndarray, "n 3"]
    frame: Int[ndarray, " n"]
    probability: Float[ndarray, " n"]
    inliers: Bool[ndarray, " n"]

    @classmethod
    def pooled(cls, pixels: Float[ndarray, "m 2"], parts: Sequence[MatchedFrame]) -> "PointMatches":
        """Of an image with keypoints at these pixels, in several frames. None agrees with a pose yet."""
        frames = [np.full(len(part[1]), part[0]) for part in parts]
        keypoint = np.concatenate([np.zeros(0, int), *(part[1] for part in parts)])
        return cls(
            keypoint=keypoint,
            pixel=pixels[keypoint],
            position=np.concatenate([np.zeros((0, 3)), *(part[2] for part in parts)]),
            frame=np.concatenate([np.zeros(0, int), *frames]),
            probability=np.concatenate([np.zeros(0), *(part[3] for part in parts)]),
            inliers=np.zeros(len(keypoint), bool),
        )


def found_by_points(
    world: LandmarkMap,
    features: Float[Tensor, "scales rows columns c"],
    camera: Camera,
    depth: Float32[ndarray, "height width"] | None,
    placed: PlacedKeypoints,
    seed: int = 0,
) -> tuple[Float[ndarray, "4 4"], PointMatches] | None:
    """The pose that most matches agree on, in a map of one environment; None if there is none, or no points."""
    matches = match_points(world, features, placed, camera)
    points = None if depth is None else points_at(depth, camera, matches.pixel)
    found = pose_of_points(matches.pixel, matches.position, camera, points, seed)
    return None if found is None else (found[0], replace(matches, inliers=found[1]))


def match_points(
    world: LandmarkMap, features: Float[Tensor, "scales rows columns c"], placed: PlacedKeypoints, camera: Camera
) -> PointMatches:
    """An image's keypoints in the frames of the map that show most of what it shows."""
    placed = placed[:KEYPOINTS]
    parts = []
    for row, shown in similar_frames(world, features, placed):
        pairs, likely = point_matcher().match(placed, shown.placed)
        parts.append((row, pairs[:, 0], shown.position[pairs[:, 1]], likely))
    scale = np.array([camera.width, camera.height]) / placed.keypoints.size
    return PointMatches.pooled(placed.keypoints.pixels * scale, parts)


def similar_frames(
    world: LandmarkMap, features: Float[Tensor, "scales rows columns c"], placed: PlacedKeypoints
) -> list[tuple[int, FramePoints]]:
    """The frames most similar to an image, with their points: of those that landmarks name, by mutual neighbours.

    Comparing descriptors takes a hundredth of the time that the matcher takes.
    """
    assert world.points is not None
    named = rank_frames(world, features, CANDIDATES).frame.tolist()
    return most_similar({frame: world.points.frame(frame) for frame in named}, placed)


def most_similar(shown: Mapping[int, FramePoints], placed: PlacedKeypoints) -> list[tuple[int, FramePoints]]:
    """Of some frames, those whose points have the most similar mutual neighbours among an image's keypoints."""
    of_image = _together(placed)
    similarity = {}
    for frame, there in shown.items():
        cosines = (of_image @ _together(there.placed).T).numpy()
        if not cosines.size:
            continue
        partner = cosines.argmax(axis=1)  # NumPy's takes a third of the time of torch's
        mutual = np.flatnonzero(cosines.argmax(axis=0)[partner] == np.arange(len(partner)))
        similarity[frame] = float(np.sort(cosines[mutual, partner[mutual]])[-COUNTED:].sum())
    chosen = sorted(similarity, key=lambda frame: -similarity[frame])[:FRAMES]
    return [(frame, shown[frame]) for frame in chosen]


def _together(placed: PlacedKeypoints) -> Float[Tensor, "n d"]:
    """Descriptors and features as one, whose products are the sums of all cosines."""
    return torch.cat([placed.keypoints.descriptors, *placed.places], dim=1)


def pose_of_points(
    pixels: Float[ndarray, "n 2"],
    positions: Float[ndarray, "n 3"],
    camera: Camera,
    points: Float[ndarray, "n 3"] | None,
    seed: int = 0,
) -> Motion | None:
    """`world_from_camera` by pixels; or by points in the camera's frame, NaN where unknown, and then closer by pixels.

    Depth finds the pose from fewer matches, and pixels are more exact than it.
    """
    error = PIXELS * min(camera.width, camera.height) / 480
    if points is None:
        return absolute_pose(pixels, positions, camera, error, seed)
    known = np.flatnonzero(np.isfinite(points).all(axis=1))
    found = rigid_consensus(points[known], positions[known], METRES, seed)
    if found is None:
        return None
    pose, agree = found
    inliers = np.zeros(len(pixels), bool)
    inliers[known[agree]] = True
    return refined_pose(pose, pixels[inliers], positions[inliers], camera, error), inliers


def confidence_of(points: PointMatches) -> float:
    """From 0 to 1, by how many keypoints agree: images from elsewhere reach few by chance (docs/maps.md)."""
    agreeing = len(np.unique(points.keypoint[points.inliers]))
    return agreeing / (agreeing + HALF)
