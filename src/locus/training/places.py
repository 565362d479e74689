"""Scenes as places to train on: paths, globs and list files in; environments, cached or live, out."""

import glob
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from locus.backbones import Backbone
from locus.cache import CachedScene, cache_bytes, cache_scene
from locus.scenes import Scene, load_scene
from locus.training.batches import Environment
from locus.training.live import LiveScene, look_at
from locus.training.settings import Settings, TrainingError

HELD_OUT = 0.25  # share of a single scene's extent kept for validation


def find_scenes(given: Sequence[str | Path]) -> list[Path]:
    """Folders of scenes: paths as they are, globs expanded, and the lines of `.txt` lists, relative to the list."""
    found: list[Path] = []
    for each in given:
        path = Path(each)
        if path.suffix == ".txt" and path.is_file():
            lines = [line.strip() for line in path.read_text().splitlines()]
            found += [path.parent / line for line in lines if line and not line.startswith("#")]
        elif path.exists():
            found.append(path)
        else:
            matches = sorted(glob.glob(str(each)))  # noqa: PTH207  a pattern may be absolute
            if not matches:
                raise TrainingError(f"{each} is no scene, no list of scenes, and matches nothing")
            found += [Path(match) for match in matches if Path(match).is_dir()]
    return list(dict.fromkeys(found))


def open_scenes(paths: Sequence[Path]) -> list[Scene]:
    """Scenes under their environments' names; two of one name would be taken for one place."""
    scenes = [load_scene(path) for path in paths]
    names: dict[str, Path | None] = {}
    for scene in scenes:
        if scene.name in names:
            raise TrainingError(f"{names[scene.name]} and {scene.folder} have the same name; rename one")
        names[scene.name] = scene.folder
    return scenes


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
        places.append(Environment(views, np.flatnonzero(_has_points(views[0]))))
    return places


def estimate(scenes: Sequence[Scene], backbone: Backbone, settings: Settings, copies: int = 0) -> int:
    """Bytes of cache that scenes and their copies take together."""
    return sum((1 + copies) * cache_bytes(scene, backbone, settings.resolution) for scene in scenes)


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
    """One place as two: frames that look at one end of it are kept for validation.

    Neighbouring frames see the same things, so a split by time or at random would test on what was trained on. Frames
    are ordered by where they look, along the place's longest direction.
    """
    scene = environment.scenes[0]
    centres = np.array([np.nanmedian(scene.points[i].reshape(-1, 3), axis=0) for i in environment.usable])
    centred = centres - centres.mean(axis=0)
    longest = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = environment.usable[np.argsort(centred @ longest)]
    held_out = round(HELD_OUT * len(order))
    if held_out < 4 or len(order) - held_out < 4:
        raise TrainingError(f"{environment.name} has {len(order)} usable frames, too few to split; name --val scenes")
    return Environment(environment.scenes, np.sort(order[:-held_out])), Environment(
        environment.scenes, np.sort(order[-held_out:])
    )


def _has_points(scene: CachedScene | LiveScene) -> Bool[ndarray, " frames"]:
    return np.any(np.isfinite(scene.points.reshape(len(scene.points), -1)), axis=1)
