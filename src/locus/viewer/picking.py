"""What a click hits: the image, the landmark or the point that is first on the ray through the pointer."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from locus.geometry import Camera, invert, transform

NEAR = 0.006  # of the distance: how far off the ray a point may be, a few pixels on a screen
SURFACE = 0.05  # of the distance: points so close behind the first are of the same surface


@dataclass(frozen=True)
class Ray:
    origin: Float[ndarray, " 3"]
    direction: Float[ndarray, " 3"]
    """Of unit length."""

    @classmethod
    def of(cls, origin: tuple[float, float, float], direction: tuple[float, float, float]) -> "Ray":
        towards = np.asarray(direction, np.float64)
        return cls(np.asarray(origin, np.float64), towards / np.linalg.norm(towards))


@dataclass(frozen=True)
class Hit:
    """What is hit."""

    kind: Literal["image", "landmark", "point"]
    index: int
    """Row among what was offered."""
    distance: float
    at: tuple[float, float] | None = None
    """Of an image: where in it, (x, y) from 0 to 1."""


def first(*hits: Hit | None) -> Hit | None:
    """The nearest."""
    return min((hit for hit in hits if hit is not None), key=lambda hit: hit.distance, default=None)


def hit_point(ray: Ray, points: Float[ndarray, "n 3"], shown: Bool[ndarray, " n"], size: float) -> Hit | None:
    """The point of a cloud that a click means: on the first surface that the ray meets, the one closest to the ray.

    Only points that are shown can be clicked, each drawn `size` metres wide.
    """
    if not len(points):
        return None
    from_eye = points - ray.origin.astype(points.dtype)
    along = from_eye @ ray.direction.astype(points.dtype)
    off = np.sqrt(np.maximum((from_eye * from_eye).sum(axis=1) - along * along, 0))
    close = np.flatnonzero(shown & (along > 0) & (off <= np.maximum(size, NEAR * along)))
    if not len(close):
        return None
    nearest = along[close].min()
    close = close[along[close] <= nearest * (1 + SURFACE) + size]
    best = int(close[off[close].argmin()])
    return Hit("point", best, float(along[best]))


def hit_sphere(
    ray: Ray, centres: Float[ndarray, "n 3"], radii: Float[ndarray, " n"], shown: Bool[ndarray, " n"]
) -> Hit | None:
    """The sphere whose front the ray meets first; a sphere around the eye cannot be clicked."""
    from_eye = centres.astype(np.float64) - ray.origin
    along = from_eye @ ray.direction
    off = (from_eye * from_eye).sum(axis=1) - along * along
    inside = radii.astype(np.float64) ** 2 - off
    front = along - np.sqrt(np.maximum(inside, 0))
    met = np.flatnonzero(shown & (inside >= 0) & (front > 0))
    if not len(met):
        return None
    best = int(met[front[met].argmin()])
    return Hit("landmark", best, float(front[best]))


@dataclass(frozen=True)
class Screen:
    """Where an image hangs in space: before its camera, parallel to its image plane."""

    world_from_camera: Float[ndarray, "4 4"]
    distance: float
    half_width: float
    half_height: float

    @classmethod
    def of(cls, camera: Camera, world_from_camera: Float[ndarray, "4 4"], scale: float) -> "Screen":
        """As viser draws a frustum: of the volume that a cube of a size set by `scale` has, whatever the lens."""
        half_width, half_height = 0.5 * camera.width / camera.fx, 0.5 * camera.height / camera.fy
        distance = float(scale / np.cbrt(half_width * half_height / 3))
        return cls(world_from_camera, distance, distance * half_width, distance * half_height)

    def points(self, at: Float[ndarray, "n 2"]) -> Float[ndarray, "n 3"]:
        """World points of places in the image, (x, y) from 0 to 1."""
        x, y = ((2 * at - 1) * [self.half_width, self.half_height]).T
        return transform(self.world_from_camera, np.stack([x, y, np.full_like(x, self.distance)], axis=1))


def hit_image(ray: Ray, screens: list[Screen]) -> Hit | None:
    """The image that the ray meets first, from its front or its back."""
    hits = []
    for index, screen in enumerate(screens):
        camera_from_world = invert(screen.world_from_camera)
        origin = transform(camera_from_world, ray.origin)
        direction = camera_from_world[:3, :3] @ ray.direction
        if abs(direction[2]) < 1e-9:
            continue
        distance = (screen.distance - origin[2]) / direction[2]
        x, y = (origin + distance * direction)[:2] / [2 * screen.half_width, 2 * screen.half_height] + 0.5
        if distance > 0 and 0 <= x < 1 and 0 <= y < 1:
            hits.append(Hit("image", index, float(distance), (float(x), float(y))))
    return first(*hits)
