"""What a retrieval run says: Table 1, by place, by landmark; precision against recall."""

import numpy as np

from locus.evaluation.bootstrap import DRAWS, Estimate, estimate
from locus.evaluation.figures import Line, line_figure
from locus.evaluation.methods import Chance, Competitor, Method, Truth
from locus.evaluation.published import NOTE, PLACE_RECOGNITION
from locus.evaluation.ranking import VIEWS
from locus.evaluation.runner import Outcome
from locus.evaluation.table import Column, Row, Table, unavailable

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def tables(outcome: Outcome) -> list[Table]:
    """For every radius."""
    made = []
    for radius in outcome.benchmark.radii:
        made += [_main(outcome, f"{radius:g}"), _by_place(outcome, f"{radius:g}"), _by_landmark(outcome, f"{radius:g}")]
    return made


def figures(outcome: Outcome) -> list[tuple[str, str]]:
    """(caption, SVG) of precision against recall, for every radius."""
    made = []
    for radius in outcome.benchmark.radii:
        panels = {view: _curves(outcome, f"{radius:g}", view) for view in reversed(VIEWS)}
        caption = f"Precision where recall reaches a share of all pairs, radius {radius:g} m, mean over batches."
        made.append((caption, line_figure(panels, "recall", "precision", (0, 1), (0, 1))))
    return made


def _curves(outcome: Outcome, radius: str, view: str) -> list[Line]:
    lines = []
    for method in outcome.methods:
        batches = [batch for part in outcome.of(method.label) for batch in part.measured["radii"][radius]]
        if batches and isinstance(method, Method) and not isinstance(method, Truth):
            curve = np.mean([batch[view]["curve"] for batch in batches], axis=0)
            recall = np.arange(1, len(curve) + 1) / len(curve)
            lines.append(Line(outcome.label(method), recall, curve, dashed=isinstance(method, Chance)))
    return lines


def _units(outcome: Outcome, label: str, group: str, radius: str, view: str, measure: str) -> np.ndarray:
    """One value a place, the mean of its batches; one a batch if there is but one place, for all methods."""
    parts = outcome.of(label, group)
    places = [[batch[view][measure] for batch in part.measured["radii"][radius]] for part in parts]
    if not places or any(value is None for values in places for value in values):
        return np.zeros(0)
    single = len({part.scene for part in outcome.parts if part.group == group}) == 1
    return np.array(places[0]) if single else np.array([np.mean(values) for values in places])


def _main(outcome: Outcome, radius: str) -> Table:
    groups = [group for group in ("training", "unseen") if group in outcome.groups]
    keys = [(view, measure, group) for view in VIEWS for measure in ("V-Smooth-AP", "AP") for group in groups]
    columns = [
        Column(f"{measure}, {view}" + (f", {group}" if len(groups) > 1 else "")) for view, measure, group in keys
    ]
    rows = [
        outcome.row(
            method,
            [estimate(_units(outcome, method.label, group, radius, view, measure)) for view, measure, group in keys],
        )
        if isinstance(method, Competitor)
        else unavailable(method.label, method.reason)
        for method in outcome.methods
    ]
    for name, (smooth_train, smooth_val, train, val) in PLACE_RECOGNITION.items():
        paper = {("V-Smooth-AP", "training"): smooth_train, ("V-Smooth-AP", "unseen"): smooth_val}
        paper |= {("AP", "training"): train, ("AP", "unseen"): val}
        cells = [paper[measure, group] if view == "all pairs" else None for view, measure, group in keys]
        rows.append(Row(f"paper: {name}", [None if cell is None else Estimate(cell) for cell in cells], "reference"))
    protocol = outcome.benchmark
    pairs = [batch["all pairs"]["pairs"] for part in outcome.parts for batch in part.measured["radii"][radius]]
    chance = [
        np.mean([batch[view]["chance"] for part in outcome.parts for batch in part.measured["radii"][radius]])
        for view in VIEWS
    ]
    unit = "batches of one place" if len(outcome.scenes) == 1 else "places"
    notes = [
        f"{len(outcome.scenes)} unseen places, {protocol.batches} batches of {protocol.frames} frames each, "
        f"{protocol.landmarks} landmarks, every patch; κ = {protocol.kappa:g}, τ = {protocol.tau:g}, "
        f"seed {protocol.seed}; {np.mean(pairs):,.0f} pairs a batch, "
        f"of which {chance[0]:.2%} are right, {chance[1]:.2%} of the cross-view ones: what chance gives.",
        f"In brackets: 95 % of {DRAWS:,} bootstrap draws of {unit}. cross-view: without pairs of one frame.",
        NOTE,
    ]
    return Table(f"Retrieval, radius {radius} m", columns, rows, notes)


def _by_place(outcome: Outcome, radius: str) -> Table:
    rows = []
    for method in outcome.methods:
        if isinstance(method, Method):
            values = {
                part.scene: np.mean([batch["cross-view"]["AP"] for batch in part.measured["radii"][radius]])
                for part in outcome.of(method.label)
            }
            cells = [float(values[scene]) if scene in values else None for scene in outcome.scenes]
            rows.append(outcome.row(method, cells))
    return Table(f"AP, cross-view, by place, radius {radius} m", [Column(scene) for scene in outcome.scenes], rows)


def _by_landmark(outcome: Outcome, radius: str) -> Table:
    rows = []
    for method in outcome.methods:
        batches = [batch for part in outcome.of(method.label) for batch in part.measured["radii"][radius]]
        if isinstance(method, Method) and batches:
            # Quantiles of every batch hold as many landmarks as any other's: together they are a sample of all.
            values = np.concatenate([batch["cross-view"]["landmarks"] for batch in batches])
            rows.append(outcome.row(method, np.quantile(values, QUANTILES).tolist()))
    columns = [Column("median" if share == 0.5 else f"{share:.0%}") for share in QUANTILES]
    title = f"AP of single landmarks, cross-view, radius {radius} m: this share of landmarks reaches no more than"
    return Table(title, columns, rows)
