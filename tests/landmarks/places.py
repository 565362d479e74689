"""Places in memory, and features that know every point of them: what maps are made from and localized against."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from locus.features.dense import SceneFeatures
from locus.geometry import Camera, transform
from locus.keypoints import Detector, Keypoints
from locus.model import LoCUS
from locus.scenes import LabelClass, Scene, patch_points
from locus.scenes.patches import patch_centres
from locus.scenes.scene import Convention
from locus.scenes.source import Source
from tests.scenes import room

CAMERA = Camera(room.WIDTH, room.HEIGHT, room.FX, room.FY, room.CX, room.CY)
GRID = (15, 20)  # patches of 4 pixels
DIMENSION = 128
RADIUS = 0.15
REACH = 0.2  # metres at which features of two points are exp(-1/2) alike


@dataclass(frozen=True, eq=False)
class ShotSource(Source):
    """A shot of the room as a frame."""

    shot: room.Shot

    def image(self):
        return self.shot.image

    def image_size(self):
        return room.WIDTH, room.HEIGHT

    def depth(self):
        return self.shot.depth

    def camera(self):
        return CAMERA

    def pose(self):
        return self.shot.world_from_camera

    def semantic(self):
        return self.shot.semantic


def scene(shots: Sequence[room.Shot], name: str = "room") -> Scene:
    classes = [LabelClass(number, *of) for number, of in room.CLASSES.items()]
    sources = [ShotSource(shot.name, shot) for shot in shots]
    return Scene(name, "memory", sources, Convention(depth_scale=1.0), classes)


def model(radii: Sequence[float] = (RADIUS,), seed: int = 0) -> LoCUS:
    """What a map wants to know of a model; the features themselves are `perfect`."""
    torch.manual_seed(seed)
    return LoCUS("classic", dimension=DIMENSION, radii=radii, head="linear")


def perfect(points: np.ndarray, world: int = 0) -> torch.Tensor:
    """Unit vectors whose inner product is a Gaussian of the distance (random Fourier features).

    Points of another world have features unlike those of this one.
    """
    random = np.random.default_rng(world)
    waves = random.normal(size=(3, DIMENSION // 2)) / REACH
    phases = points.astype(np.float64) @ waves + random.uniform(0, 2 * np.pi, DIMENSION // 2)
    features = np.concatenate([np.cos(phases), np.sin(phases)], axis=-1) / np.sqrt(DIMENSION / 2)
    return torch.from_numpy(features.astype(np.float32))


def shown(shot: room.Shot) -> np.ndarray:
    """The world point in the middle of every patch, also of those across an edge: (rows, columns, 3)."""
    pixels = patch_centres(GRID, room.WIDTH, room.HEIGHT)
    depth = shot.depth[pixels[..., 1].astype(int), pixels[..., 0].astype(int)]
    return transform(shot.world_from_camera, CAMERA.unproject(pixels, depth))


def features(shot: room.Shot, scales: int = 1, world: int = 0) -> torch.Tensor:
    """The perfect features of an image, the same at every scale."""
    return perfect(shown(shot), world).expand(scales, -1, -1, -1).contiguous()


def seen(place: Scene, scales: int = 1, world: int = 0) -> SceneFeatures:
    """The perfect features of a scene."""
    points = np.stack([patch_points(frame, GRID)[0] for frame in place]).astype(np.float32)
    of_frames = torch.stack([features(source.shot, scales, world) for source in place.sources], dim=1)
    return SceneFeatures(place, list(range(len(place))), points, of_frames)


def wanderer(count: int, seed: int = 0) -> list[room.Shot]:
    """Shots from places and in directions of no order, unlike those of `room.shots`."""
    random = np.random.default_rng(seed)
    taken = []
    for number in range(count):
        angle = random.uniform(0, 2 * np.pi)
        eye = (1.5 * np.cos(angle), 1.0 * np.sin(angle), random.uniform(1.3, 1.9))
        target = (*random.uniform(-0.5, 0.5, 2), random.uniform(0.4, 0.9))
        taken.append(room.shoot(f"query-{number}", room.look(eye, target)))
    return taken


class Scattered(Detector):
    """Keypoints anywhere, the same for the same image."""

    name, fingerprint, dimension = "scattered", "scattered 1", 64

    def __init__(self, count=700):
        self.count = count

    def found(self, image):
        random = np.random.default_rng(image.sum())
        pixels = random.uniform(0, (image.shape[1], image.shape[0]), (self.count, 2))
        descriptors = F.normalize(torch.from_numpy(random.normal(size=(self.count, 64))).float(), dim=-1)
        return Keypoints(pixels, np.linspace(1, 0, self.count), descriptors, (image.shape[1], image.shape[0]))
