"""What every benchmark is, and what a run of one reached: rows and curves for its tables and figures."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.figures import Line
from locus.evaluation.methods import Competitor, Unavailable
from locus.evaluation.scene_patches import OpenedScene, ScenePatches
from locus.evaluation.table import Cell, Row, Table
from locus.model.head_kinds import KAPPA, TAU
from locus.scenes import Scene, SceneReading
from locus.scenes.fingerprint import scene_fingerprint
from locus.scenes.scene_pictures import Picture


class Benchmark(ABC):
    """A protocol (its fields are all of its options), what is measured, and how that is shown."""

    name: ClassVar[str]
    together: ClassVar[bool] = False
    """Whether all scenes are measured at once, and not one after the other."""

    def load(self, path: Path, reading: SceneReading) -> Scene:
        """A scene as it is measured; a published protocol reads a layout of its own."""
        return reading.load(path)

    def state(self, scene: Any, /) -> str:
        """A hash of all that is measured of a scene, so that finished parts can be told."""
        return scene_fingerprint(scene)

    def given(self, opened: OpenedScene) -> Any:
        """What `measure` is told of a scene: its patches, unless the frames alone are enough."""
        return opened.patches

    @abstractmethod
    def measure(self, method: Any, patches: Any, /) -> dict[str, Any]:
        """What one method reaches on the patches of one scene, or of a list of all (`together`), in plain values."""

    @abstractmethod
    def tables(self, outcome: "Outcome") -> list[Table]:
        """For an outcome with at least one part."""

    def figures(self, outcome: "Outcome") -> list[tuple[str, str]]:
        """(caption, SVG)."""
        return []

    def pictures(self, methods: Sequence[Competitor], patches: ScenePatches) -> list[tuple[str, Picture]]:
        """(caption, picture) of one scene."""
        return []

    def check(self, patches: ScenePatches) -> None:  # noqa: B027  most have nothing to check
        """Refuse a scene that could not be measured; asked where all scenes are measured together."""

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        """Words on the command line that mean a method for this benchmark alone."""
        return {}

    def fingerprint(self) -> Any:
        """All that tells what is measured, in plain values."""
        return asdict(self)  # ty: ignore[invalid-argument-type]  every benchmark is a dataclass


@dataclass(frozen=True, kw_only=True)
class Sampled(Benchmark):
    """A benchmark of a part of each scene that is drawn at random, the same for every method."""

    seed: int = 0
    """Of everything that is drawn at random."""


@dataclass(frozen=True, kw_only=True)
class SampledSpots(Sampled):
    """Such a benchmark, at one radius."""

    radius: float = 0.2
    """Metres within which two points are the same spot; of a model's scales, the nearest to it is asked."""


@dataclass(frozen=True, kw_only=True)
class SampledRanking(Sampled):
    """Such a benchmark by the paper's objective."""

    kappa: float = KAPPA
    """Patches further than this many radii from a landmark are "don't care"."""
    tau: float = TAU
    """Temperature of the smooth ranking."""


@dataclass(frozen=True)
class MeasuredPart:
    """What one method reached on one scene, or on all together."""

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
    parts: Sequence[MeasuredPart]
    failures: Mapping[str, str]
    """What could not be measured, each with the reason."""
    expected: int = 0
    """How many parts each method should have."""
    opened: Sequence[OpenedScene] = ()

    def of(self, method: str, group: str = "unseen") -> list[MeasuredPart]:
        return [part for part in self.parts if part.method == method and part.group == group]

    def measured(self, method: str, key: str) -> list[Any]:
        """The lists that all parts of a method have under one key, as one list."""
        return [each for part in self.of(method) for each in part.measured[key]]

    def label(self, method: Competitor) -> str:
        """Its own, marked if it lacks a scene: a mean over fewer scenes is another figure."""
        count = sum(part.method == method.label for part in self.parts)
        return method.label if count >= self.expected else f"{method.label} ({count} of {self.expected} scenes)"

    def rows(self, cells: Callable[[Competitor], Sequence[Cell] | None]) -> list[Row]:
        """One for every method, in order: its cells, no row if it has None, the reason if it is not available."""
        made = []
        for method in self.methods:
            if isinstance(method, Unavailable):
                made.append(Row(method.label, [f"not available: {method.reason}"], "unavailable"))
            elif (given := cells(method)) is not None:
                label = self.label(method)
                whole = "bound" if method.bound else "measured"
                made.append(Row(label, given, whole if label == method.label else "partial"))
        return made

    def rows_of_kinds(
        self, kinds: Sequence[str], cells: Callable[[Competitor, str], Sequence[Cell] | None]
    ) -> list[Row]:
        """Several for every method, one of each kind."""
        by_kind = [self.rows(lambda method, kind=kind: cells(method, kind)) for kind in kinds]
        made = []
        for same in zip(*by_kind, strict=True):
            if same[0].kind == "unavailable":
                made.append(same[0])
            else:
                made += [replace(row, label=f"{row.label}, {kind}") for row, kind in zip(same, kinds, strict=True)]
        return made

    def lines(self, x: Float[ndarray, " n"], y: Callable[[Competitor], Float[ndarray, " n"] | None]) -> list[Line]:
        """A curve for every method that has one, bounds dashed."""
        methods = (method for method in self.methods if isinstance(method, Competitor) and self.of(method.label))
        found = ((method, y(method)) for method in methods)
        return [Line(self.label(method), x, values, method.bound) for method, values in found if values is not None]

    @property
    def scenes(self) -> list[str]:
        return list(dict.fromkeys(part.scene for part in self.parts if part.group == "unseen"))

    def pictures(self) -> list[tuple[str, Picture]]:
        """Of the first unseen scene that every method was measured on; no picture rather than no report."""
        usable = [method for method in self.methods if isinstance(method, Competitor)]
        for each in self.opened:
            measured = {part.method for part in self.parts if part.scene == each.scene.name}
            if each.group == "unseen" and measured >= {method.label for method in usable}:
                return self.benchmark.pictures(usable, each.patches)
        return []

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
