"""Relative pose (Table 3): the motion between two frames of unseen scenes, from matches alone or with depth."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.figures import line_figure
from locus.evaluation.matchers import FeatureMatcher, Matcher, TrueMatcher
from locus.evaluation.methods import Competitor, Method
from locus.evaluation.metrics import area_under_curve, error_of, median
from locus.evaluation.outcome import Benchmark, Outcome
from locus.evaluation.pairs import OVERLAP, FramePair, between, draw_pairs, named_pairs, read_pairs
from locus.evaluation.predictions import PosePredictions
from locus.evaluation.published import NOTE, RELATIVE_POSE, reference_rows
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, at_least, read_patches
from locus.evaluation.specs import MATCHERS, predictions
from locus.evaluation.table import Cell, Column, Table
from locus.files import atomic, content_hash
from locus.geometry import transform
from locus.scenes import SceneReading
from locus.scenes.patches import points_at
from locus.tasks.matching import PAPER, Rule
from locus.tasks.relative_pose import relative_pose

RULES = {"mutual": Rule(), "paper": PAPER}
RIGHT = 0.3  # metres that the two points of a right match lie apart, at most
CONFIDENT = (0.0, 0.1, 0.5, 0.9, 1.0)  # ranges of confidence, and the degrees that it promises a rotation is right to:
PROMISED = 15.0


@dataclass(frozen=True)
class RelativePoses(Benchmark):
    """How well is the motion between two frames found (the paper's Table 3)?

    Further methods: sift-ratio, superpoint-nn, superpoint-fginn, superpoint-lightglue, and predictions:FILE, the
    answers of a system run elsewhere (docs/evaluation.md).
    """

    pairs: int = 50
    """Pairs drawn from each scene for each range of overlap, as far as there are any."""
    overlap: tuple[float, ...] = OVERLAP
    """Where ranges of overlap begin and end, from 0 to 1: the lesser share that each frame sees of the other."""
    baseline: float = 0.0
    """Metres that the two cameras of a drawn pair are apart, at least."""
    pairs_file: Path | None = None
    """Instead: a file of lines `name_a name_b`, or of SuperGlue's 38 values, whose motion and intrinsics then count."""
    solver: Literal["5-point", "3d-3d"] = "5-point"
    """5-point RANSAC from pixels, or 3D–3D alignment with the depth of both frames."""
    translation_scale: Literal["truth", "metric"] = "truth"
    """Length of the estimated translation: the true one (the paper's protocol), or as estimated, which takes depth."""
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
        if self.translation_scale == "metric" and self.solver != "3d-3d":
            raise EvaluationError(
                "pixels alone do not give a translation's length; --translation-scale metric takes --solver 3d-3d"
            )

    def measure(self, method: Competitor, patches: ScenePatches) -> dict[str, Any]:
        """Errors of every pair of one scene, None where there is no pose; and what its matches are worth."""
        pairs = self.compared(patches)
        if isinstance(method, PosePredictions):
            poses = method.poses(patches.scene.name, [pair.names for pair in pairs])
            return {"pairs": [self._described(pair, found) for pair, found in zip(pairs, poses, strict=True)]}
        if isinstance(method, Method):
            method = FeatureMatcher(method, self.radius, RULES[self.rule])
        if not isinstance(method, Matcher):
            raise EvaluationError(f"{method.label} gives neither features nor matches")
        return {"pairs": [self._matched(method, patches, pair) for pair in pairs]}

    def compared(self, patches: ScenePatches) -> list[FramePair]:
        """The pairs of one scene."""
        if self.pairs_file is None:
            pairs = draw_pairs(patches, self.pairs, self.seed, self.overlap, self.baseline)
        else:
            pairs = named_pairs(patches, read_pairs(self.pairs_file))
        if not pairs:
            shares = f"see {self.overlap[0]:.0%} to {self.overlap[-1]:.0%} of each other"
            what = shares if self.pairs_file is None else f"are in {self.pairs_file}"
            raise EvaluationError(f"no two frames of {patches.scene.name} {what}")
        return pairs

    def _matched(self, matcher: Matcher, patches: ScenePatches, pair: FramePair) -> dict[str, Any]:
        matches = matcher.match(patches, pair.a, pair.b)
        points = [
            points_at(patches.frame(pair.a).depth, pair.cameras[0], matches.pixels_a),
            points_at(patches.frame(pair.b).depth, pair.cameras[1], matches.pixels_b),
        ]
        if self.solver == "3d-3d":
            answer = relative_pose(matches, *pair.cameras, *points, seed=self.seed)
        else:
            threshold = matcher.tolerance(matches)
            answer = relative_pose(matches, *pair.cameras, threshold=threshold, seed=self.seed)
        apart = np.linalg.norm(transform(pair.b_from_a, points[0]) - points[1], axis=1)
        apart = apart[np.isfinite(apart)]
        # In patches of the common grid, for keypoints too, so that it means the same for all.
        stuck = replace(matches, grid_a=patches.grid, grid_b=patches.grid).stuck
        return self._described(pair, answer.b_from_a) | {
            "confidence": answer.confidence,
            "matches": len(matches),
            "right": float((apart <= RIGHT).mean()) if len(apart) else None,
            "stuck": stuck if len(matches) else None,
        }

    def _described(self, pair: FramePair, estimated: Float[ndarray, "4 4"] | None) -> dict[str, Any]:
        truth = self.translation_scale == "truth"
        errors = None if estimated is None else error_of(estimated, pair.b_from_a, scale_from_truth=truth)
        return {"frames": pair.names, "overlap": pair.overlap, "errors": errors, "line": pair.line}

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        return {"truth": TrueMatcher, **MATCHERS, **predictions(given, PosePredictions)}

    def fingerprint(self) -> Any:
        """A pairs file stands for what is in it."""
        return asdict(self) | {"pairs_file": "None" if self.pairs_file is None else content_hash(self.pairs_file)}

    def tables(self, outcome: Outcome) -> list[Table]:
        """Table 3, the AUC, both by overlap, and what matches and confidences are worth."""
        made = [_main(outcome), _by_auc(outcome), _by_overlap(outcome)]
        matched = any("matches" in pair for part in outcome.parts for pair in part.measured["pairs"])
        return [*made, _by_matches(outcome), _by_confidence(outcome)] if matched else made

    def figures(self, outcome: Outcome) -> list[tuple[str, str]]:
        """The share of pairs whose rotation is right to so many degrees."""
        limits = np.linspace(0, 60, 121)

        def shares(method: Competitor) -> Float[ndarray, " limits"]:
            return (errors(outcome, method.label)[:, 1:2] <= limits).mean(axis=0)

        lines = outcome.lines(limits, shares)
        drawn = line_figure({"": lines}, "degrees", "share of pairs within", (0, 60), (0, 1))
        return [("Rotations right to so many degrees", drawn)]


def write_template(path: Path, protocol: RelativePoses, scenes: Sequence[Path], reading: SceneReading) -> int:
    """A predictions file with every pair and no pose, and how many there are."""
    lines = []
    for folder in scenes:
        patches = read_patches(reading.load(folder))
        for pair in protocol.compared(patches):
            a, b = pair.names
            lines.append(json.dumps({"scene": patches.scene.name, "a": a, "b": b, "b_from_a": None}))
    with atomic(path) as file:
        file.write_text("\n".join(lines) + "\n")
    return len(lines)


def errors(outcome: Outcome, label: str, overlap: tuple[float, float] = (0.0, 1.0)) -> Float[ndarray, "pairs 3"]:
    """Metres, degrees and degrees of direction of a method's pairs; infinite where there is no pose."""
    pairs = outcome.measured(label, "pairs")
    rows = np.array([pair["errors"] or [np.inf] * 3 for pair in pairs]).reshape(-1, 3)
    return rows[between(np.array([pair["overlap"] for pair in pairs]), *overlap)]


def _main(outcome: Outcome) -> Table:
    def cells(method: Competitor) -> list[Cell]:
        values = errors(outcome, method.label)
        posed = values[np.isfinite(values[:, 0])]
        return [
            cell
            for index, limit in ((0, 1.0), (1, 30.0))
            for cell in (
                estimate(values[:, index], median),
                estimate(posed[:, index]),
                estimate((values[:, index] <= limit).astype(float)),
            )
        ]

    protocol = outcome.benchmark
    columns = [Column("t median, m", 2, "lower"), Column("t mean, m", 2, "neither"), Column("t ≤ 1 m")]
    columns += [Column("R median, °", 1, "lower"), Column("R mean, °", 1, "neither"), Column("R ≤ 30°")]
    length = {"truth": "true length of the translation", "metric": "length of the translation from depth"}
    notes = [
        f"{_most(outcome)} pairs of {len(outcome.scenes)} scenes; {protocol.solver}, {protocol.rule} matches, "
        f"{length[protocol.translation_scale]}. t: between camera B's true and estimated position.",
        "A pair without a pose is wrong in medians, shares and AUC, and left out of means; 'no pose' is their share.",
        f"In brackets: 95 % of {DRAWS:,} bootstrap draws of pairs.",
        *_unfound(outcome),
        NOTE,
    ]
    return Table("Relative pose", columns, [*outcome.rows(cells), *reference_rows(RELATIVE_POSE)], notes)


def _most(outcome: Outcome, overlap: tuple[float, float] = (0.0, 1.0)) -> int:
    """Pairs of the method that has most of them."""
    return max(len(errors(outcome, part.method, overlap)) for part in outcome.parts)


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
    def cells(method: Competitor) -> list[Cell] | None:
        worse = errors(outcome, method.label)[:, 1:].max(axis=1)
        areas = [estimate(worse, partial(area_under_curve, threshold=limit)) for limit in (5.0, 10.0, 20.0)]
        return [*areas, float(np.isinf(worse).mean())] if len(worse) else None

    columns = [Column("AUC@5"), Column("AUC@10"), Column("AUC@20"), Column("no pose", 2, "neither")]
    note = "The worse of the angles of rotation and of direction of motion, as SuperGlue counts."
    return Table("Relative pose, area under the curve", columns, outcome.rows(cells), [note])


def _by_overlap(outcome: Outcome) -> Table:
    ranges = list(pairwise(outcome.benchmark.overlap))

    def cells(method: Competitor) -> list[Cell]:
        degrees = [errors(outcome, method.label, limits)[:, 1] for limits in ranges]
        return [cell for each in degrees for cell in (estimate(each, median), estimate((each <= 30).astype(float)))]

    names = [f"{low:.0%}–{high:.0%}" for low, high in ranges]
    columns = [
        column for name in names for column in (Column(f"R median, {name}", 1, "lower"), Column(f"R ≤ 30°, {name}"))
    ]
    counts = ", ".join(str(_most(outcome, limits)) for limits in ranges)
    note = f"Overlap: the lesser share that each frame sees of the other; {counts} pairs."
    return Table("Relative pose by overlap", columns, outcome.rows(cells), [note])


def _by_matches(outcome: Outcome) -> Table:
    def cells(method: Competitor) -> list[Cell] | None:
        pairs = [pair for pair in outcome.measured(method.label, "pairs") if "matches" in pair]
        names = ("matches", "right", "stuck")
        values = [np.array([pair[name] for pair in pairs if pair[name] is not None], float) for name in names]
        return [estimate(each) for each in values] if pairs else None

    columns = [Column("matches", 0, "neither"), Column(f"right ({RIGHT:g} m)"), Column("stuck", better="neither")]
    notes = [
        f"Mean over pairs. right: matches whose two points lie within {RIGHT:g} m of each other, of those with depth; "
        "stuck: matches at nearly the same position in both images.",
    ]
    return Table("Relative pose: the matches", columns, outcome.rows(cells), notes)


def _by_confidence(outcome: Outcome) -> Table:
    def cells(method: Competitor) -> list[Cell] | None:
        pairs = [pair for pair in outcome.measured(method.label, "pairs") if "confidence" in pair]
        posed = [pair for pair in pairs if pair["errors"]]
        right = np.array([pair["errors"][1] <= PROMISED for pair in posed], float)
        confidence = np.array([pair["confidence"] for pair in posed])
        inside = [(confidence > low) & (confidence <= high) for low, high in pairwise(CONFIDENT)]
        shares: list[Cell] = [f"{right[each].mean():.2f} of {each.sum()}" if each.any() else None for each in inside]
        return shares if pairs else None

    columns = [Column(f"{low:g}–{high:g}", 2, "neither") for low, high in pairwise(CONFIDENT)]
    note = f"Of the poses given with so much confidence, the share whose rotation is right to {PROMISED:g}°."
    return Table("Relative pose: right rotations by confidence", columns, outcome.rows(cells), [note])
