"""How far the keypoints of an image are, from where other posed images show them.

A keypoint's depth is one number: how far along its own ray the point lies. The inverse of the depth is what is solved
for, because a point at infinity is a plain zero there.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from locus.geometry import Camera, transform

STEPS = 3  # of Gauss–Newton


class Sightings(NamedTuple):
    """Keypoints of one image, as other images show them: one row a keypoint and image, all vectors in its axes."""

    keypoint: Int[ndarray, " k"]
    ray: Float[ndarray, "k 3"]
    """From the first camera through the keypoint, so long that its depth there is 1."""
    offset: Float[ndarray, "k 3"]
    """Where the first camera is."""
    seen: Float[ndarray, "k 3"]
    """Where the other image shows it; unit length."""

    def directions(self, rows: Int[ndarray, " p"], inverse: Float[ndarray, " p"]) -> Float[ndarray, "p 3"]:
        """From the other cameras to the points, which are at these inverse depths."""
        return self.ray[rows] + inverse[:, None] * self.offset[rows]


def sighted(
    keypoint: Int[ndarray, " k"],
    pixels: Float[ndarray, "k 2"],
    pixels_other: Float[ndarray, "k 2"],
    camera: Camera,
    camera_other: Camera,
    other_from_camera: Float[ndarray, "4 4"],
) -> Sightings:
    """Those of one other image."""
    here, there = (
        each.unproject(at, np.ones(len(at))) for each, at in ((camera, pixels), (camera_other, pixels_other))
    )
    offset = np.broadcast_to(other_from_camera[:3, 3], here.shape)
    ray = transform(other_from_camera, here) - offset
    return Sightings(keypoint, ray, offset, there / np.linalg.norm(there, axis=1, keepdims=True))


def triangulate(sightings: Sightings, count: int, error: float, least_angle: float) -> Float[ndarray, " count"]:
    """The inverse depths of `count` keypoints; NaN where there is none that is sure.

    Each sighting proposes one, which others of the same keypoint refine if they agree: if their ray passes it within
    `error`. The one that most agree with is taken. Of these, at least one must see the point from another direction
    than the keypoint's image does, by the `least_angle`. Angles are in radians.
    """
    inverse = np.full(count, np.nan)
    first, second = _same_keypoint(sightings.keypoint)
    if not len(first):
        return inverse
    # The part across the line of sight is what an inverse depth has to make zero.
    ray, offset = (_across(vectors, sightings.seen) for vectors in (sightings.ray, sightings.offset))
    slope, value = np.sum(offset * offset, axis=1), -np.sum(offset * ray, axis=1)
    proposed = np.divide(value, slope, out=np.full(len(slope), np.nan), where=slope > 1e-12)
    for _ in range(STEPS):
        agree = _off(sightings, second, proposed[first]) <= error
        a, b = first[agree], second[agree]
        weight = 1 / np.sum(sightings.directions(b, proposed[a]) ** 2, axis=1)  # to angles, from metres at depth 1
        total = np.bincount(a, weight * slope[b], len(proposed))
        refined = np.bincount(a, weight * value[b], len(proposed))
        proposed = np.divide(refined, total, out=np.full(len(total), np.nan), where=total > 1e-12)
    agree = (proposed[first] > 0) & (_off(sightings, second, proposed[first]) <= error)
    a, b = first[agree], second[agree]
    widest = np.zeros(len(proposed))
    np.maximum.at(widest, a, _angle(sightings.ray[b], sightings.directions(b, proposed[a])))
    support = np.bincount(a, minlength=len(proposed))
    sure = np.flatnonzero(widest >= least_angle)
    best = sure[np.lexsort((widest[sure], support[sure]))]  # what is written last stays
    inverse[sightings.keypoint[best]] = proposed[best]
    return inverse


def _same_keypoint(keypoint: Int[ndarray, " k"]) -> tuple[Int[ndarray, " p"], Int[ndarray, " p"]]:
    """Every two sightings of one keypoint, each also with itself."""
    order = np.argsort(keypoint, kind="stable")
    _, start, size = np.unique(keypoint[order], return_index=True, return_counts=True)
    partners = np.repeat(size, size)
    within = np.arange(partners.sum()) - np.repeat(partners.cumsum() - partners, partners)
    return np.repeat(order, partners), order[np.repeat(np.repeat(start, size), partners) + within]


def _across(vectors: Float[ndarray, "k 3"], seen: Float[ndarray, "k 3"]) -> Float[ndarray, "k 3"]:
    return vectors - np.sum(vectors * seen, axis=1, keepdims=True) * seen


def _off(sightings: Sightings, rows: Int[ndarray, " p"], inverse: Float[ndarray, " p"]) -> Float[ndarray, " p"]:
    """The angle between a line of sight and where points at these inverse depths would be seen; NaN stays NaN."""
    return _angle(sightings.directions(rows, inverse), sightings.seen[rows])


def _angle(a: Float[ndarray, "p 3"], b: Float[ndarray, "p 3"]) -> Float[ndarray, " p"]:
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1))
