"""Every method on every scene: finished parts are kept and skipped, and one that fails does not lose the others."""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from locus.errors import LocusError
from locus.evaluation.methods import Competitor, Unavailable
from locus.evaluation.opened import Place, first_size, open_place
from locus.evaluation.table import Cell, Row
from locus.features.cache import scene_fingerprint
from locus.files import atomic, cache_folder
from locus.progress import track
from locus.scenes import Scene
from locus.scenes.collection import open_scenes
from locus.scenes.load import AS_STATED, SceneReading

VERSION = 3  # of what is computed: counted up when a finished part would come out differently now


@runtime_checkable
class Benchmark(Protocol):
    """A protocol (its fields are all that it can be told), and what it measures."""

    @property
    def name(self) -> str: ...

    def measure(self, method: Any, place: Place) -> dict[str, Any]:
        """Of one method on one place, in plain values that JSON can hold."""
        ...


@dataclass(frozen=True)
class Part:
    """What one method reached on one scene."""

    method: str
    scene: str
    group: str
    """`unseen`, or `training` for scenes that were trained on."""
    measured: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A benchmark done."""

    benchmark: Any
    methods: Sequence[Competitor | Unavailable]
    parts: Sequence[Part]
    failures: Mapping[str, str]
    """What could not be measured, each with the reason."""
    places: Sequence[str] = ()
    """The scenes, of all groups, that each method should have a part of."""

    def of(self, method: str, group: str = "unseen") -> list[Part]:
        return [part for part in self.parts if part.method == method and part.group == group]

    def label(self, method: Competitor) -> str:
        """Its own, marked if it lacks a place: a mean over fewer places is another figure."""
        count = sum(part.method == method.label for part in self.parts)
        lacks = count < len(self.places)
        return f"{method.label} ({count} of {len(self.places)} places)" if lacks else method.label

    def row(self, method: Competitor, cells: Sequence[Cell]) -> Row:
        """A method's row of a table."""
        label = self.label(method)
        whole = "bound" if method.bound else "measured"
        return Row(label, cells, whole if label == method.label else "partial")

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(part.group for part in self.parts))

    @property
    def scenes(self) -> list[str]:
        return list(dict.fromkeys(part.scene for part in self.parts if part.group == "unseen"))

    @property
    def whole(self) -> list[str]:
        """Unseen scenes that every method has a part of."""
        labels = {method.label for method in self.methods if isinstance(method, Competitor)}
        return [scene for scene in self.scenes if labels <= {part.method for part in self.parts if part.scene == scene}]

    def json(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark.name,
            "protocol": {
                name: str(value) if isinstance(value, Path) else value for name, value in asdict(self.benchmark).items()
            },
            "methods": [
                {"label": each.label, "unavailable": each.reason}
                if isinstance(each, Unavailable)
                else {"label": each.label, "fingerprint": each.fingerprint}
                for each in self.methods
            ],
            "parts": [asdict(part) for part in self.parts],
            "failures": dict(self.failures),
        }


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
    for paths in scenes.values():
        _refuse_namesakes(paths, reading)
    usable = [method for method in methods if isinstance(method, Competitor)]
    folder = folder or cache_folder() / "evaluation"
    parts: list[Part] = []
    failures: dict[str, str] = {}
    steps = [(group, path, method) for group, paths in scenes.items() for path in paths for method in usable]
    places: dict[Path, Opened | LocusError] = {}
    sound: dict[tuple[str, Path], str] = {}
    for group, path, method in track(steps, benchmark.name, len(steps), progress):
        if path not in places:
            places = {path: _attempted(path, usable, reading)}  # only one at a time is kept
        place = places[path]
        if isinstance(place, LocusError):
            failures[str(path)] = str(place)
            continue
        sound[group, path] = place.scene.name
        finished = folder / benchmark.name / f"{_key(benchmark, method, place.scene, place.grid)}.json"
        try:
            measured = None if fresh else _read(finished)
            if measured is None:
                measured = benchmark.measure(method, place.place)
                _keep(finished, measured)
        except LocusError as error:
            if error is place.error:  # what is wrong with the scene itself is told once, and no method's lack
                failures[str(path)] = str(error)
                del sound[group, path]
            else:
                failures[f"{method.label} on {place.scene.name}"] = str(error)
            continue
        parts.append(Part(method.label, place.scene.name, group, measured))
    return Outcome(benchmark, methods, parts, failures, list(sound.values()))


def run_together(
    benchmark: Any,
    methods: Sequence[Competitor | Unavailable],
    scenes: Sequence[Path],
    *,
    reading: SceneReading = AS_STATED,
    folder: Path | None = None,
    fresh: bool = False,
    progress: bool = False,
) -> Outcome:
    """Measure every method on all scenes at once (`measure_together`); scenes that fail are told and left out."""
    _refuse_namesakes(scenes, reading)
    usable = [method for method in methods if isinstance(method, Competitor)]
    folder = folder or cache_folder() / "evaluation"
    places, parts, failures = [], [], {}
    for path in scenes:
        try:
            place = opened(path, usable, reading)
            benchmark.check(place.place)
            places.append(place)
        except LocusError as error:
            failures[str(path)] = str(error)
    for method in track(usable, benchmark.name, len(usable), progress):
        keys = [_key(benchmark, method, place.scene, place.grid) for place in places]
        finished = folder / benchmark.name / f"{hashlib.sha256(' '.join(keys).encode()).hexdigest()[:24]}.json"
        try:
            measured = None if fresh else _read(finished)
            if measured is None:
                measured = benchmark.measure_together(method, [place.place for place in places])
                _keep(finished, measured)
        except LocusError as error:
            failures[method.label] = str(error)
            continue
        parts.append(Part(method.label, ", ".join(place.scene.name for place in places), "unseen", measured))
    return Outcome(benchmark, methods, parts, failures)


class Opened:
    """A scene, whose frames are read only if a part is not finished."""

    def __init__(self, scene: Scene, grid: tuple[int, int] | None) -> None:
        self.scene = scene
        self.grid = grid
        self.error: LocusError | None = None
        """Why its frames cannot be used, once they have been read."""

    @cached_property
    def place(self) -> Place:
        if self.error is None:
            try:
                return open_place(self.scene, self.grid)
            except LocusError as error:
                self.error = error
        raise self.error


def opened(path: Path, methods: Sequence[Competitor | Unavailable], reading: SceneReading = AS_STATED) -> Opened:
    """A scene on the grid of the first method that has one: all methods are asked about the same patches."""
    scene = reading.load(path)
    size = first_size(scene)
    grids = (grid for method in methods if isinstance(method, Competitor) and (grid := method.grid(*size)))
    return Opened(scene, next(grids, None))


def _attempted(path: Path, methods: Sequence[Competitor], reading: SceneReading) -> Opened | LocusError:
    try:
        return opened(path, methods, reading)
    except LocusError as error:
        return error


def _refuse_namesakes(paths: Sequence[Path], reading: SceneReading) -> None:
    """Two scenes of one name would be taken for one place; one that cannot be opened is told when its turn comes."""
    sound = []
    for path in paths:
        with suppress(LocusError):
            reading.load(path)
            sound.append(path)
    open_scenes(sound, reading)


def _key(benchmark: Any, method: Competitor, scene: Scene, grid: tuple[int, int] | None) -> str:
    told = {name: _content(value) for name, value in asdict(benchmark).items()}
    parts = [VERSION, benchmark.name, told, method.fingerprint, scene_fingerprint(scene), grid]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def _content(value: Any) -> Any:
    """A file stands for what is in it."""
    if not isinstance(value, Path):
        return value
    return hashlib.sha256(value.read_bytes()).hexdigest() if value.is_file() else str(value)


def _read(finished: Path) -> dict[str, Any] | None:
    """A part measured before, if it is there whole."""
    try:
        return json.loads(finished.read_text())["measured"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        warnings.warn(f"{finished} is damaged; its part is measured again", stacklevel=2)
        return None


def _keep(finished: Path, measured: dict[str, Any]) -> None:
    with atomic(finished) as file:
        file.write_text(json.dumps({"measured": measured}))
