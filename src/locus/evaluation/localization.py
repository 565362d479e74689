"""Localization: a map from half of an environment's frames, and where the others were taken.

Every query is asked about with its depth and by colour alone: in the map of its environment; in the maps of other
environments, which should answer "not here"; and in one map of all environments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Float32
from numpy import ndarray
from scipy.spatial import KDTree

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.calibration import Judged, judged_location, reliability_figure, trust_table
from locus.evaluation.figures import line_figure
from locus.evaluation.localizers import WITH_DEPTH, Hloc, LandmarkLocalizer, LandmarksAlone, Sparse, localizer
from locus.evaluation.methods import Competitor, ModelMethod
from locus.evaluation.metrics import median
from locus.evaluation.outcome import Outcome, Sampled
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, at_least
from locus.evaluation.table import Cell, Column, Row, Table
from locus.evaluation.true_map import TrueMap
from locus.features.dense import SceneFeatures
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap, merge
from locus.model.shipped import DEFAULT
from locus.tasks.frame_ranking import rank_frames
from locus.tasks.localize import LEAST_RGB, LEAST_RGBD, Location
from locus.tasks.placed_points import points_fingerprint

LIMITS = ((0.05, 5.0), (0.25, 2.0), (0.5, 5.0), (0.5, 10.0), (1.0, 10.0), (5.0, 30.0))
"""Metres and degrees that an answer may be off."""
RIGHT = (0.5, 10.0)  # an answer that is called right where there is one column for it
LEAST = {WITH_DEPTH: LEAST_RGBD, "by colour alone": LEAST_RGB}
"""How a query is asked about, and the least confidence of an answer."""
CONFIDENCES = (0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2)
SEEN = 0.05  # of a query's patches, that one of the map's frames must see
NEAR = (2.0, 60.0)  # metres and degrees: a frame of the map that shows much of what the query shows

Query = dict[str, Any]


@dataclass(frozen=True)
class Localization(Sampled):
    """Where were the frames taken that a map was not made from?

    Models localize with landmarks and points. Beside the first of them, `landmarks` is the same without points,
    `sparse` the same in a map that is made without depth (`locus depth`), and
    `hloc` matches the same frames of the map with ALIKED and LightGlue.
    The share localized to within 5 cm and 5°, up to 5 m and 30°, with depth and by colour alone. With several scenes
    also: frames of one in the maps of others, which should answer "not here", and in one map of all.
    """

    split: Literal["halves", "interleaved", "random"] = "random"
    """The frames that make the map: the first half in time (`halves`), every other one, or half of them at random."""
    queries: int = 50
    """Frames of each environment that are localized, at most; each sees a part of what the map's frames see."""
    elsewhere: int = 2
    """Maps of the next environments that each query is asked of too; they should answer "not here"."""

    name = "localization"
    together = True

    def __post_init__(self) -> None:
        at_least(1, queries=self.queries)
        at_least(0, elsewhere=self.elsewhere)

    def check(self, patches: ScenePatches) -> None:
        """Refuse a scene without queries."""
        if not self.rows(patches)[1]:
            raise EvaluationError(
                f"{patches.scene.name}: no frame sees {SEEN:.0%} of what a mapped one sees; try another --split"
            )

    def rows(self, patches: ScenePatches) -> tuple[list[int], list[int], int]:
        """Frames for the map; frames to localize; and how many were left out because they see too little of the map.

        At least 5 % of the patches of each frame to localize are seen by a frame of the map.
        """
        random = patches.random(self.seed)
        count = len(patches)
        chosen = np.arange(count) < count // 2
        if self.split == "interleaved":
            chosen = np.arange(count) % 2 == 0
        elif self.split == "random":
            chosen = np.isin(np.arange(count), random.permutation(count)[: count // 2])
        mapped, others = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        shown = others[patches.overlap[others][:, mapped].max(axis=1).toarray().ravel() >= SEEN]
        asked = np.sort(random.choice(shown, min(self.queries, len(shown)), replace=False))
        return mapped.tolist(), asked.tolist(), len(others) - len(shown)

    def measure(self, method: Competitor, scenes: Sequence[ScenePatches]) -> dict[str, Any]:
        """Every query of every environment."""
        if not isinstance(method, ModelMethod):
            raise EvaluationError(f"{method.label} is no model, and maps are made with models")
        way = localizer(method)
        maps, asked, left_out = [], [], 0
        for patches in scenes:
            mapped, rows, unseen = self.rows(patches)
            seen = method.seen(patches)
            maps.append(way.build(seen.take(mapped)))
            asked.append(seen.take(rows))
            left_out += unseen
        everything = merge(maps) if len(maps) > 1 else None
        queries = []
        for number, seen in enumerate(asked):
            others = [maps[(number + step) % len(maps)] for step in range(1, min(self.elsewhere + 1, len(maps)))]
            queries += [self._query(way, maps[number], others, everything, seen, row) for row in range(len(seen))]
        return {"queries": queries, "left out": left_out, "environments": len(scenes)}

    def _query(
        self,
        way: LandmarkLocalizer,
        own: LandmarkMap,
        others: Sequence[LandmarkMap],
        everything: LandmarkMap | None,
        seen: SceneFeatures,
        row: int,
    ) -> Query:
        frame, ranked = seen.frame(row), rank_frames(own, seen.features[:, row], 1)
        first = own.frames.world_from_camera[ranked.frame[0]]
        query: Query = {
            "scene": seen.scene.name,
            "frame": frame.name,
            "covered": covered(own, seen.points[row]),
            "stuck": ranked.stuck,
            "first hit": bool(within(np.array([pose_error(first, frame.world_from_camera)]), NEAR)[0]),
        }
        for kind, least in LEAST.items():
            location = way.ask(own, seen, row, kind, self.seed)
            query[kind] = _said(location, frame.world_from_camera)
            query[kind]["trust"] = judged_location(location, least, frame.world_from_camera)
            elsewhere = [way.ask(other, seen, row, kind, self.seed) for other in others]
            query[kind]["elsewhere"] = [each.confidence for each in elsewhere]
            query[kind]["trust elsewhere"] = [judged_location(each, least) for each in elsewhere]
            if everything is not None:
                location = way.ask(everything, seen, row, kind, self.seed)
                named = location.environment == seen.scene.name
                query[kind]["together"] = _said(location, frame.world_from_camera) | {"named": named}
        return query

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        own = {"truth": TrueMap, "landmarks": LandmarksAlone, "hloc": Hloc, "sparse": Sparse}
        model = next((word for word in given if word not in own), DEFAULT)
        return {word: make if make is TrueMap else partial(make, model) for word, make in own.items()}

    def fingerprint(self) -> Any:
        return [super().fingerprint(), points_fingerprint()]

    def tables(self, outcome: Outcome) -> list[Table]:
        """Recall, with depth and without; what limits it; with several environments, what their maps say; trust."""
        measured = outcome.parts[0].measured  # the same frames for every method
        queries, environments, left_out = len(measured["queries"]), measured["environments"], measured["left out"]
        notes = [
            f"Queries: {queries}. Environments: {environments}, each mapped from one half of its frames "
            f"({self.split}). Frames left out because no frame of the map sees {SEEN:.0%} of their patches: "
            f"{left_out}.",
            f"In brackets: 95 % of {DRAWS:,} bootstrap draws of frames.",
        ]
        made = [*(_recall(outcome, kind, notes) for kind in LEAST), _limits(outcome)]
        if environments > 1:
            made += [_other_maps(outcome, notes[1:]), *(_confidences(outcome, kind) for kind in LEAST)]
        answers = {kind: partial(_answers, outcome, kind) for kind in LEAST}
        return made + [trust_table(outcome, f"Localization: trust, {kind}", said) for kind, said in answers.items()]

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        """The share of frames localized to within so many metres."""
        limits = np.linspace(0, 2, 81)

        def shares(method: Competitor, kind: str) -> Float[ndarray, " limits"]:
            answers = [query[kind] for query in outcome.measured(method.label, "queries")]
            return (errors(answers, LEAST[kind])[:, :1] <= limits).mean(axis=0)

        panels = {kind: outcome.lines(limits, lambda method, kind=kind: shares(method, kind)) for kind in LEAST}
        drawn = line_figure(panels, "metres", "share", (0, 2), (0, 1))
        trust = reliability_figure(outcome, {kind: partial(_answers, outcome, kind) for kind in LEAST})
        return [("Frames localized to within so many metres", drawn), trust]


def _said(location: Location, truth: Float[ndarray, "4 4"]) -> dict[str, Any]:
    found = location.world_from_camera
    return {"error": None if found is None else pose_error(found, truth), "confidence": location.confidence}


def _answers(outcome: Outcome, kind: str, method: Competitor) -> list[Judged]:
    """In the map of each query's own environment."""
    return [query[kind]["trust"] for query in outcome.measured(method.label, "queries") if query[kind]["trust"]]


def covered(world: LandmarkMap, points: Float32[ndarray, "rows columns 3"]) -> float:
    """The share of a frame's patches that lie within the radius of a landmark: what else it shows cannot be found."""
    finest = int(np.argmin(world.radii))
    known = points[np.isfinite(points).all(axis=-1)]
    if not len(known):
        return 0.0
    tree = KDTree(world.landmarks.position[world.landmarks.scale == finest])
    return float(np.mean(tree.query(known)[0] <= world.radii[finest]))


def within(errors: Float[ndarray, "n 2"], limits: tuple[float, float]) -> Bool[ndarray, " n"]:
    """Which are off by no more than so many metres and degrees."""
    return np.all(errors <= limits, axis=1)


def errors(answers: Sequence[dict[str, Any]], least: float) -> Float[ndarray, "n 2"]:
    """Metres and degrees, infinite where the confidence is too low for an answer."""
    nothing = (np.inf, np.inf)
    found = [each["error"] if each["error"] and each["confidence"] >= least else nothing for each in answers]
    return np.array(found, np.float64).reshape(-1, 2)


def _rows(outcome: Outcome, cells: Callable[[list[Query]], list[Cell]]) -> list[Row]:
    """Of all of a method's queries; empty where it has none."""
    return outcome.rows(lambda method: cells(found) if (found := outcome.measured(method.label, "queries")) else [])


def _recall(outcome: Outcome, kind: str, notes: Sequence[str]) -> Table:
    columns = [Column(f"{metres:g} m, {degrees:g}°") for metres, degrees in LIMITS]
    columns += [Column("median, m", 2, "lower"), Column("median, °", 1, "lower"), Column("no answer", 2, "neither")]

    def cells(queries: list[Query]) -> list[Cell]:
        off = errors([query[kind] for query in queries], LEAST[kind])
        recall = [_share(within(off, limits)) for limits in LIMITS]
        return [*recall, *(estimate(off[:, k], median) for k in (0, 1)), float(np.isinf(off[:, 0]).mean())]

    told = "The share that is localized to within so many metres and degrees; no answer is wrong."
    return Table(f"Localization, {kind}", columns, _rows(outcome, cells), [told, *notes])


def _limits(outcome: Outcome) -> Table:
    names = ("covered", "stuck", "first hit")
    columns = [Column("covered", 2, "neither"), Column("stuck", 2, "neither"), Column("first hit", 2)]
    note = (
        "Covered: patches of a query within the radius of a landmark; what else it shows cannot be found. Stuck: "
        "matches that sit where their landmark was in the map's images. First hit: the frame of the map that is ranked "
        f"first was taken within {NEAR[0]:g} m and {NEAR[1]:g}°."
    )
    rows = _rows(outcome, lambda queries: [float(np.mean([query[name] for query in queries])) for name in names])
    return Table("Localization: what limits it", columns, rows, [note])


def _other_maps(outcome: Outcome, notes: Sequence[str]) -> Table:
    columns = [Column(f"{what}, {kind}") for kind in LEAST for what in ("not here", "named", "right")]

    def cells(queries: list[Query]) -> list[Cell]:
        found: list[Cell] = []
        for kind, least in LEAST.items():
            together = [query[kind]["together"] for query in queries]
            named = np.array([each["named"] and each["confidence"] >= least for each in together])
            right = named & within(errors(together, least), RIGHT)
            found += [_share(_elsewhere(queries, kind) < least), _share(named), _share(right)]
        return found

    told = (
        "Not here: the share of queries that the map of another environment rightly gives no answer to. Named: in one "
        "map of all environments, the share whose environment is found; right: and the pose to within "
        f"{RIGHT[0]:g} m and {RIGHT[1]:g}°."
    )
    return Table("Localization: several environments", columns, _rows(outcome, cells), [told, *notes])


def _confidences(outcome: Outcome, kind: str) -> Table:
    def cells(queries: list[Query]) -> list[Cell]:
        answers, elsewhere = [query[kind] for query in queries], _elsewhere(queries, kind)
        right = [within(errors(answers, least), RIGHT).mean() for least in CONFIDENCES]
        return [f"{a:.3f}, {(elsewhere < b).mean():.3f}" for a, b in zip(right, CONFIDENCES, strict=True)]

    note = (
        f"The share of queries localized to within {RIGHT[0]:g} m and {RIGHT[1]:g}°, and of queries elsewhere answered "
        f'"not here", if an answer must have this confidence; by default {LEAST[kind]:.2f}.'
    )
    columns = [Column(f"{least:.2f}") for least in CONFIDENCES]
    return Table(f"Localization: the least confidence, {kind}", columns, _rows(outcome, cells), [note])


def _elsewhere(queries: Sequence[Query], kind: str) -> Float[ndarray, " n"]:
    """Confidences in maps of other environments."""
    return np.array([query[kind]["elsewhere"] for query in queries], np.float64).ravel()


def _share(values: Bool[ndarray, " n"]) -> Cell:
    return estimate(values.astype(np.float64))
