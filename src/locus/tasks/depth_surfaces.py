"""Depth maps from single spots of known depth.

Spots are joined to triangles, and those that are small and flat are taken for pieces of a surface. Everywhere else the
depth stays unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray
from scipy.spatial import Delaunay, QhullError

from locus.geometry import Camera
from locus.scenes import Scene
from locus.scenes.source import AlteredSource

EDGE = 0.2  # of an image's shorter side, that the longest edge of a triangle may have
FLAT = 0.2  # that the inverse depths at its corners may differ by, as a share
FARTHEST = 60.0  # metres; 16 bits hold 65 of them


class Spots(NamedTuple):
    """Where the depth of a frame is known."""

    pixels: Float[ndarray, "n 2"]
    inverse: Float[ndarray, " n"]
    """Of the depth, in 1/metres."""


def on_surfaces(scene: Scene, spots: Sequence[Spots]) -> Scene:
    """The scene with the depth of surfaces through these spots of its frames."""
    sources = [
        SurfacesSource(source.name, source, frame.camera, known)
        for source, frame, known in zip(scene.sources, scene, spots, strict=True)
    ]
    return replace(scene, sources=sources, convention=replace(scene.convention, depth_scale=1.0))


@dataclass(frozen=True, eq=False)
class SurfacesSource(AlteredSource):
    """A frame whose depth is that of surfaces through spots; all else is as it was."""

    straight_camera: Camera
    spots: Spots

    def has_depth(self) -> bool:
        return True

    def depth(self) -> Float32[ndarray, "h w"]:
        return surfaces(self.straight_camera, self.spots)


def surfaces(camera: Camera, spots: Spots) -> Float32[ndarray, "h w"]:
    """A depth map: of triangles between spots that are small and flat, and 0 where there are none.

    A spot that is on no such triangle is left out too: nothing near it says that it is right.
    """
    depth = np.zeros((camera.height, camera.width), np.float32)
    pixels, inverse = spots
    try:
        mesh = Delaunay(pixels)
    except (QhullError, ValueError):  # fewer than three, or all on a line
        return depth
    corners = mesh.simplices
    edges = np.linalg.norm(pixels[corners] - pixels[np.roll(corners, 1, axis=1)], axis=2)
    nearest, farthest = inverse[corners].max(axis=1), inverse[corners].min(axis=1)
    kept = (edges.max(axis=1) <= EDGE * min(depth.shape)) & (nearest <= (1 + FLAT) * farthest)
    at = np.stack([np.arange(camera.width) + 0.5, np.zeros(camera.width)], axis=1)
    for y, row in enumerate(depth):
        at[:, 1] = y + 0.5
        triangle = mesh.find_simplex(at)
        x = np.flatnonzero((triangle >= 0) & kept[triangle])
        # The inverse depth of a plane is affine in the pixel.
        within, of_corners = mesh.transform[triangle[x]], inverse[corners[triangle[x]]]
        shares = np.einsum("nij,nj->ni", within[:, :2], at[x] - within[:, 2])
        row[x] = 1 / (np.sum(shares * of_corners[:, :2], axis=1) + (1 - shares.sum(axis=1)) * of_corners[:, 2])
    spot = np.unique(corners[kept])
    x, y = pixels[spot].astype(int).clip(0, [camera.width - 1, camera.height - 1]).T
    depth[y, x] = 1 / inverse[spot]
    return np.where(depth <= FARTHEST, depth, np.float32(0))
