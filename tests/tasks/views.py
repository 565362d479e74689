"""Two views of the room of tests/scenes, and features that know exactly which point of the world a patch shows."""

import numpy as np
import torch

from locus.geometry import Camera, invert, transform
from locus.scenes.patches import patch_points_camera
from tests.scenes import room

CAMERA = Camera(room.WIDTH, room.HEIGHT, room.FX, room.FY, room.CX, room.CY)
SIZE = (room.WIDTH, room.HEIGHT)
GRID = (30, 40)


def fourier(points, width=0.3, count=256, seed=0):
    """Random Fourier features: their cosine falls with the distance between points; 0 where there is no point."""
    waves = np.random.default_rng(seed).normal(size=(3, count)) / width
    phases = points @ waves
    features = np.concatenate([np.cos(phases), np.sin(phases)], axis=-1) / np.sqrt(count)
    return torch.from_numpy(np.nan_to_num(features)).float()


def perfect(shot, grid=GRID):
    """Features of a shot's patches, one scale."""
    points = transform(shot.world_from_camera, patch_points_camera(shot.depth, CAMERA, grid)[0])
    return fourier(points)[None]


def motion(a, b):
    """The true b_from_a."""
    return invert(b.world_from_camera) @ a.world_from_camera


def direction_error(a, b):
    """Degrees between two translations."""
    cosine = a[:3, 3] @ b[:3, 3] / np.linalg.norm(a[:3, 3]) / np.linalg.norm(b[:3, 3])
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))
