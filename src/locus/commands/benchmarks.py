"""The benchmarks of the command `eval`, each with its options."""

from dataclasses import dataclass, field
from functools import reduce
from inspect import getdoc
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro
from rich.console import Console
from rich.markup import escape

from locus.commands.options import Reading, some
from locus.errors import LocusError
from locus.evaluation import ablation
from locus.evaluation.correspondence import Correspondence
from locus.evaluation.landmark_recall import LandmarkRecall
from locus.evaluation.localization import Localization
from locus.evaluation.methods import ModelMethod
from locus.evaluation.object_groups import ObjectGroups
from locus.evaluation.outcome import Benchmark, Outcome
from locus.evaluation.pose import RelativePoses, write_template
from locus.evaluation.protocols.dense_layouts import Navi, Probe3D
from locus.evaluation.protocols.indoor_six import Indoor6
from locus.evaluation.protocols.listed_pairs import MegaDepth1500, ScanNet1500
from locus.evaluation.protocols.paper import paper_tables
from locus.evaluation.protocols.place_layouts import BaiduMall, SeventeenPlaces, UtmPlaces
from locus.evaluation.protocols.rio_ten import Rio10
from locus.evaluation.protocols.seven_scenes import SevenScenes
from locus.evaluation.protocols.sparse_planes import SparsePlanes
from locus.evaluation.protocols.twelve_scenes import TwelveScenes
from locus.evaluation.regions import Regions
from locus.evaluation.report import Shown, write_report, write_results
from locus.evaluation.retrieval import Retrieval
from locus.evaluation.reuse import Reuse
from locus.evaluation.runner import run
from locus.evaluation.segmentation import Segmentation
from locus.evaluation.specs import MethodOptions, methods_of
from locus.evaluation.table import Style, rendered
from locus.evaluation.yardstick import Yardstick
from locus.model import LoCUS
from locus.scenes.collection import find_scenes
from locus.scenes.load import AS_STATED
from locus.training import train
from locus.training.settings_grid import variants_of

AnyBenchmark = TypeVar("AnyBenchmark", bound=Benchmark)


@dataclass(frozen=True, kw_only=True)
class Evaluate(Generic[AnyBenchmark]):
    """A benchmark: the options that every one has, and its own."""

    scenes: Annotated[tuple[str, ...], tyro.conf.Positional, some("SCENE")]
    """Folders of scenes, globs, or .txt files that list folders; none of them trained on."""
    methods: tuple[str, ...]
    """Runs' folders and models, also as they were untrained: NAME[+pca|+whitened]; backbones:
    NAME[@LAYER][+pca|+whitened|+full]; classic, truth, random."""
    fit: tuple[str, ...] = ()
    """Training scenes that PCA is fitted to."""
    resolution: int = 252
    """Pixels of an image's shorter side for bare backbones; trained models have their own."""
    json: Path | None = None
    """Write all results to this file."""
    report: Path | None = None
    """Write a page with tables, curves and pictures to this folder, and the tables as Markdown, LaTeX and JSON."""
    style: Style = "text"
    """How tables are printed."""
    fresh: tyro.conf.FlagCreatePairsOff[bool] = False
    """Measure again what was finished before."""
    cache: Path | None = None
    """Where the frozen backbones' tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE."""
    reading: Reading = AS_STATED
    protocol: Annotated[AnyBenchmark, tyro.conf.arg(name="")]
    train: tuple[str, ...] = field(default=(), init=False)  # an option of retrieval alone

    def unseen(self) -> list[Path]:
        found = find_scenes(self.scenes)
        if not found:
            raise LocusError("name the scenes to evaluate on")
        return found

    def run(self) -> int:
        """Measure, print the tables, and write what was asked for; 1 if something could not be measured."""
        benchmark = self.protocol
        options = MethodOptions(self.fit, self.resolution, self.cache, self.reading, progress=True)
        methods = methods_of(self.methods, options, benchmark.words(self.methods))
        scenes = {"unseen": self.unseen(), "training": find_scenes(self.train)}
        outcome = run(benchmark, methods, scenes, reading=self.reading, fresh=self.fresh, progress=True)
        shown = Shown([])
        if outcome.parts:
            pictures = [] if self.report is None else outcome.pictures()
            shown = Shown(benchmark.tables(outcome), benchmark.figures(outcome), pictures)
        return show(outcome, shown, self.style, self.json, self.report)


def show(outcome: Outcome, shown: Shown, style: Style, json: Path | None, report: Path | None) -> int:
    """Print tables, write what was asked for, and say what could not be measured; 1 if there is anything."""
    console = Console(soft_wrap=True, highlight=False)
    for table in shown.tables:
        console.print(rendered(table, style), markup=False)
        console.print()
    if json is not None:
        write_results(json, outcome, shown.tables)
        console.print(f"Results: {escape(str(json))}")
    if report is not None:
        console.print(f"Report: {escape(str(write_report(report, outcome, shown)))}")
    for what, why in outcome.failures.items():
        Console(stderr=True, soft_wrap=True).print(f"[red]not measured:[/red] {escape(what)}: {escape(why)}")
    return 1 if outcome.failures else 0


@dataclass(frozen=True, kw_only=True)
class EvaluateRetrieval(Evaluate[Retrieval]):
    """Table 1, on training scenes as well if they are named."""

    train: tuple[str, ...] = ()
    """Training scenes to evaluate on as well, in columns of their own."""


@dataclass(frozen=True, kw_only=True)
class EvaluatePose(Evaluate[RelativePoses]):
    """Table 3, or only its pairs."""

    template: Path | None = None
    """Only write the pairs to this file, for a system run elsewhere to fill in: then it is predictions:FILE."""

    def run(self) -> int:
        if self.template is None:
            return super().run()
        count = write_template(self.template, self.protocol, self.unseen(), self.reading)
        Console(soft_wrap=True).print(f"Wrote {count} pairs, without poses, to {escape(str(self.template))}")
        return 0


@dataclass(frozen=True)
class EvaluateAblate:
    """Train a grid of settings and evaluate each on the same unseen scenes.

    Trainings that are finished are not done again.
    """

    scenes: Annotated[tuple[str, ...], tyro.conf.Positional, some("SCENE")]
    """Scenes to evaluate on, that neither trained nor chose a checkpoint."""
    train: tuple[str, ...]
    """Scenes to train on."""
    val: tuple[str, ...]
    """Scenes that choose each training's best checkpoint."""
    vary: tuple[str, ...]
    """What to vary: name=value,value for any setting of `locus train` (kappa, radii, tau, head, layer, seed, ...), or
    scenes=2,4,8: the first so many of the training scenes."""
    out: Path
    """The trainings' folders and the report are written here."""
    base: tuple[str, ...] = ()
    """What all trainings have in common, where it is not the default: name=value."""
    protocol: Annotated[Retrieval, tyro.conf.arg(name="")] = Retrieval()  # noqa: RUF009  frozen
    cache: Path | None = None
    """Where the frozen backbones' tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE."""
    reading: Reading = AS_STATED

    def run(self) -> int:
        given, variants = find_scenes(self.train), variants_of(self.base, self.vary)
        for variant in variants:
            if variant.scenes is not None and not 1 <= variant.scenes <= len(given):
                raise LocusError(
                    f"scenes={variant.scenes}: --train names {len(given)} scenes to take the first ones of"
                )
        methods, varied = [], {}
        for variant in variants:
            folder = self.out / variant.name
            options = {"val": self.val, "cache": self.cache, "reading": self.reading, "progress": True}
            if not train(given[: variant.scenes], folder, variant.settings, **options).finished:
                raise KeyboardInterrupt  # the same command goes on from here
            methods.append(ModelMethod(variant.name, LoCUS.from_pretrained(folder), self.cache))
            varied[variant.name] = variant.varied
        outcome = run(self.protocol, methods, {"unseen": find_scenes(self.scenes)}, reading=self.reading, progress=True)
        shown = Shown([])
        if outcome.parts:
            shown = Shown(ablation.tables(outcome, varied), ablation.figures(outcome, varied))
        return show(outcome, shown, "text", None, self.out)


@dataclass(frozen=True, kw_only=True)
class EvaluatePaper:
    """Make the paper's three tables in its own protocol, from Matterport3D; deviations stand below each.

    PCA is fitted to the training houses. Needs labels, and SparsePlanes' pairs (docs/protocols.md).
    """

    matterport: Path
    """A folder of houses as Matterport3D unpacks, with train_scenes.txt, val_scenes.txt and test_scenes.txt."""
    pairs: Path
    """SparsePlanes' folder: mp3d_planercnn_json/cached_set_test.json and rgb/."""
    methods: tuple[str, ...]
    """As for the other benchmarks; words of one table alone are left out of the others."""
    batches: int = 4
    """Batches of 16 images of each house, for Table 1."""
    resolution: int = 252
    """Pixels of an image's shorter side for bare backbones."""
    report: Path | None = None
    """Write a page for each table to this folder."""
    style: Style = "text"
    """How tables are printed."""
    fresh: tyro.conf.FlagCreatePairsOff[bool] = False
    """Measure again what was finished before."""
    cache: Path | None = None
    """Where the frozen backbones' tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE."""

    def run(self) -> int:
        parts = paper_tables(self.matterport, self.pairs, self.batches)
        alone = {word for part in parts for word in part.benchmark.words(self.methods)} - {"truth", "random"}
        options = MethodOptions(parts[0].scenes["training"], self.resolution, self.cache, progress=True)
        worst = 0
        for part in parts:
            benchmark = part.benchmark
            own = benchmark.words(self.methods)
            words = [word for word in self.methods if word in own or word not in alone]
            outcome = run(benchmark, methods_of(words, options, own), part.scenes, fresh=self.fresh, progress=True)
            shown = Shown(part.tables(outcome), benchmark.figures(outcome)) if outcome.parts else Shown([])
            folder = None if self.report is None else self.report / benchmark.name
            worst = max(worst, show(outcome, shown, self.style, None, folder))
        return worst


def _command(benchmark: type[Benchmark], options: Any = None) -> Any:
    """Of a benchmark, with the options that every one has, or with more."""
    named = tyro.conf.subcommand(benchmark.name, description=getdoc(benchmark))
    return Annotated[options or Evaluate[benchmark], named]  # ty: ignore[invalid-type-form]


PUBLISHED = (
    SevenScenes,
    TwelveScenes,
    Indoor6,
    Rio10,
    ScanNet1500,
    MegaDepth1500,
    SparsePlanes,
    Probe3D,
    Navi,
    UtmPlaces,
    BaiduMall,
    SeventeenPlaces,
)
Published: Any = reduce(or_, map(_command, PUBLISHED))


@dataclass(frozen=True)
class EvaluateProtocol:
    """Measure by a published protocol, on data that you have downloaded (docs/protocols.md)."""

    which: Annotated[Published, tyro.conf.arg(name="")]

    def run(self) -> int:
        return self.which.run()


TASKS = (
    _command(Retrieval, EvaluateRetrieval),
    _command(Correspondence),
    _command(RelativePoses, EvaluatePose),
    *map(_command, (Segmentation, Localization, LandmarkRecall, Regions, ObjectGroups, Reuse, Yardstick)),
    Annotated[EvaluateAblate, tyro.conf.subcommand("ablate")],
    Annotated[EvaluateProtocol, tyro.conf.subcommand("protocol")],
    Annotated[EvaluatePaper, tyro.conf.subcommand("paper")],
)
Task: Any = reduce(or_, TASKS)


def evaluate(task: Annotated[Task, tyro.conf.arg(name="")]) -> int:
    """Make the paper's tables, for any set of methods, on any posed data.

    Finished parts are kept and skipped when the command is run again. Exits with 1 if a scene could not be measured.
    """
    return task.run()
