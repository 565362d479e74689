"""Relative pose (Table 3): the motion between two frames of unseen places, from matches alone or with depth."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.bootstrap import DRAWS, Estimate, Statistic, estimate, mean
from locus.evaluation.figures import Line, line_figure
from locus.evaluation.matchers import FeatureMatcher, Matcher
from locus.evaluation.methods import Competitor, Method
from locus.evaluation.opened import EvaluationError, Place, at_least, open_place
from locus.evaluation.pairs import OVERLAP, Pair, between, draw_pairs, named_pairs, read_pairs
from locus.evaluation.pose_metrics import area_under_curve, error_of, median
from locus.evaluation.predictions import PosePredictions
from locus.evaluation.published import NOTE, RELATIVE_POSE, reference_rows
from locus.evaluation.runner import Outcome
from locus.evaluation.table import Column, Table, unavailable
from locus.files import atomic
from locus.scenes import SceneReading
from locus.tasks.matching import PAPER, Rule
from locus.tasks.relative_pose import points_at, relative_pose

RULES = {"mutual": Rule(), "paper": PAPER}


@dataclass(frozen=True)
class RelativePoses:
    """The protocol."""

    pairs: int = 50
    """Pairs drawn from each place for each range of overlap, as far as there are any."""
    overlap: tuple[float, ...] = OVERLAP
    """Where ranges of overlap begin and end, from 0 to 1: the lesser share that each frame sees of the other."""
    pairs_file: Path | None = None
    """Instead: a file of lines `name_a name_b`, or of SuperGlue's 38 values, whose motion and intrinsics then count."""
    solver: Literal["5-point", "3d-3d"] = "5-point"
    """5-point RANSAC from pixels, or 3D–3D alignment with the depth of both frames."""
    scale: Literal["truth", "metric"] = "truth"
    """How long the estimated way is: as the true one (the paper's protocol), or as estimated, which takes depth."""
    rule: Literal["mutual", "paper"] = "mutual"
    """Which matches of features count: mutual nearest neighbours, finer than a patch; or the paper's filters."""
    radius: float = 0.2
    """Metres: which scale of a model of several is asked."""
    seed: int = 0
    """Of the pairs drawn, and of RANSAC."""

    name = "pose"

    def __post_init__(self) -> None:
        at_least(1, pairs=self.pairs)
        edges = self.overlap
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)) or edges[0] < 0 or edges[-1] > 1:
            raise EvaluationError(f"--overlap takes two or more rising shares from 0 to 1, not {edges}")
        if self.scale == "metric" and self.solver != "3d-3d":
            raise EvaluationError("pixels do not tell how long a way is; --scale metric takes --solver 3d-3d")

    def measure(self, method: Competitor, place: Place) -> dict[str, Any]:
        """Errors of every pair of one place, None where there is no pose."""
        pairs = self.compared(place)
        estimates = self._estimates(method, place, pairs)
        return {"pairs": [self._described(place, *each) for each in zip(pairs, estimates, strict=True)]}

    def compared(self, place: Place) -> list[Pair]:
        """The pairs of one place."""
        if self.pairs_file is None:
            pairs = draw_pairs(place, self.pairs, self.seed, self.overlap)
        else:
            pairs = named_pairs(place, read_pairs(self.pairs_file))
        if not pairs:
            shares = f"see {self.overlap[0]:.0%} to {self.overlap[-1]:.0%} of each other"
            what = shares if self.pairs_file is None else f"are in {self.pairs_file}"
            raise EvaluationError(f"no two frames of {place.scene.name} {what}")
        return pairs

    def _estimates(self, method: Competitor, place: Place, pairs: Sequence[Pair]) -> list[Float[ndarray, "4 4"] | None]:
        if isinstance(method, PosePredictions):
            names = [(place.frame(pair.a).name, place.frame(pair.b).name) for pair in pairs]
            return method.poses(place.scene.name, names)
        if isinstance(method, Method):
            method = FeatureMatcher(method, self.radius, RULES[self.rule])
        if not isinstance(method, Matcher):
            raise EvaluationError(f"{method.label} gives neither features nor matches")
        return [self._estimate(method, place, pair) for pair in pairs]

    def _estimate(self, matcher: Matcher, place: Place, pair: Pair) -> Float[ndarray, "4 4"] | None:
        matches = matcher.match(place, pair.a, pair.b)
        points = [None, None]
        threshold = matcher.tolerance(matches)
        if self.solver == "3d-3d":
            threshold = None
            points = [
                points_at(place.frame(row).depth, camera, pixels)
                for row, camera, pixels in (
                    (pair.a, pair.camera_a, matches.pixels_a),
                    (pair.b, pair.camera_b, matches.pixels_b),
                )
            ]
        return relative_pose(
            matches, pair.camera_a, pair.camera_b, *points, threshold=threshold, seed=self.seed
        ).b_from_a

    def _described(self, place: Place, pair: Pair, estimated: Float[ndarray, "4 4"] | None) -> dict[str, Any]:
        error = error_of(estimated, pair.b_from_a, scale_from_truth=self.scale == "truth")
        errors = None if estimated is None else [error.metres, error.degrees, error.direction]
        names = [place.frame(pair.a).name, place.frame(pair.b).name]
        return {"frames": names, "overlap": pair.overlap, "errors": errors, "line": pair.line}


def write_template(path: Path, protocol: RelativePoses, scenes: Sequence[Path], reading: SceneReading) -> int:
    """A predictions file with every pair and no pose, and how many there are."""
    lines = []
    for folder in scenes:
        place = open_place(reading.load(folder))
        for pair in protocol.compared(place):
            names = {"a": place.frame(pair.a).name, "b": place.frame(pair.b).name}
            lines.append(json.dumps({"scene": place.scene.name, **names, "b_from_a": None}))
    with atomic(path) as file:
        file.write_text("\n".join(lines) + "\n")
    return len(lines)


def errors(outcome: Outcome, label: str, overlap: tuple[float, float] = (0.0, 1.0)) -> Float[ndarray, "pairs 3"]:
    """Metres, degrees and degrees of direction of a method's pairs; infinite where there is no pose."""
    pairs = [pair for part in outcome.of(label) for pair in part.measured["pairs"]]
    rows = np.array([pair["errors"] or [np.inf] * 3 for pair in pairs]).reshape(-1, 3)
    return rows[between(np.array([pair["overlap"] for pair in pairs]), *overlap)]


def tables(outcome: Outcome) -> list[Table]:
    """Table 3, the AUC, and both by overlap."""
    protocol = outcome.benchmark
    metres = [Column("t median, m", 2, "lower"), Column("t mean, m", 2, "neither"), Column("t ≤ 1 m")]
    degrees = [Column("R median, °", 1, "lower"), Column("R mean, °", 1, "neither"), Column("R ≤ 30°")]
    rows = []
    for method in outcome.methods:
        if isinstance(method, Competitor):
            rows.append(outcome.row(method, _cells(errors(outcome, method.label))))
        else:
            rows.append(unavailable(method.label, method.reason))
    count = max(len(errors(outcome, method.label)) for method in outcome.methods)
    how = "the true length of the way" if protocol.scale == "truth" else "the length that depth tells"
    notes = [
        f"{count} pairs of {len(outcome.scenes)} places; {protocol.solver}, {protocol.rule} matches, {how}. "
        "t: between camera B's true and estimated place.",
        "A pair without a pose is wrong in medians, shares and AUC, and left out of means; 'no pose' is their share.",
        f"In brackets: 95 % of {DRAWS:,} bootstrap draws of pairs.",
        *_unfound(outcome),
        NOTE,
    ]
    main = Table("Relative pose", [*metres, *degrees], [*rows, *reference_rows(RELATIVE_POSE)], notes)
    return [main, _by_auc(outcome), _by_overlap(outcome)]


def _unfound(outcome: Outcome) -> list[str]:
    """How many of a file's pairs are of none of the scenes."""
    file = outcome.benchmark.pairs_file
    if file is None:
        return []
    found = {pair["line"] for part in outcome.parts for pair in part.measured["pairs"]}
    named = read_pairs(file)
    lost = [pair for line, pair in enumerate(named) if line not in found]
    return [f"{len(lost)} of {len(named)} pairs of {file} are of no scene here, the first {lost[0]}."] if lost else []


def _by_auc(outcome: Outcome) -> Table:
    rows = []
    for method in outcome.methods:
        values = errors(outcome, method.label)
        if isinstance(method, Competitor) and len(values):
            worse = values[:, 1:].max(axis=1)
            cells = [estimate(worse, _auc(threshold)) for threshold in (5.0, 10.0, 20.0)]
            rows.append(outcome.row(method, [*cells, float(np.isinf(worse).mean())]))
    columns = [Column("AUC@5"), Column("AUC@10"), Column("AUC@20"), Column("no pose", 2, "neither")]
    note = "The worse of the angles of rotation and of direction of motion, as SuperGlue counts."
    return Table("Relative pose, area under the curve", columns, rows, [note])


def _cells(values: Float[ndarray, "pairs 3"]) -> list[Estimate | None]:
    if not len(values):
        return []
    metres, degrees = values[:, 0], values[:, 1]
    posed = np.isfinite(metres)
    cells: list[Estimate | None] = []
    for error, limit in ((metres, 1.0), (degrees, 30.0)):
        cells += [estimate(error, median), estimate(error[posed]), estimate((error <= limit).astype(float))]
    return cells


def _auc(threshold: float) -> Statistic:
    return lambda drawn: area_under_curve(drawn, threshold)


def _by_overlap(outcome: Outcome) -> Table:
    ranges = list(pairwise(outcome.benchmark.overlap))
    rows = []
    for method in outcome.methods:
        if isinstance(method, Competitor):
            cells: list[Estimate | None] = []
            for limits in ranges:
                degrees = errors(outcome, method.label, limits)[:, 1]
                cells += [estimate(degrees, median), estimate((degrees <= 30).astype(float), mean)]
            rows.append(outcome.row(method, cells))
    names = [f"{low:.0%}–{high:.0%}" for low, high in ranges]
    columns = [
        column for name in names for column in (Column(f"R median, {name}", 1, "lower"), Column(f"R ≤ 30°, {name}"))
    ]
    counts = [max(len(errors(outcome, part.method, limits)) for part in outcome.parts) for limits in ranges]
    note = f"Overlap: the lesser share that each frame sees of the other; {', '.join(map(str, counts))} pairs."
    return Table("Relative pose by overlap", columns, rows, [note])


def figures(outcome: Outcome) -> list[tuple[str, str]]:
    """The share of pairs whose rotation is right to so many degrees."""
    limits = np.linspace(0, 60, 121)
    lines = []
    for method in outcome.methods:
        values = errors(outcome, method.label)[:, 1]
        if isinstance(method, Competitor) and len(values):
            shares = (values[:, None] <= limits).mean(axis=0)
            lines.append(Line(outcome.label(method), limits, shares, method.bound))
    drawn = line_figure({"": lines}, "degrees", "share of pairs within", (0, 60), (0, 1))
    return [("Rotations right to so many degrees", drawn)]
