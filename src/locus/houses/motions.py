"""Rigid motions as 4×4 matrices, and parts moved by them."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from locus.render.surfaces import Surface

Motion = Float[np.ndarray, "4 4"]


def moved(parts: Iterable[Surface], motion: Motion) -> list[Surface]:
    return [part.moved(motion) for part in parts]


def shift(x: float, y: float, z: float) -> Motion:
    matrix = np.eye(4)
    matrix[:3, 3] = (x, y, z)
    return matrix


def pose(x: float, y: float, z: float, yaw: float) -> Motion:
    """To a place, turned about the vertical."""
    matrix = shift(x, y, z)
    matrix[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    return matrix


def forward(x: float, y: float, z: float) -> Motion:
    """To a place, with what pointed up pointing to the front (+y): knobs, dials, wheels."""
    return np.array([[1, 0, 0, x], [0, 0, 1, y], [0, -1, 0, z], [0, 0, 0, 1.0]])


def tilt(angle: float, y: float, z: float) -> Motion:
    """Turned about the x axis by which z leans towards -y, and then moved."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, y], [0, s, c, z], [0, 0, 0, 1.0]])
