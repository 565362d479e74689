"""All stages of the demo, one after the other; what is finished is not done again."""

import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from locus import backbones
from locus.demo import report_page as page
from locus.demo import spot
from locus.demo.demo_houses import DemoHouses, make_houses
from locus.demo.finding import PROTOCOL, Finding, find, open_map
from locus.demo.plan import DemoFolder, DemoPlan
from locus.demo.stage_log import StageLog, program
from locus.errors import LocusError
from locus.evaluation.methods import ModelMethod
from locus.evaluation.outcome import Outcome
from locus.evaluation.runner import run as measure
from locus.evaluation.scene_patches import first_size, read_patches
from locus.evaluation.specs import MethodOptions, reduced
from locus.features.dense import SceneFeatures
from locus.landmarks import LandmarkMap
from locus.model import LoCUS, load, this_device
from locus.pages.pictures import Picture
from locus.scenes import load_scene
from locus.training import train

FITTED = 4  # houses that PCA is fitted to where nothing is trained
Metrics = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that the page shows."""

    folder: DemoFolder
    pretrained: str | None
    model: LoCUS
    houses: DemoHouses
    metrics: Metrics
    """Of the training; empty with a pretrained model."""
    outcome: Outcome
    """Of retrieval: the untrained methods first, then the model."""
    glow: list[tuple[str, Picture]]
    findings: list[Finding]
    """With the model first, then with the untrained backbone."""
    seen: SceneFeatures
    """Of the mapped house."""
    spot_views: spot.SpotViews
    colours: Picture
    stages: list[tuple[str, str, str]]

    @property
    def name(self) -> str:
        """The model, as it is typed in a command."""
        return shlex.quote(self.pretrained or str(self.folder.run))

    @property
    def view(self) -> str:
        """The command that opens the mapped house in the viewer; empty where there is no viewer."""
        if find_spec("viser") is None:
            return ""
        paths = (self.houses.unseen[0], self.folder.map, self.folder.tokens)
        house, folder, tokens = (shlex.quote(str(path)) for path in paths)
        return f"{program()} view {house} --model {self.name} --map {folder} --cache {tokens}"


def run(out: Path, plan: DemoPlan, pretrained: str | None = None) -> Results:
    """Everything, in a folder."""
    folder = DemoFolder(out, plan)
    stages = StageLog(6 if pretrained else 7)
    model = _weights(folder, pretrained, stages)
    houses = _houses(folder, pretrained, stages)
    metrics: Metrics = []
    if model is None:
        model, metrics = _train(folder, houses, stages)
    cache, label = folder.tokens, "LoCUS" if pretrained is None else f"LoCUS ({Path(pretrained).name})"
    with stages("Evaluate: find the same spot in other views of unseen houses") as say:
        options = MethodOptions(houses.fitted, model.resolution, cache)
        untrained = [reduced(model.backbone, kind, options) for kind in ("pca", "whitened")]
        for method, kind in zip(untrained, ("PCA", "whitened PCA"), strict=True):
            method.label = f"untrained, {kind}-{method.model.dimension}"
        methods = [*untrained, ModelMethod(label, model, cache)]
        kept = folder.cache / "evaluation"
        outcome = measure(plan.retrieval, methods, {"unseen": houses.unseen}, folder=kept, progress=True)
        if outcome.failures:
            raise LocusError("; ".join(f"{what}: {why}" for what, why in outcome.failures.items()))
        glow = outcome.pictures()
        reached = {method.label: page.cross_view(outcome, method.label) for method in methods}
        say("Average precision (1 is perfect): " + "; ".join(f"{name} {value:.3f}" for name, value in reached.items()))
    with stages("Map an unseen house from half its frames, and localize the other half") as say:
        pair = [load_scene(path) for path in (houses.unseen[0], houses.validation)]
        patches = [read_patches(scene, model.grid(*first_size(scene))) for scene in pair]
        (mapped, asked, _), (_, asked_elsewhere, _) = map(PROTOCOL.rows, patches)
        here, elsewhere = map(methods[-1].seen, patches)
        bare, bare_elsewhere = map(untrained[1].seen, patches)
        world, reused = open_map(folder.map, model, here.take(mapped))
        bare_map = LandmarkMap.build(untrained[1].model, bare.take(mapped))
        findings = [
            find(label, world, here.take(asked), elsewhere.take(asked_elsewhere)),
            find(untrained[1].label, bare_map, bare.take(asked), bare_elsewhere.take(asked_elsewhere)),
        ]
        say(f"{len(world)} landmarks{' (were there)' if reused else ''}. {page.said(findings[0])}")
    with stages("Co-segment: one spot, in every other view") as say:
        chosen = spot.choose(world, here)
        spot_views = spot.cosegment(chosen, here, int(np.argmin(model.radii)))
        colours = spot.colour_sheet([here, bare], spot.views_of(chosen, here, 5))
        showing, first = spot_views.showing, spot_views.first
        say(f"A spot on a {chosen.what}: {showing} other views show it, and {first} of the first {showing} views do.")
    with stages("Write the report") as say:
        results = Results(
            folder=folder,
            pretrained=pretrained,
            model=model,
            houses=houses,
            metrics=metrics,
            outcome=outcome,
            glow=glow,
            findings=findings,
            seen=here,
            spot_views=spot_views,
            colours=colours,
            stages=list(stages.done),
        )
        page.write_page(results)
        say(f"{folder.report}, one file that needs nothing else.")
    return results


def _weights(folder: DemoFolder, pretrained: str | None, stages: StageLog) -> LoCUS | None:
    """The pretrained model; None where there is to be one trained here."""
    model, settings = None, folder.plan.settings
    with stages("Weights: the pretrained network that LoCUS builds on") as say:
        if pretrained is not None:
            model = load(pretrained).to(this_device())
            say(f"{pretrained}: {model.name}.")
        else:
            say(f"{backbones.load(settings.backbone, settings.layer, norm=settings.norm).name}.")
        folder.remember()
    return model


def _houses(folder: DemoFolder, pretrained: str | None, stages: StageLog) -> DemoHouses:
    plan = folder.plan
    count = min(FITTED, plan.houses) if pretrained else plan.houses
    what = "to fit the baseline to" if pretrained else "to train on"
    with stages(f"Houses: {count} {what}, {plan.unseen} unseen, 1 for validation") as say:
        houses = make_houses(folder, count)
        frames = count * plan.frames + (plan.unseen + 1) * plan.unseen_frames
        there = f"; {houses.found} of the houses were there" if houses.found else ""
        say(f"{frames} images with depth, pose and labels in {folder.path}{there}.")
    return houses


def _train(folder: DemoFolder, houses: DemoHouses, stages: StageLog) -> tuple[LoCUS, Metrics]:
    settings = folder.plan.settings
    with stages(f"Train: {settings.steps} steps towards one feature for a spot, from all sides") as say:
        val, cache = [houses.validation], folder.tokens
        summary = train(houses.fitted, folder.run, settings, val=val, cache=cache, progress=True)
        if not summary.finished:
            raise KeyboardInterrupt
        first, best = summary.metrics[0]["validation"]["cross-view"], summary.best
        say(
            f"Average precision in the validation house: {first:.3f} at the start, "
            f"{best['validation']['cross-view']:.3f} at step {best['step']}."
        )
    return LoCUS.from_pretrained(folder.run).to(this_device()), summary.metrics
