"""Every method on every scene: finished parts are kept and skipped, and one that fails does not lose the others."""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from locus.errors import LocusError
from locus.evaluation.methods import Competitor, Unavailable
from locus.evaluation.outcome import Benchmark, MeasuredPart, Outcome
from locus.evaluation.scene_patches import OpenedScene, first_size
from locus.files import cache_folder, load_json, save_json
from locus.progress import track
from locus.scenes.collection import refuse_namesakes
from locus.scenes.load import AS_STATED, SceneReading

VERSION = 9  # of what is computed: counted up when a finished part would come out differently now


def run(
    benchmark: Benchmark,
    methods: Sequence[Competitor | Unavailable],
    scenes: Mapping[str, Sequence[Path]],
    *,
    reading: SceneReading = AS_STATED,
    folder: Path | None = None,
    fresh: bool = False,
    progress: bool = False,
) -> Outcome:
    """Measure every method on every scene of every group.

    Args:
        scenes: Folders, by group.
        reading: How to read the scenes.
        folder: Where finished parts are kept. By default in LoCUS's cache folder.
        fresh: Measure again what is finished.
    """
    usable = [method for method in methods if isinstance(method, Competitor)]
    folder = (folder or cache_folder() / "evaluation") / benchmark.name
    failures: dict[str, str] = {}
    opened = []
    for group, paths in scenes.items():
        opened += _opened(benchmark, group, paths, reading, usable, failures)
    units = [opened] if benchmark.together and opened else [[each] for each in opened]
    steps = [(unit, method) for unit in units for method in usable]
    parts: list[MeasuredPart] = []
    for unit, method in track(steps, benchmark.name, len(steps), progress):
        name = ", ".join(each.scene.name for each in unit)
        finished = folder / f"{_key(benchmark, method, unit)}.json"
        try:
            measured = None if fresh else _read(finished)
            if measured is None:
                told = [benchmark.given(each) for each in unit]
                measured = benchmark.measure(method, told if benchmark.together else told[0])
                save_json(finished, {"measured": measured})
        except LocusError as error:
            # What is wrong with the scene itself is told once, and counts against no method.
            broken = [str(each.path) for each in unit if each.error is error]
            failures[broken[0] if broken else f"{method.label} on {name}"] = str(error)
            continue
        parts.append(MeasuredPart(method.label, name, unit[0].group, measured))
    expected = sum(all(each.error is None for each in unit) for unit in units)
    return Outcome(benchmark, methods, parts, failures, expected, opened)


def _opened(
    benchmark: Benchmark,
    group: str,
    paths: Sequence[Path],
    reading: SceneReading,
    methods: Sequence[Competitor],
    failures: dict[str, str],
) -> list[OpenedScene]:
    """Scenes on the grid of the first method that has one: all methods are asked about the same patches."""
    found = []
    for path in paths:
        try:
            scene = benchmark.load(path, reading)
            size = first_size(scene)
            grids = (grid for method in methods if (grid := method.grid(*size)))
            opened = OpenedScene(group, path, scene, next(grids, None), benchmark.state)
            if benchmark.together:
                benchmark.check(opened.patches)
            found.append(opened)
        except LocusError as error:
            failures[str(path)] = str(error)
    refuse_namesakes([each.scene for each in found])
    return found


def _key(benchmark: Benchmark, method: Competitor, unit: Sequence[OpenedScene]) -> str:
    scenes = [(each.fingerprint, each.grid) for each in unit]
    told = [VERSION, benchmark.name, benchmark.fingerprint(), method.fingerprint, scenes]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:24]


def _read(finished: Path) -> dict[str, Any] | None:
    """A part measured before, if it is there whole."""
    try:
        return load_json(finished)["measured"]
    except FileNotFoundError:
        return None
    except (LocusError, KeyError):
        warnings.warn(f"{finished} is damaged; its part is measured again", stacklevel=2)
        return None
