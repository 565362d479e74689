"""Pictures as people take them: of things, from near and far, high and low, tilted, by various lenses."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from locus.geometry import Camera
from locus.render.cameras import Eyes, Ground, lens, pose_of, visits

TAKES_PER_ROOM = 4
FRAMES_PER_TAKE = 8
"""Frames of one thing, from all sides."""
DEGREES = (45.0, 100.0)
HEIGHTS = (0.5, 2.0)
REACH = 0.8
"""Metres that a camera is held out over what stands in the way."""
NEAREST, FARTHEST = 0.45, 4.5
"""Metres from a camera to the thing."""
TRIES = 12
LEAST_THINGS = 3
GOOD = 0.4
"""Share of a view that may be close or of one surface: close-ups are wanted, pictures of nothing are not."""


def handheld(
    ground: Ground, eyes: Eyes, order: Sequence[int], frames: int | None, rng: np.random.Generator
) -> tuple[list[Camera], list[Float[np.ndarray, "4 4"]]]:
    """Takes of one thing each, with a camera and a pose for every frame. Few frames visit few areas of `order`."""
    takes = len(order) * TAKES_PER_ROOM if frames is None else -(-frames // FRAMES_PER_TAKE)
    views = []
    for area, count in visits(ground, order, takes, TAKES_PER_ROOM):
        cells = ground.position(np.argwhere(ground.within(area)))
        for _ in range(count):
            target = _target(ground, eyes, cells, rng)
            views += [_view(ground, eyes, cells, target, rng) for _ in range(FRAMES_PER_TAKE)]
    cameras, poses = zip(*views[:frames], strict=True)
    return list(cameras), list(poses)


def _target(
    ground: Ground, eyes: Eyes, cells: Float[np.ndarray, "n 2"], rng: np.random.Generator
) -> Float[np.ndarray, " 3"]:
    """A point that one sees from somewhere: on a thing, if there is one."""
    eye = np.array([*rng.choice(cells), ground.floor + 1.5])
    yaw, pitch = rng.uniform(0, 2 * np.pi, 64), rng.uniform(-0.8, 0.0, 64)
    ways = np.array([pose_of(*eye, y, p)[:3, 2] for y, p in zip(yaw, pitch, strict=True)], np.float32)
    hits = eyes.tracer.nearest(np.broadcast_to(eye.astype(np.float32), ways.shape), ways)
    seen = hits.face >= 0
    things = seen & eyes.things[eyes.mesh.semantic[hits.face]]
    wanted = np.flatnonzero(things if things.any() else seen)
    if not len(wanted):  # a floor without walls or things: what lies before one's feet
        return np.array([*rng.choice(cells), ground.floor])
    instance = eyes.mesh.instance[hits.face[wanted]]
    chosen = rng.choice(wanted[instance == rng.choice(np.unique(instance))])  # small things as often as large ones
    return eye + float(hits.distance[chosen]) * ways[chosen]


def _view(
    ground: Ground,
    eyes: Eyes,
    cells: Float[np.ndarray, "n 2"],
    target: Float[np.ndarray, " 3"],
    rng: np.random.Generator,
) -> tuple[Camera, Float[np.ndarray, "4 4"]]:
    """One frame: the first of a few tries that shows the target and other things, not one surface; else the best."""
    camera = lens((eyes.camera.width, eyes.camera.height), float(rng.uniform(*DEGREES)))
    judging = replace(eyes, camera=camera)
    away = np.linalg.norm(cells - target[:2], axis=1)
    around = cells[(away > NEAREST) & (away < FARTHEST)]
    if not len(around):
        around = cells
    views = []
    for _ in range(TRIES):
        pose = _aimed(ground, eyes, rng.choice(around), target, rng)
        things, bad = judging.judge(pose)
        way = target - pose[:3, 3]
        distance = np.linalg.norm(way)
        bad += _blocked(eyes, pose[:3, 3], way / distance, distance - 0.03)
        views.append((min(things, LEAST_THINGS) - 8 * max(bad - GOOD, 0), pose))
        if things >= LEAST_THINGS and bad < GOOD:
            break
    return camera, max(views, key=lambda view: view[0])[1]


def _aimed(
    ground: Ground,
    eyes: Eyes,
    cell: Float[np.ndarray, " 2"],
    target: Float[np.ndarray, " 3"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "4 4"]:
    """Above a cell, or held out from it to the target, looking about there, tilted as hands do."""
    eye = np.array([*cell, ground.floor + rng.uniform(*HEIGHTS)])
    flat = target - eye
    flat[2] = 0
    away = float(np.linalg.norm(flat)) + 1e-6
    lean = rng.uniform(0, np.clip(away - NEAREST, 0, REACH))
    if not _blocked(eyes, eye, flat / away, lean + 0.15):
        eye = eye + lean * flat / away
    x, y, z = target - eye
    yaw = np.arctan2(y, x) + rng.normal(0, 0.2)
    pitch = np.clip(np.arctan2(z, np.hypot(x, y)) + rng.normal(0, 0.12), -1.2, 0.6)
    roll = rng.normal(0, 0.12) if rng.random() < 0.9 else rng.uniform(-0.6, 0.6)
    pose = pose_of(*eye, yaw, pitch)
    right, down = pose[:3, 0].copy(), pose[:3, 1].copy()
    pose[:3, 0] = np.cos(roll) * right + np.sin(roll) * down
    pose[:3, 1] = np.cos(roll) * down - np.sin(roll) * right
    return pose


def _blocked(eyes: Eyes, eye: Float[np.ndarray, " 3"], way: Float[np.ndarray, " 3"], reach: float) -> bool:
    """Whether something lies in the way within reach."""
    origin, direction = eye[None].astype(np.float32), way[None].astype(np.float32)
    return bool(eyes.tracer.blocked(origin, direction, np.array([reach], np.float32))[0])
