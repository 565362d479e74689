"""A furnished room of known geometry, seen by a few cameras: what a reader's result is compared with.

Depth and labels are worked out here by meeting rays with boxes, without the project's geometry code.
"""

from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 80, 60
FX, FY, CX, CY = 62.0, 63.0, 41.0, 28.5  # pixel centres at 0.5
CLASSES = {1: ("wall", "stuff"), 2: ("floor", "stuff"), 5: ("chair", "thing"), 7: ("table", "thing")}

# (low corner, high corner, class, instance); the first is the room itself, met from inside. The world's z is up.
BOXES = [
    ((-2.0, -1.5, 0.0), (2.0, 1.5, 2.5), 1, 1),
    ((-0.6, -0.4, 0.0), (0.5, 0.4, 0.7), 7, 2),
    ((1.0, 0.5, 0.0), (1.5, 1.0, 0.9), 5, 3),
    ((-1.6, -1.2, 0.0), (-1.2, -0.8, 1.1), 5, 4),
]


@dataclass
class Shot:
    name: str
    image: np.ndarray
    depth: np.ndarray  # metres
    semantic: np.ndarray
    instance: np.ndarray
    world_from_camera: np.ndarray  # OpenCV axes


def look(eye: tuple[float, float, float], target: tuple[float, float, float]) -> np.ndarray:
    """world_from_camera of a camera at `eye` that looks at `target`, its x axis level."""
    z = np.subtract(target, eye)
    z = z / np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x = x / np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1], pose[:3, 2], pose[:3, 3] = x, np.cross(z, x), z, eye
    return pose


def shoot(name: str, pose: np.ndarray) -> Shot:
    u, v = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    rays = np.stack([(u - CX) / FX, (v - CY) / FY, np.ones_like(u)], axis=-1) @ pose[:3, :3].T
    eye = pose[:3, 3]
    depth = np.full((HEIGHT, WIDTH), np.inf)
    semantic, instance = np.zeros((2, HEIGHT, WIDTH), np.int32)
    for index, (low, high, label, number) in enumerate(BOXES):
        with np.errstate(divide="ignore"):
            a, b = (np.array(low) - eye) / rays, (np.array(high) - eye) / rays
        enter, leave = np.minimum(a, b).max(axis=-1), np.maximum(a, b).min(axis=-1)
        t = leave if index == 0 else np.where((enter < leave) & (enter > 0), enter, np.inf)
        nearer = t < depth
        depth = np.where(nearer, t, depth)
        semantic, instance = np.where(nearer, label, semantic), np.where(nearer, number, instance)
    points = eye + rays * depth[..., None]
    floor = (instance == 1) & (points[..., 2] < 1e-6)
    semantic = np.where(floor, 2, semantic)
    # A picture with something to see: waves over the world's coordinates, and each thing its own colour.
    waves = np.sin(points * 9) * 40 + 128
    image = (waves + instance[..., None] * np.array([11, -17, 23])).clip(0, 255).astype(np.uint8)
    return Shot(name, image, depth, semantic.astype(np.int32), instance.astype(np.int32), pose)


def shots(count: int = 8) -> list[Shot]:
    """Cameras on an oval around the table, at eye height, all upright but none level."""
    result = []
    for k in range(count):
        angle = 2 * np.pi * k / count
        eye = (1.6 * np.cos(angle), 1.1 * np.sin(angle), 1.5 + 0.1 * np.sin(3 * angle))
        target = (-0.5 * np.cos(angle + 0.4), -0.3 * np.sin(angle), 0.6)
        result.append(shoot(f"{k:06d}", look(eye, target)))
    return result


def assert_shown(scene, shots: list[Shot], depth_tolerance: float, loss: float, pose_tolerance: float = 1e-9) -> None:
    """A scene has these shots, in this order, exactly but for depth's rounding and the loss of its pictures."""
    assert len(scene) == len(shots)
    assert scene.skipped == {}
    for frame, shot in zip(scene, shots, strict=True):
        np.testing.assert_allclose(frame.world_from_camera, shot.world_from_camera, atol=pose_tolerance)
        assert frame.depth.dtype == np.float32
        np.testing.assert_allclose(frame.depth, shot.depth, atol=depth_tolerance)
        camera = frame.camera
        np.testing.assert_allclose([camera.fx, camera.fy, camera.cx, camera.cy], [FX, FY, CX, CY], atol=1e-9)
        assert (camera.width, camera.height) == (WIDTH, HEIGHT)
        assert frame.image.shape == (HEIGHT, WIDTH, 3)
        difference = np.abs(frame.image.astype(int) - shot.image)
        assert difference.max() == 0 if loss == 0 else difference.mean() < loss
