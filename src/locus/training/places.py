"""Scenes as places to train on: paths, globs and list files in; environments, cached or live, out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray

from locus.backbones import Backbone
from locus.features.cache import CachedScene, cache_bytes, cache_scene, missing_bytes
from locus.scenes import Scene
from locus.training.batches import Environment, Side
from locus.training.live import LiveScene, look_at
from locus.training.settings import Settings, TrainingError

HELD_OUT = 0.25  # share of a single scene's patches kept for validation
FEWEST = 4  # frames that must see either part of it


def environments(
    scenes: Sequence[Scene],
    backbone: Backbone,
    settings: Settings,
    folder: Path | None,
    *,
    augment: bool,
    progress: bool,
) -> list[Environment]:
    """Scenes as places, read live or their tokens cached; with `augment`, their augmented copies too."""
    places = []
    for scene in scenes:
        if settings.live:
            views = [look_at(scene, backbone, settings.resolution, progress)]
        else:
            views = [
                cache_scene(scene, backbone, settings.resolution, copy=copy, folder=folder, progress=progress)
                for copy in range(1 + settings.copies if augment else 1)
            ]
        check(views[0], settings)
        places.append(Environment(views, np.flatnonzero(_has_points(views[0].points))))
    return places


def estimate(
    scenes: Sequence[Scene], backbone: Backbone, settings: Settings, folder: Path | None, copies: int = 0
) -> tuple[int, int]:
    """Bytes of cache that scenes and their copies take together, and of those the ones that are still to be made."""
    total = missing = 0
    for scene in scenes:
        total += (1 + copies) * cache_bytes(scene, backbone, settings.resolution)
        for copy in range(1 + copies):
            missing += missing_bytes(scene, backbone, settings.resolution, copy, folder)
    return total, missing


def check(scene: CachedScene | LiveScene, settings: Settings) -> None:
    """Refuse what cannot teach anything, and say why."""
    points = scene.points[np.isfinite(scene.points).all(axis=-1)]
    if not len(points):
        raise TrainingError(f"{scene.name} has no patch with valid depth; see `locus inspect`")
    extent = float(np.linalg.norm(points.max(axis=0) - points.min(axis=0)))
    if max(settings.radii) >= extent / 2:
        raise TrainingError(
            f"a radius of {max(settings.radii):g} m is too large for {scene.name}, which is {extent:.2g} m across: "
            "nearly everything would be the same spot"
        )


def split_by_space(environment: Environment) -> tuple[Environment, Environment]:
    """One place as two, by a plane across its longest direction: what lies beyond it is kept for validation.

    Frames of one place see the same things, so a split of frames would test on what was trained on. It is the world
    that is split: patches of one part have no point, so take no part, in the other.
    """
    points = environment.scenes[0].points
    known = points[np.isfinite(points).all(axis=-1)].astype(np.float64)
    longest = np.linalg.eigh(np.cov(known.T))[1][:, -1]
    beyond = Side(longest, float(np.quantile(known @ longest, 1 - HELD_OUT)))
    parts = []
    for side in (beyond.other, beyond):
        seen = np.flatnonzero(_has_points(side.of(points)))
        if len(seen) < FEWEST:
            raise TrainingError(
                f"{len(seen)} frames see a part of {environment.name}: too few to split; name --val scenes"
            )
        parts.append(Environment(environment.scenes, seen, side))
    return parts[0], parts[1]


def _has_points(points: Float32[ndarray, "frames rows columns 3"]) -> Bool[ndarray, " frames"]:
    return np.any(np.isfinite(points.reshape(len(points), -1)), axis=1)
