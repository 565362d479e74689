"""Where light comes from: the sky and the sun outside, windows that let it in, lamps."""

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Float32

from locus.render.ray_arrays import Vectors


@dataclass(frozen=True)
class Window:
    """A rectangle through which one sees outside."""

    centre: tuple[float, float, float]
    across: tuple[float, float, float]
    """Half of its width, as a vector."""
    up: tuple[float, float, float]
    """Half of its height, as a vector."""
    inward: tuple[float, float, float]
    """Unit normal, into the room."""
    room: int
    semantic: int
    instance: int


@dataclass(frozen=True)
class Lamp:
    """A sphere that shines; nothing inside the sphere casts a shadow, so that a shade around a bulb may glow."""

    position: tuple[float, float, float]
    radius: float
    power: tuple[float, float, float]
    """Radiance that it adds, over π, on a surface facing it one metre away."""

    def moved(self, matrix: Float[np.ndarray, "4 4"]) -> "Lamp":
        x, y, z, _ = (matrix @ np.array([*self.position, 1.0])).tolist()
        return replace(self, position=(x, y, z))


@dataclass(frozen=True, eq=False)
class Outside:
    """The world beyond the windows, infinitely far away."""

    panorama: Float32[np.ndarray, "h w 3"]
    """Linear radiance; row 0 is straight up, the last row straight down, columns go around z from x to y."""
    sun: Float32[np.ndarray, " 3"]
    """Unit vector towards the sun."""
    sunlight: Float32[np.ndarray, " 3"]
    """Radiance that the sun adds on a white surface facing it; zero without a sun."""
    sun_radius: float = 0.02
    """Radius of the sun's disc, in radians; the real one's 0.005 is widened a little by haze."""

    def radiance(self, directions: Vectors) -> Vectors:
        """What is seen in each (unit) direction."""
        height, width = self.panorama.shape[:2]
        row = np.arccos(np.clip(directions[:, 2], -1, 1)) / np.pi * height - 0.5
        column = (np.arctan2(directions[:, 1], directions[:, 0]) / (2 * np.pi)) % 1 * width - 0.5
        left, top = np.floor(column), np.floor(row)
        x, y = (column - left)[:, None], (row - top)[:, None]
        c0, c1 = left.astype(int) % width, (left.astype(int) + 1) % width
        r0, r1 = np.clip(top.astype(int), 0, height - 1), np.clip(top.astype(int) + 1, 0, height - 1)
        p = self.panorama
        return ((p[r0, c0] * (1 - x) + p[r0, c1] * x) * (1 - y) + (p[r1, c0] * (1 - x) + p[r1, c1] * x) * y).astype(
            np.float32
        )


@dataclass(frozen=True, eq=False)
class Lights:
    """All light of a scene."""

    outside: Outside
    windows: list[Window] = field(default_factory=list)
    lamps: list[Lamp] = field(default_factory=list)


def disc(count: int, turn: Float[np.ndarray, " n"]) -> Float32[np.ndarray, "n k 2"]:
    """`count` points spread evenly over the unit disc (a sunflower), turned by an angle per row."""
    index = np.arange(count) + 0.5
    radius = np.sqrt(index / count)
    angle = index * 2.399963 + turn[:, None]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).astype(np.float32)


def basis(normals: Vectors) -> tuple[Vectors, Vectors]:
    """Two unit vectors that complete each unit normal to a right-handed frame (Duff et al. 2017)."""
    x, y, z = normals.T
    sign = np.where(z >= 0, np.float32(1), np.float32(-1))
    a = -1 / (sign + z)
    b = x * y * a
    return (np.stack([1 + sign * x * x * a, sign * b, -sign * x], axis=1), np.stack([b, sign + y * y * a, -y], axis=1))
