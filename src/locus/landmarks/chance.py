"""The chance level: what similarity to landmarks an image of another environment would reach.

It is measured on the map's own frames, by the landmarks that are *elsewhere* in their environment. It rises with the
number of landmarks. A map keeps no features of its frames, so when landmarks are added, a frame's level is raised by as
much as that of the landmarks which the frame shows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

from locus.landmarks.arrays import Landmarks

if TYPE_CHECKING:
    from locus.landmarks.map import LandmarkMap

ELSEWHERE = 5  # radii from a spot that are another spot, beyond doubt
PAIRS_AT_ONCE = 2**22


def chance(
    landmarks: Landmarks, points: Float[ndarray, "n 3"], features: Float[ndarray, "n c"], of_frame: csr_matrix
) -> Float32[ndarray, " frames"]:
    """Mean similarity of each frame's points to the most similar landmark that is elsewhere.

    `of_frame` (frames, n) says how often each point counts for each frame. 0 for a frame none of whose points has a
    landmark elsewhere.
    """
    embedding, best = landmarks.embedding, np.full(len(points), -np.inf)
    step = max(1, PAIRS_AT_ONCE // max(1, len(landmarks)))
    for part in (slice(start, start + step) for start in range(0, len(points), step)):
        apart = cdist(points[part], landmarks.position) > ELSEWHERE * landmarks.radius
        best[part] = np.where(apart, features[part] @ embedding.T, -np.inf).max(axis=1, initial=-np.inf)
    known = np.isfinite(best)
    count = of_frame @ known.astype(np.float64)
    return (of_frame @ np.where(known, best, 0) / np.maximum(count, 1)).astype(np.float32)


def with_chance_raised(world: "LandmarkMap", name: str, parts: Sequence["LandmarkMap"]) -> "LandmarkMap":
    """A map whose frames of one environment come first from the maps that it was made of, with their level then."""
    before = np.concatenate([_of_landmarks(part.environment(part.environment_number(name))) for part in parts])
    if not len(before):
        return world
    number = world.environment_number(name)
    now = _of_landmarks(world.environment(number))[: len(before)]
    rows = np.flatnonzero(world.frames.environment == number)[: len(before)]
    level = world.frames.chance.copy()
    level[rows] = (level[rows] + now - before).clip(0, 1)
    return replace(world, frames=replace(world.frames, chance=level))


def _of_landmarks(world: "LandmarkMap") -> Float32[ndarray, "frames scales"]:
    """The level of the landmarks that each frame shows, instead of its patches, in a map of one environment."""
    levels = []
    for scale in range(len(world.radii)):
        rows = np.flatnonzero(world.landmarks.scale == scale)
        some = world.landmarks.take(rows)
        levels.append(chance(some, some.position, some.embedding, world.sightings[:, rows]))
    return np.stack(levels, axis=1)
