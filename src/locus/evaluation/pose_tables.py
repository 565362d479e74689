"""The tables and figures of relative pose: errors, the area under their curve, and what answers are worth."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.calibration import Judged, answered, reliability_figure, trust_table
from locus.evaluation.figures import line_figure
from locus.evaluation.methods import Competitor
from locus.evaluation.metrics import area_under_curve, median
from locus.evaluation.outcome import Outcome
from locus.evaluation.pairs import between, read_pairs
from locus.evaluation.published import RELATIVE_POSE
from locus.evaluation.table import Cell, Column, Table

RIGHT = 0.3  # metres that the two points of a right match lie apart, at most
NOTHING = 0.001  # of each other, that frames see which share nothing
COUNTED = (
    "A pair without a pose is wrong in medians, shares and AUC, and left out of means; 'no pose' is their share.",
    f"In brackets: 95 % of {DRAWS:,} bootstrap draws of pairs.",
)


def pose_tables(outcome: Outcome) -> list[Table]:
    """Table 3, the AUC, both by overlap, and what matches are worth and answers say of themselves."""
    made = [errors_table(outcome, _notes(outcome)), auc_table(outcome), _auc_by_overlap(outcome), _by_overlap(outcome)]
    matched = any("matches" in pair for part in outcome.parts for pair in part.measured["pairs"])
    trust = trust_table(outcome, "Relative pose: trust", partial(_answers, outcome))
    more = [_by_matches(outcome), _refused(outcome), trust] if matched else []
    return [*made, *more, RELATIVE_POSE]


def pose_figures(outcome: Outcome) -> list[tuple[str, str]]:
    """The share of pairs whose rotation is right to so many degrees; and what probabilities are worth."""
    limits = np.linspace(0, 60, 121)

    def shares(method: Competitor) -> Float[ndarray, " limits"]:
        return (errors(outcome, method.label)[:, 1:2] <= limits).mean(axis=0)

    lines = outcome.lines(limits, shares)
    drawn = line_figure({"": lines}, "degrees", "share of pairs within", (0, 60), (0, 1))
    return [
        ("Rotations right to so many degrees", drawn),
        reliability_figure(outcome, {"": partial(_answers, outcome)}),
    ]


def errors(outcome: Outcome, label: str, overlap: tuple[float, float] = (0.0, 1.0)) -> Float[ndarray, "pairs 3"]:
    """Metres, degrees and degrees of direction of a method's pairs; infinite where there is no pose."""
    pairs = outcome.measured(label, "pairs")
    rows = np.array([pair["errors"] or [np.inf] * 3 for pair in pairs]).reshape(-1, 3)
    return rows[between(np.array([pair.get("overlap", 1.0) for pair in pairs]), *overlap)]


def _answers(outcome: Outcome, method: Competitor) -> list[Judged]:
    return [pair["trust"] for pair in outcome.measured(method.label, "pairs") if pair.get("trust")]


def errors_table(outcome: Outcome, notes: Sequence[str]) -> Table:
    """Errors of translation and rotation, as the paper's Table 3 has them."""

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

    columns = [Column("t median, m", 2, "lower"), Column("t mean, m", 2, "neither"), Column("t ≤ 1 m")]
    columns += [Column("R median, °", 1, "lower"), Column("R mean, °", 1, "neither"), Column("R ≤ 30°")]
    return Table("Relative pose", columns, outcome.rows(cells), notes)


def _notes(outcome: Outcome) -> list[str]:
    protocol = outcome.benchmark
    length = {"truth": "true length of the translation", "metric": "length of the translation from depth"}
    return [
        f"{most(outcome)} pairs of {len(outcome.scenes)} scenes; {protocol.solver}, {protocol.rule} matches, "
        f"{length[protocol.translation_scale]}. t: between camera B's true and estimated position.",
        *COUNTED,
        *_unfound(outcome),
    ]


def most(outcome: Outcome, overlap: tuple[float, float] = (0.0, 1.0)) -> int:
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


def auc_table(outcome: Outcome) -> Table:
    """SuperGlue's measure."""

    def cells(method: Competitor) -> list[Cell] | None:
        worse = errors(outcome, method.label)[:, 1:].max(axis=1)
        areas = [estimate(worse, partial(area_under_curve, threshold=limit)) for limit in (5.0, 10.0, 20.0)]
        return [*areas, float(np.isinf(worse).mean())] if len(worse) else None

    columns = [Column("AUC@5"), Column("AUC@10"), Column("AUC@20"), Column("no pose", 2, "neither")]
    note = "The worse of the angles of rotation and of direction of motion, as SuperGlue counts."
    return Table("Relative pose, area under the curve", columns, outcome.rows(cells), [note])


def _auc_by_overlap(outcome: Outcome) -> Table:
    ranges = list(pairwise(outcome.benchmark.overlap))

    def cells(method: Competitor) -> list[Cell]:
        worse = [errors(outcome, method.label, limits)[:, 1:].max(axis=1) for limits in ranges]
        areas = [(each, partial(area_under_curve, threshold=limit)) for each in worse for limit in (5.0, 10.0, 20.0)]
        return [estimate(each, area) if len(each) else None for each, area in areas]

    columns = [Column(f"AUC@{limit}, {low:.0%}–{high:.0%}") for low, high in ranges for limit in (5, 10, 20)]
    return Table("Relative pose, area under the curve by overlap", columns, outcome.rows(cells))


def _by_overlap(outcome: Outcome) -> Table:
    ranges = list(pairwise(outcome.benchmark.overlap))

    def cells(method: Competitor) -> list[Cell]:
        degrees = [errors(outcome, method.label, limits)[:, 1] for limits in ranges]
        return [cell for each in degrees for cell in (estimate(each, median), estimate((each <= 30).astype(float)))]

    names = [f"{low:.0%}–{high:.0%}" for low, high in ranges]
    columns = [
        column for name in names for column in (Column(f"R median, {name}", 1, "lower"), Column(f"R ≤ 30°, {name}"))
    ]
    counts = ", ".join(str(most(outcome, limits)) for limits in ranges)
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


def _refused(outcome: Outcome) -> Table:
    """What the least probability of an answer keeps and refuses."""

    def cells(method: Competitor) -> list[Cell] | None:
        given = [pair["trust"] for pair in outcome.measured(method.label, "pairs") if "trust" in pair]
        apart = [pair["overlap"] < NOTHING for pair in outcome.measured(method.label, "pairs") if "trust" in pair]
        if not given:
            return None
        kept = np.array([answered(each) for each in given])
        right = np.array([bool(each and each["right"]) for each in given])
        found, nothing = np.array([each is not None for each in given]), np.array(apart)
        groups = (nothing, right, found & ~right & ~nothing)
        return [f"{(kept & group).sum()} of {group.sum()}" for group in groups]

    columns = [Column(name, better="neither") for name in ("sharing nothing, answered", "right, kept", "wrong, kept")]
    note = (
        f"Of pairs that see less than {NOTHING:.1%} of each other, those that are answered; of right answers about all "
        "pairs, and of wrong ones about pairs that share something, those whose probability is not too low. "
        "Everything else on this page counts all answers."
    )
    return Table("Relative pose: refused", columns, outcome.rows(cells), [note])
