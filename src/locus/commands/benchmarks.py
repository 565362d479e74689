"""The benchmarks of the command `eval`, each with what it can be told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable

import tyro
from rich.console import Console
from rich.markup import escape

from locus.errors import LocusError
from locus.evaluation import (
    ablation,
    correspondence,
    landmark_recall,
    localization,
    pose,
    regions,
    retrieval_tables,
    reuse,
    segmentation_tables,
)
from locus.evaluation.correspondence import Correspondence
from locus.evaluation.landmark_recall import LandmarkRecall
from locus.evaluation.localization import Localization
from locus.evaluation.methods import Competitor, ModelMethod, Unavailable
from locus.evaluation.pose import RelativePoses, write_template
from locus.evaluation.regions import Regions
from locus.evaluation.report import Shown, results_json, write_report
from locus.evaluation.retrieval import Retrieval
from locus.evaluation.retrieval_pictures import pictures as retrieval_pictures
from locus.evaluation.reuse import Reuse
from locus.evaluation.runner import Benchmark, Outcome, opened, run, run_together
from locus.evaluation.segmentation import Segmentation
from locus.evaluation.segmentation_pictures import pictures as segmentation_pictures
from locus.evaluation.specs import Means, mask_words, methods_of, pose_words
from locus.evaluation.table import Style, Table, rendered
from locus.evaluation.true_map import TrueMap
from locus.files import atomic
from locus.model import LoCUS
from locus.scenes.collection import find_scenes
from locus.scenes.scene_pictures import Picture
from locus.training import train
from locus.training.variants import variants_of

Compared = list[Competitor | Unavailable]
Pictures = Sequence[tuple[str, Picture]]


@runtime_checkable
class Views(Protocol):
    """A module that makes tables and curves of an outcome."""

    def tables(self, outcome: Outcome) -> list[Table]: ...
    def figures(self, outcome: Outcome) -> list[tuple[str, str]]: ...


@dataclass(frozen=True)
class Common:
    """What every benchmark is told."""

    scenes: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCENE...")]
    """Folders of scenes, globs, or .txt files that list folders; none of them trained on."""
    methods: tuple[str, ...]
    """Runs' folders, models, and backbones: NAME[@LAYER][+pca|+whitened|+full]; also classic, truth, random."""
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

    def compared(self, more: Mapping[str, Callable[[], Competitor]] | None = None) -> Compared:
        return methods_of(self.methods, Means(self.fit, self.resolution, self.cache, progress=True), more)

    def unseen(self) -> list[Path]:
        found = find_scenes(self.scenes)
        if not found:
            raise LocusError("name the scenes to evaluate on")
        return found

    def outcome(self, benchmark: Benchmark, methods: Compared, training: Sequence[str] = ()) -> Outcome:
        scenes = {"unseen": self.unseen(), "training": find_scenes(training)}
        return run(benchmark, methods, scenes, fresh=self.fresh, progress=True)

    def pictures(
        self, draw: Callable[..., Pictures], benchmark: Benchmark, methods: Compared, outcome: Outcome
    ) -> Pictures:
        """Of the first scene that every method was measured on, if there is one and a report to show them in."""
        whole = outcome.whole
        for path in self.unseen() if self.report is not None and whole else []:
            if str(path) not in outcome.failures and (shown := opened(path, methods)).scene.name in whole:
                return draw(benchmark, methods, shown.place)
        return []

    def show(self, outcome: Outcome, views: Views, pictures: Pictures = ()) -> int:
        """Print the tables and write what was asked for; 1 if something could not be measured."""
        shown = Shown(views.tables(outcome), views.figures(outcome), pictures) if outcome.parts else Shown([])
        console = Console(soft_wrap=True, highlight=False)
        for table in shown.tables:
            console.print(rendered(table, self.style), markup=False)
            console.print()
        if self.json is not None:
            with atomic(self.json) as file:
                file.write_text(results_json(outcome, shown.tables))
            console.print(f"Results: {escape(str(self.json))}")
        if self.report is not None:
            console.print(f"Report: {escape(str(write_report(self.report, outcome, shown)))}")
        return told(outcome)


def told(outcome: Outcome) -> int:
    """Say what could not be measured; 1 if there is anything."""
    for what, why in outcome.failures.items():
        Console(stderr=True, soft_wrap=True).print(f"[red]not measured:[/red] {escape(what)}: {escape(why)}")
    return 1 if outcome.failures else 0


RETRIEVAL, CORRESPONDENCE, POSE, SEGMENTATION = Retrieval(), Correspondence(), RelativePoses(), Segmentation()
LOCALIZATION, REUSE = Localization(), Reuse()
LANDMARKS, REGIONS = LandmarkRecall(), Regions()
CommonOptions = Annotated[Common, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class EvaluateRetrieval:
    """Does a landmark's feature find the patches that show the same spot (the paper's Table 1)?

    V-Smooth-AP and exact AP over every patch of fixed, seeded batches: over all pairs, and cross-view, without the
    pairs of one frame, which are easy and dominate.
    """

    common: CommonOptions
    protocol: Annotated[Retrieval, tyro.conf.arg(name="")] = RETRIEVAL
    train: tuple[str, ...] = ()
    """Training scenes to evaluate on as well, in columns of their own."""

    def run(self) -> int:
        methods = self.common.compared()
        outcome = self.common.outcome(self.protocol, methods, self.train)
        pictures = self.common.pictures(retrieval_pictures, self.protocol, methods, outcome)
        return self.common.show(outcome, retrieval_tables, pictures)


@dataclass(frozen=True)
class EvaluateCorrespondence:
    """Does the most similar patch of another view lie where the spot is (the protocol of Probe3D)?

    The share of matches within 5, 10 and 20 pixels of where depth and poses put them, by how much the view turns.
    """

    common: CommonOptions
    protocol: Annotated[Correspondence, tyro.conf.arg(name="")] = CORRESPONDENCE

    def run(self) -> int:
        outcome = self.common.outcome(self.protocol, self.common.compared())
        return self.common.show(outcome, correspondence)


@dataclass(frozen=True)
class EvaluatePose:
    """How well is the motion between two frames found (the paper's Table 3)?

    Further methods: sift-ratio, superpoint-nn, superpoint-fginn, superpoint-lightglue, loftr, and predictions:FILE, the
    answers of a system run elsewhere (docs/evaluation.md).
    """

    common: CommonOptions
    protocol: Annotated[RelativePoses, tyro.conf.arg(name="")] = POSE
    template: Path | None = None
    """Only write the pairs to this file, for a system run elsewhere to fill in: then it is predictions:FILE."""

    def run(self) -> int:
        if self.template is not None:
            count = write_template(self.template, self.protocol, self.common.unseen())
            Console(soft_wrap=True).print(f"Wrote {count} pairs, without poses, to {escape(str(self.template))}")
            return 0
        outcome = self.common.outcome(self.protocol, self.common.compared(pose_words(self.common.methods)))
        return self.common.show(outcome, pose)


@dataclass(frozen=True)
class EvaluateSegmentation:
    """How well do a linear probe's labels fit, stuff by class and every thing by itself (the paper's Table 2)?

    Needs labelled scenes. Further methods: mask2former, mask2former+oracle, and predictions:FOLDER, with or without
    +oracle: masks made elsewhere (docs/evaluation.md).
    """

    common: CommonOptions
    protocol: Annotated[Segmentation, tyro.conf.arg(name="")] = SEGMENTATION

    def run(self) -> int:
        methods = self.common.compared(mask_words(self.common.methods))
        outcome = self.common.outcome(self.protocol, methods)
        pictures = self.common.pictures(segmentation_pictures, self.protocol, methods, outcome)
        return self.common.show(outcome, segmentation_tables, pictures)


@dataclass(frozen=True)
class EvaluateLocalization:
    """Where were the frames taken that a map was not made from?

    The share localized to within 5 cm and 5°, up to 5 m and 30°, with depth and by colour alone. With several scenes
    also: frames of one in the maps of others, which should answer "not here", and in one map of all.
    """

    common: CommonOptions
    protocol: Annotated[Localization, tyro.conf.arg(name="")] = LOCALIZATION

    def run(self) -> int:
        methods, scenes = self.common.compared({"truth": TrueMap}), self.common.unseen()
        outcome = run_together(self.protocol, methods, scenes, fresh=self.common.fresh, progress=True)
        return self.common.show(outcome, localization)


@dataclass(frozen=True)
class EvaluateLandmarks:
    """Are landmarks found again in views that took no part in choosing them, more often than random spots?"""

    common: CommonOptions
    protocol: Annotated[LandmarkRecall, tyro.conf.arg(name="")] = LANDMARKS

    def run(self) -> int:
        methods = self.common.compared({"truth": TrueMap})
        return self.common.show(self.common.outcome(self.protocol, methods), landmark_recall)


@dataclass(frozen=True)
class EvaluateRegions:
    """Is a spot, or a marked thing, found in other views, and how well do the regions fit? Needs labelled scenes."""

    common: CommonOptions
    protocol: Annotated[Regions, tyro.conf.arg(name="")] = REGIONS

    def run(self) -> int:
        methods, scenes = self.common.compared(), self.common.unseen()
        outcome = run_together(self.protocol, methods, scenes, fresh=self.common.fresh, progress=True)
        return self.common.show(outcome, regions)


@dataclass(frozen=True)
class EvaluateReuse:
    """Does a landmark's embedding serve in other places too? Needs several scenes.

    AP of the same class in another place (labelled scenes), and how many other places an embedding serves, against κ.
    """

    common: CommonOptions
    protocol: Annotated[Reuse, tyro.conf.arg(name="")] = REUSE

    def run(self) -> int:
        methods, scenes = self.common.compared(), self.common.unseen()
        outcome = run_together(self.protocol, methods, scenes, fresh=self.common.fresh, progress=True)
        return self.common.show(outcome, reuse)


@dataclass(frozen=True)
class EvaluateAblate:
    """Train a grid of settings and evaluate each on the same unseen places.

    Trainings that are finished are not done again.
    """

    scenes: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCENE...")]
    """Places to evaluate on, that neither trained nor chose a checkpoint."""
    train: tuple[str, ...]
    """Places to train on."""
    val: tuple[str, ...]
    """Places that choose each training's best checkpoint."""
    vary: tuple[str, ...]
    """What to vary: name=value,value for any setting of `locus train` (kappa, radii, tau, head, layer, ...)."""
    out: Path
    """The trainings' folders and the report are written here."""
    base: tuple[str, ...] = ()
    """What all trainings have in common, where it is not the default: name=value."""
    protocol: Annotated[Retrieval, tyro.conf.arg(name="")] = RETRIEVAL
    cache: Path | None = None
    """Where the frozen backbones' tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE."""

    def run(self) -> int:
        methods, varied = [], {}
        for variant in variants_of(self.base, self.vary):
            folder = self.out / variant.name
            train(self.train, folder, variant.settings, val=self.val, cache=self.cache, progress=True)
            methods.append(ModelMethod(variant.name, LoCUS.from_pretrained(folder), self.cache))
            varied[variant.name] = variant.varied
        outcome = run(self.protocol, methods, {"unseen": find_scenes(self.scenes)}, progress=True)
        shown = Shown([])
        if outcome.parts:
            shown = Shown(ablation.tables(outcome, varied), ablation.figures(outcome, varied))
        console = Console(soft_wrap=True, highlight=False)
        for table in shown.tables:
            console.print(rendered(table), markup=False)
        console.print(f"Report: {escape(str(write_report(self.out, outcome, shown)))}")
        return told(outcome)


Task = (
    Annotated[EvaluateRetrieval, tyro.conf.subcommand("retrieval")]
    | Annotated[EvaluateCorrespondence, tyro.conf.subcommand("correspondence")]
    | Annotated[EvaluatePose, tyro.conf.subcommand("pose")]
    | Annotated[EvaluateSegmentation, tyro.conf.subcommand("segmentation")]
    | Annotated[EvaluateLocalization, tyro.conf.subcommand("localization")]
    | Annotated[EvaluateLandmarks, tyro.conf.subcommand("landmarks")]
    | Annotated[EvaluateRegions, tyro.conf.subcommand("regions")]
    | Annotated[EvaluateReuse, tyro.conf.subcommand("reuse")]
    | Annotated[EvaluateAblate, tyro.conf.subcommand("ablate")]
)


def evaluate(task: Annotated[Task, tyro.conf.arg(name="")]) -> int:
    """Make the paper's tables, for any set of methods, on any posed data.

    Finished parts are kept and skipped when the command is run again. Exits with 1 if a scene could not be measured.
    """
    return task.run()
