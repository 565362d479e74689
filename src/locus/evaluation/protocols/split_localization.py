"""Localization by a published split: a map of the training frames, and where every test frame was taken.

Every answer counts, however unsure, as in the published figures; a frame without one is wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.localization import within
from locus.evaluation.localizers import WITH_DEPTH
from locus.evaluation.methods import Competitor, ModelMethod
from locus.evaluation.metrics import median
from locus.evaluation.outcome import Outcome
from locus.evaluation.predictions import LocationPredictions
from locus.evaluation.protocols.frame_protocol import FrameProtocol, ProtocolScene
from locus.evaluation.scene_patches import EvaluationError, at_least
from locus.evaluation.specs import predictions
from locus.evaluation.table import Cell, Column, Row, Table
from locus.geometry import Camera, invert, pose_error, transform
from locus.landmarks import LandmarkMap
from locus.scenes import Frame, Scene
from locus.scenes.visibility import each_frame
from locus.tasks.localize import localize_features
from locus.tasks.placed_points import point_detector, points_fingerprint, query_points
from locus.tasks.sparse_depth import with_depth

LIMITS = ((0.1, 5.0), (0.05, 5.0), (0.02, 2.0), (0.01, 1.0))
"""Metres and degrees, as DSAC* and ACE count; the second is the one that is quoted."""
REPROJECTION = (0.05, 0.15, 0.5)
"""Shares of the image's diagonal, as RIO10 counts."""
COLOUR, PREDICTED = "by colour alone", "predictions"
KINDS = (WITH_DEPTH, COLOUR, PREDICTED)
STEP = 8  # pixels between those that the reprojection error is the mean of

Answer = Callable[[Frame], Mapping[str, Float[ndarray, "4 4"] | None]]
"""From a frame to its pose, by how it was asked about."""


@dataclass(frozen=True, eq=False)
class SplitScene(ProtocolScene):
    """A scene that a published split divides."""

    queries: frozenset[str] = frozenset()
    """Names of the frames to localize. The others make the map."""

    def truth(self) -> object:
        return sorted(self.queries)

    def part(self, asked: bool, every: int = 1) -> Scene:
        """The frames to localize, or those that make the map."""
        chosen = [source for source in self.sources if (source.name in self.queries) == asked][::every]
        if not chosen:
            what = "to localize" if asked else "for the map"
            raise EvaluationError(f"{self.name} has no frame {what}; is every sequence that its split names unpacked?")
        return replace(self, sources=chosen)


@dataclass(frozen=True)
class SplitLocalization(FrameProtocol):
    """What all of these protocols have in common."""

    every: int = 1
    """Use every so many-th training frame for the map; the published protocols use all of them."""
    seed: int = 0
    """Of the random samples of the solver."""

    def __post_init__(self) -> None:
        at_least(1, every=self.every)

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        return predictions(given, LocationPredictions)

    def fingerprint(self) -> Any:
        return [self.every, self.seed, points_fingerprint()]  # poses are the scene's

    def measure(self, method: Competitor, scene: SplitScene) -> dict[str, Any]:
        """Every query of one scene, with its depth and by colour alone."""
        asked = scene.part(True)
        poses = each_frame(lambda frame: frame.world_from_camera, asked)
        posed = [not isinstance(pose, LocusError) for pose in poses]  # some of 12-Scenes are infinite
        if not any(posed):
            raise EvaluationError(f"no pose of the {len(posed)} frames to localize of {scene.name} can be read")
        asked = replace(asked, sources=[source for source, known in zip(asked.sources, posed, strict=True) if known])
        if isinstance(method, LocationPredictions):
            names = [source.name for source in asked.sources]
            found = dict(zip(names, method.poses(scene.name, names), strict=True))
            answer: Answer = lambda frame: {PREDICTED: found[frame.name]}  # noqa: E731
        elif isinstance(method, ModelMethod):
            answer = self._localizer(method, scene.part(False, self.every))
        else:
            raise EvaluationError(f"{method.label} is no model and no predictions; maps are made with models")
        told: dict[str, list[dict[str, Any]]] = {}
        for frame in asked:
            for kind, pose in answer(frame).items():
                told.setdefault(kind, []).append(_described(frame, pose))
        return {"answers": told, "left out": posed.count(False)}

    def _localizer(self, method: ModelMethod, mapped: Scene) -> Answer:
        model = method.model
        if not mapped[0].has_depth:
            mapped = with_depth(model, mapped)
        world = LandmarkMap.build(model, mapped, detector=point_detector(), cache=method.cache)

        def answer(frame: Frame) -> dict[str, Float[ndarray, "4 4"] | None]:
            features = model.features(frame.image).cpu()
            placed = query_points(world, frame.image, features)
            depths = {WITH_DEPTH: frame.depth} if frame.has_depth else {}
            return {
                kind: localize_features(
                    world, features, frame.camera, depth, placed, min_confidence=0.0, seed=self.seed
                ).world_from_camera
                for kind, depth in (depths | {COLOUR: None}).items()
            }

        return answer

    def tables(self, outcome: Outcome) -> list[Table]:
        """The share within 5 cm and 5° and the median errors, by scene and their mean; further limits; reprojection."""
        measures: list[tuple[str, Column, Callable[[Float[ndarray, "n 2"]], float]]] = [
            ("share within 5 cm and 5°", Column(""), lambda off: float(within(off, LIMITS[1]).mean())),
            ("median error, cm", Column("", 1, "lower"), lambda off: 100 * float(median(off[:, 0]))),
            ("median error, °", Column("", 2, "lower"), lambda off: float(median(off[:, 1]))),
        ]
        made = [self._by_scene(outcome, *measure) for measure in measures]
        made.append(self._limits(outcome))
        if any(each["reprojection"] is not None for kind in KINDS for each in _answers(outcome, None, kind)):
            made.append(self._reprojection(outcome))
        return made

    def _notes(self, outcome: Outcome) -> list[str]:
        parts = {part.scene: part.measured for part in outcome.parts}
        counted = [next(iter(each["answers"].values())) for each in parts.values()]
        lost = sum(each["left out"] for each in parts.values())
        frames = sum(map(len, counted))
        note = f"{frames} frames of {len(parts)} scenes. Every answer counts; a frame without one is wrong."
        if lost:
            note += f" {lost} frames are left out because their pose cannot be read."
        if self.every > 1:
            note += f" Maps are of every {self.every}th training frame: published figures are of all."
        return [note]

    def _by_scene(
        self, outcome: Outcome, title: str, column: Column, statistic: Callable[[Float[ndarray, "n 2"]], float]
    ) -> Table:
        def cells(method: Competitor, kind: str) -> list[Cell] | None:
            values = [
                statistic(_errors(found)) if (found := _answers(outcome, method, kind, scene)) else None
                for scene in outcome.scenes
            ]
            known = [value for value in values if value is not None]
            return [*values, float(np.mean(known)) if len(known) == len(values) else None] if known else None

        columns = [replace(column, name=name) for name in (*outcome.scenes, "mean of scenes")]
        return Table(f"{self.name}: {title}", columns, _rows(outcome, cells), self._notes(outcome))

    def _limits(self, outcome: Outcome) -> Table:
        def cells(method: Competitor, kind: str) -> list[Cell] | None:
            off = _errors(_answers(outcome, method, kind))
            shares = [estimate(within(off, limits).astype(float)) for limits in LIMITS]
            return [*shares, float(np.isinf(off[:, 0]).mean())] if len(off) else None

        columns = [Column(f"{100 * metres:g} cm, {degrees:g}°") for metres, degrees in LIMITS]
        note = f"Of all frames together. In brackets: 95 % of {DRAWS:,} bootstrap draws of frames."
        columns.append(Column("no answer", 3, "neither"))
        return Table(f"{self.name}: share of frames within", columns, _rows(outcome, cells), [note])

    def _reprojection(self, outcome: Outcome) -> Table:
        def cells(method: Competitor, kind: str) -> list[Cell] | None:
            known = [each["reprojection"] for each in _answers(outcome, method, kind)]
            values = np.array([value for value in known if value is not None])
            return [estimate((values <= limit).astype(float)) for limit in REPROJECTION] if len(values) else None

        columns = [Column(f"≤ {limit:g}") for limit in REPROJECTION]
        note = (
            "The share of frames whose pixels, taken to the world with the true pose and back with the estimated one, "
            "move by no more than this share of the image's diagonal, on average (RIO10's DCRE)."
        )
        return Table(f"{self.name}: reprojection", columns, _rows(outcome, cells), [note])


def _described(frame: Frame, found: Float[ndarray, "4 4"] | None) -> dict[str, Any]:
    reprojection = None
    if frame.has_depth and frame.depth.any():
        reprojection = 1.0
        if found is not None:
            reprojection = reprojected(frame.camera, frame.depth, frame.world_from_camera, found)
    error = None if found is None else pose_error(found, frame.world_from_camera)
    return {"frame": frame.name, "error": error, "reprojection": reprojection}


def reprojected(
    camera: Camera, depth: Float[ndarray, "h w"], true: Float[ndarray, "4 4"], found: Float[ndarray, "4 4"]
) -> float:
    """How far pixels move between two poses of their camera, on average, as a share of the diagonal and at most all."""
    pixels, z = camera.pixel_grid()[::STEP, ::STEP], depth[::STEP, ::STEP].astype(np.float64)
    pixels, z = pixels[z > 0], z[z > 0]
    if not len(z):
        return 1.0
    there, new_z = camera.project(transform(invert(found) @ true, camera.unproject(pixels, z)))
    moved = np.linalg.norm(there - pixels, axis=1) / np.hypot(camera.width, camera.height)
    return float(np.where(new_z > 0, moved, 1.0).clip(max=1.0).mean())


def _answers(outcome: Outcome, method: Competitor | None, kind: str, scene: str | None = None) -> list[dict[str, Any]]:
    """Of one method and one scene, or of all."""
    return [
        each
        for part in outcome.parts
        if (method is None or part.method == method.label) and scene in (None, part.scene)
        for each in part.measured["answers"].get(kind, [])
    ]


def _errors(answers: Sequence[dict[str, Any]]) -> Float[ndarray, "n 2"]:
    """Metres and degrees, infinite where there is no answer."""
    return np.array([each["error"] or (np.inf, np.inf) for each in answers], np.float64).reshape(-1, 2)


def _rows(outcome: Outcome, cells: Callable[[Competitor, str], list[Cell] | None]) -> list[Row]:
    """One for every method and way of asking that there are answers of; what is not available is told once."""
    made: list[Row] = []
    for kind in KINDS:
        for row in outcome.rows(lambda method, kind=kind: cells(method, kind)):
            if row.kind != "unavailable":
                made.append(row if kind == PREDICTED else replace(row, label=f"{row.label}, {kind}"))
            elif kind == KINDS[0]:
                made.append(row)
    return made
