"""All stages of the demo, one after the other; what is finished is taken up again."""

import shlex
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from locus import backbones
from locus.demo import houses, spot
from locus.demo import report_page as page
from locus.demo.finding import PROTOCOL, Finding, find, open_map
from locus.demo.plan import TRAINED_SEED, UNSEEN_SEED, Folder, Plan
from locus.demo.stages import Done, Stages, program
from locus.errors import LocusError
from locus.evaluation import retrieval_pictures
from locus.evaluation.methods import ModelMethod
from locus.evaluation.runner import Outcome, opened
from locus.evaluation.runner import run as measure
from locus.evaluation.specs import Means, reduced
from locus.features.dense import SceneFeatures
from locus.files import atomic
from locus.landmarks import LandmarkMap
from locus.model import LoCUS, load, this_device
from locus.training import train

FITTED = 4  # houses that PCA is fitted to where nothing is trained


@dataclass(frozen=True)
class Results:
    """All that the page shows."""

    plan: Plan
    folder: Folder
    model: LoCUS
    label: str
    pretrained: str | None
    fitted: int
    metrics: list[dict[str, Any]]
    """Of the training; empty with a pretrained model."""
    outcome: Outcome
    glow: list[tuple[str, Any]]
    findings: list[Finding]
    """With the model first, then with the untrained backbone."""
    spot: spot.Spot
    sheet: spot.Sheet
    colours: list[list[Any]]
    mapped: Path
    seen: SceneFeatures
    """Of the mapped house."""
    done: list[Done]

    @property
    def name(self) -> str:
        """The model, as commands are told it."""
        return shlex.quote(self.pretrained or str(self.folder.run))

    @property
    def view(self) -> str:
        """The command that opens the mapped house in the viewer; empty where there is no viewer."""
        if find_spec("viser") is None:
            return ""
        house, folder, tokens = (shlex.quote(str(p)) for p in (self.mapped, self.folder.map, self.folder.tokens))
        return f"{program()} view {house} --model {self.name} --map {folder} --cache {tokens}"


def run(out: Path, plan: Plan, pretrained: str | None = None) -> Results:
    """Everything, in a folder."""
    folder = Folder(out, plan)
    stages = Stages(6 if pretrained else 7)
    model, plan = _weights(folder, plan, pretrained, stages)
    trained, unseen, watched = _houses(folder, plan, pretrained, stages)
    metrics: list[dict[str, Any]] = []
    if model is None:
        model, metrics = _train(folder, plan, trained, watched, stages)
    cache, label = folder.tokens, "LoCUS" if pretrained is None else f"LoCUS ({Path(pretrained).name})"
    with stages(f"Evaluate: the same spot in other views, {_count(len(unseen), 'house')} never trained on") as say:
        means = Means(trained, model.resolution, cache)
        untrained = [reduced(model.backbone, kind, means) for kind in ("pca", "whitened")]
        for method, kind in zip(untrained, ("PCA", "whitened PCA"), strict=True):
            method.label = f"untrained, {kind}-{method.model.dimension}"
        methods = [*untrained, ModelMethod(label, model, cache)]
        kept = folder.cache / "evaluation"
        outcome = measure(plan.retrieval, methods, {"unseen": unseen}, folder=kept, progress=True)
        if outcome.failures:
            raise LocusError("; ".join(f"{what}: {why}" for what, why in outcome.failures.items()))
        glow = retrieval_pictures.pictures(plan.retrieval, methods, opened(unseen[0], methods).place)
        reached = {method.label: page.cross_view(outcome, method.label) for method in methods}
        say("Average precision (1 is perfect): " + "; ".join(f"{name} {value:.3f}" for name, value in reached.items()))
    with stages("Map one of them from half its frames, and localize the other half") as say:
        houses_asked = [opened(path, methods).place for path in (unseen[0], watched)]
        (mapped, asked, _), (_, asked_elsewhere, _) = (PROTOCOL.rows(house) for house in houses_asked)
        here, elsewhere = (methods[-1].seen(house) for house in houses_asked)
        bare, bare_elsewhere = (untrained[1].seen(house) for house in houses_asked)
        world, reused = open_map(folder.map, model, here.take(mapped))
        bare_map = LandmarkMap.build(untrained[1].model, bare.take(mapped))
        findings = [
            find(label, world, here.take(asked), elsewhere.take(asked_elsewhere)),
            find(untrained[1].label, bare_map, bare.take(asked), bare_elsewhere.take(asked_elsewhere)),
        ]
        say(f"{len(world)} landmarks{' (were there)' if reused else ''}. {page.said(findings[0])}")
    with stages("Co-segment: one spot, shown in every other view") as say:
        chosen, scale = spot.choose(world, here), int(np.argmin(model.radii))
        sheet = spot.cosegment(chosen, here, scale)
        colours = spot.colour_rows([here, bare], spot.views_of(chosen, here, 5))
        say(f"A spot on a {chosen.what}: {sheet.showing} other views show it, of which {sheet.first} are ranked first.")
    with stages("Write the report") as say:
        results = Results(
            plan,
            folder,
            model,
            label,
            pretrained,
            len(trained),
            metrics,
            outcome,
            glow,
            findings,
            chosen,
            sheet,
            colours,
            unseen[0],
            here,
            stages.done,
        )
        with atomic(folder.report) as file:
            file.write_text(page.render(results), encoding="utf-8")
        say(f"{folder.report}, one file that needs nothing else.")
    return results


def _weights(folder: Folder, plan: Plan, pretrained: str | None, stages: Stages) -> tuple[LoCUS | None, Plan]:
    with stages("Weights: the pretrained network that LoCUS builds on") as say:
        if pretrained is not None:
            model = load(pretrained).to(this_device())
            say(f"{pretrained}: {model.name}.")
            folder.remember(folder.backbone)  # not the model's: without it, a demo takes the one it would have taken
            return model, plan
        wanted = folder.backbone or plan.settings.backbone
        name = backbones.load(wanted, plan.settings.layer, norm=plan.settings.norm).name
        asked = "" if name == plan.settings.backbone else f", in place of {plan.settings.backbone}"
        say(f"{name}{asked}.")
        folder.remember(name)
        return None, replace(plan, settings=replace(plan.settings, backbone=name))


def _houses(folder: Folder, plan: Plan, pretrained: str | None, stages: Stages) -> tuple[list[Path], list[Path], Path]:
    """Those trained on, those evaluated on, and the one that is only watched."""
    count = min(FITTED, plan.houses) if pretrained else plan.houses
    what = "to fit the baseline to" if pretrained else "to train on"
    with stages(f"Houses: {count} {what}, {plan.unseen + 1} that are never trained on") as say:
        trained, before = houses.make(
            folder.trained, range(TRAINED_SEED, TRAINED_SEED + count), plan.frames, plan.size, folder
        )
        unseen, also = houses.make(
            folder.unseen,
            range(UNSEEN_SEED, UNSEEN_SEED + plan.unseen + 1),
            plan.unseen_frames,
            plan.size,
            folder,
        )
        frames = len(trained) * plan.frames + len(unseen) * plan.unseen_frames
        there = f"; {before + also} of the houses were there" if before + also else ""
        say(f"{frames} images with depth, pose and labels in {folder.path}{there}.")
    return trained, unseen[:-1], unseen[-1]


def _train(
    folder: Folder, plan: Plan, trained: list[Path], watched: Path, stages: Stages
) -> tuple[LoCUS, list[dict[str, Any]]]:
    with stages(f"Train: {plan.settings.steps} steps towards one feature for a spot, from all sides") as say:
        summary = train(trained, folder.run, plan.settings, val=[watched], cache=folder.tokens, progress=True)
        if not summary.finished:
            raise KeyboardInterrupt
        first, best = summary.metrics[0]["unseen"]["cross-view"], summary.best
        say(
            f"Average precision in a house not trained on: {first:.3f} at the start, "
            f"{best['unseen']['cross-view']:.3f} at step {best['step']}."
        )
    return LoCUS.from_pretrained(folder.run).to(this_device()), summary.metrics


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
