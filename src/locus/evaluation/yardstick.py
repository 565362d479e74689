"""The yardstick: everything that a model is chosen by, with fixed settings, scene by scene.

It has no options, so that figures of today and of next year are of the same thing. Models are chosen on some scenes;
others are looked at once, at the end (docs/training.md names both).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from locus.evaluation.correspondence import PIXELS, Correspondence
from locus.evaluation.localization import LEAST, RIGHT, Localization, errors, within
from locus.evaluation.methods import Competitor, ModelMethod
from locus.evaluation.metrics import median
from locus.evaluation.outcome import Benchmark, Outcome
from locus.evaluation.pose import RelativePoses
from locus.evaluation.retrieval import Retrieval
from locus.evaluation.reuse import Reuse
from locus.evaluation.scene_patches import EvaluationError, ScenePatches
from locus.evaluation.segmentation import Segmentation
from locus.evaluation.table import Cell, Column, Table

RADII = (0.2, 0.6, 2.5)
"""Metres: a spot, an object, a room."""
DEPTH, COLOUR = LEAST

Figures = dict[str, float | None]


@dataclass(frozen=True)
class Yardstick(Benchmark):
    """All that a model is chosen by, with fixed settings: retrieval, correspondence, pose, localization, classes.

    One table a scene, and one of classes in other scenes. For models and backbones.
    """

    name = "yardstick"
    together = True

    def check(self, patches: ScenePatches) -> None:
        """Refuse a scene that a part could not be measured on."""
        for each in (*_LOCALIZATION.values(), Reuse()):
            each.check(patches)

    def measure(self, method: Competitor, scenes: Sequence[ScenePatches]) -> dict[str, Any]:
        """`{"scenes": {name: figures}, "classes": figures}`."""
        if not isinstance(method, ModelMethod):
            raise EvaluationError(f"{method.label} is no model, and the yardstick is for models and backbones")
        labelled = [patches for patches in scenes if patches.scene.classes]
        return {
            "scenes": {patches.scene.name: _scene(method, patches) for patches in scenes},
            "classes": _classes(method, labelled) if len(labelled) > 1 else {},
        }

    def tables(self, outcome: Outcome) -> list[Table]:
        """One a scene, and one of classes."""
        made = [
            _table(f"Yardstick: {name}", outcome, lambda measured, name=name: measured["scenes"][name])
            for name in outcome.parts[0].measured["scenes"]
        ]
        classes = _table("Yardstick: classes in other scenes", outcome, lambda measured: measured["classes"])
        return [*made, classes] if classes.columns else made


_RETRIEVAL = Retrieval(radii=RADII, batches=8)
_POSE = {"five points": RelativePoses(pairs=15), "3D": RelativePoses(pairs=15, solver="3d-3d")}
_LOCALIZATION = {split: Localization(split=split, queries=24, elsewhere=0) for split in ("interleaved", "halves")}


def _scene(method: ModelMethod, patches: ScenePatches) -> Figures:
    """What a method reaches on one scene."""
    found: Figures = {}
    for split, localization in _LOCALIZATION.items():
        queries = localization.measure(method, [patches])["queries"]
        for kind in (DEPTH, COLOUR):
            off = errors([query[kind] for query in queries], LEAST[kind])
            found[f"{split}, {kind}"] = float(within(off, RIGHT).mean())
    retrieval = _RETRIEVAL.measure(method, patches)["radii"]
    for radius, batches in retrieval.items():
        found[f"AP, {radius} m"] = float(np.mean([batch["cross-view"]["AP"] for batch in batches]))
    pairs = [pair for pair in Correspondence().measure(method, patches)["pairs"] if pair["patches"]]
    for index, pixels in list(enumerate(PIXELS))[1:]:
        found[f"≤ {pixels:g} pixels"] = float(np.mean([pair["within"][index] for pair in pairs]))
    for how, pose in _POSE.items():
        measured = pose.measure(method, patches)["pairs"]
        degrees = np.array([(pair["errors"] or [np.inf] * 3)[1] for pair in measured])
        found[f"{how}: R median, °"] = float(median(degrees))
        found[f"{how}: R ≤ 30°"] = float((degrees <= 30).mean())
    return found


def _classes(method: ModelMethod, labelled: Sequence[ScenePatches]) -> Figures:
    """What features know of classes, at each scale: a landmark's class in other scenes, and a probe's stuff."""
    found: Figures = {}
    for radius in RADII:
        homes = Reuse(radius=radius).measure(method, labelled)["landmarks"]
        found[f"class AP, {radius:g} m"] = float(
            np.mean([np.mean([x["AP"] for x in home["class AP"]]) for home in homes])
        )
        groups = [Segmentation(radius=radius).measure(method, patches)["groups"] for patches in labelled]
        for group in ("stuff", "things"):
            values = [each[group]["mIoU"] for each in groups if group in each]
            found[f"{group} mIoU, {radius:g} m"] = float(np.mean(values)) if values else None
    return found


def _table(title: str, outcome: Outcome, figures: Callable[[dict[str, Any]], Figures]) -> Table:
    names = list(figures(outcome.parts[0].measured))

    def cells(method: Competitor) -> list[Cell] | None:
        parts = outcome.of(method.label)
        return [figures(parts[0].measured)[name] for name in names] if parts else None

    columns = [Column(name, 1, "lower") if name.endswith("°") and "≤" not in name else Column(name) for name in names]
    return Table(title, columns, outcome.rows(cells))
