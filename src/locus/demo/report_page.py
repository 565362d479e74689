"""The demo's page: every number on it was measured in the run that writes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from locus import pages
from locus.demo.drawings import ABOVE, error_curves, map_drawing, training_curves
from locus.demo.finding import CLOSE, Answers, Finding
from locus.demo.stage_log import program
from locus.evaluation.outcome import Outcome
from locus.evaluation.report import table_values
from locus.evaluation.table import Column, Row, Table

if TYPE_CHECKING:
    from locus.demo.pipeline import Results

COLUMNS = {"AP, cross-view": "in other views", "AP, all pairs": "in all views, its own too"}
WITHIN = f"within {CLOSE[0]:g} m and {CLOSE[1]:g}°"


def cross_view(outcome: Outcome, label: str) -> float:
    """Average precision in other views, the mean over houses and batches."""
    batches = [batch for part in outcome.of(label) for of in part.measured["radii"].values() for batch in of]
    return float(np.mean([batch["cross-view"]["AP"] for batch in batches]))


def said(finding: Finding) -> str:
    """What localization came to, in a sentence."""
    return (
        f"{WITHIN.capitalize()}: {_share(finding.here['with depth'])} images with depth, "
        f"{_share(finding.here['by colour alone'])} by colour alone; "
        f'{_refused(finding.elsewhere["with depth"])} images of another house are answered "not here".'
    )


def _share(answers: Answers) -> str:
    return f"{answers.close} of {len(answers)}"


def _refused(answers: Answers) -> str:
    return f"{answers.refused} of {len(answers)}"


def write_page(results: Results) -> None:
    ours, outcome = results.findings[0], results.outcome
    reached = [cross_view(outcome, method.label) for method in outcome.methods]
    retrieval = outcome.benchmark.tables(outcome)[0]
    pages.write(
        results.folder.report,
        "demo",
        results=results,
        house=results.houses.unseen[0].name,
        reached=reached[-1],
        untrained=max(reached[:-1]),
        within=WITHIN,
        placed={kind: _share(answers) for kind, answers in ours.here.items()},
        refused={kind: _refused(answers) for kind, answers in ours.elsewhere.items()},
        retrieval=table_values(_precision(retrieval)),
        retrieval_notes=retrieval.notes[:-1],  # the last is of the paper's rows, which are not shown
        localization=table_values(_localization(results.findings)),
        map_drawing=map_drawing(ours, results.seen),
        above=ABOVE,
        error_curves=error_curves(results.findings),
        training_curves=training_curves(results.metrics) if results.metrics else "",
        program=program(),
    )


def _precision(table: Table) -> Table:
    """Of the benchmark's main table, the columns and rows for a first look."""
    names = [column.name for column in table.columns]
    places = [names.index(name) for name in COLUMNS]
    columns = [replace(table.columns[at], name=name) for at, name in zip(places, COLUMNS.values(), strict=True)]
    rows = [replace(row, cells=[row.cells[at] for at in places]) for row in table.rows if row.kind == "measured"]
    return Table("Average precision", columns, rows)


def _localization(findings: list[Finding]) -> Table:
    columns = [
        Column(WITHIN),
        Column("median error, metres", 2, "lower"),
        Column("median error, degrees", 1, "lower"),
        Column('answered "not here"'),
        Column('of another house, answered "not here"'),
    ]
    rows = [
        Row(f"{each.label}, {kind}", [_share(here), *here.median, _refused(here), _refused(each.elsewhere[kind])])
        for each in findings
        for kind, here in each.here.items()
    ]
    return Table("Localization", columns, rows)
