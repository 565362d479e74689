"""The report: one page with tables, curves and pictures; and the tables as Markdown, LaTeX and JSON beside it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from locus import pages
from locus.evaluation.outcome import Outcome
from locus.evaluation.table import Table, cells_of, rendered
from locus.files import atomic, write_json
from locus.pages.pictures import Picture


@dataclass(frozen=True)
class Shown:
    """What a benchmark has to show for an outcome."""

    tables: Sequence[Table]
    figures: Sequence[tuple[str, str]] = ()
    """(caption, SVG)."""
    pictures: Sequence[tuple[str, Picture]] = ()
    """(caption, picture)."""


def write_report(folder: Path, outcome: Outcome, shown: Shown) -> Path:
    """Write report.html, tables.md, tables.tex and results.json; returns the page."""
    written = {
        "tables.md": "\n\n".join(rendered(table, "markdown") for table in shown.tables) + "\n",
        "tables.tex": "\n\n".join(rendered(table, "latex") for table in shown.tables) + "\n",
    }
    page = pages.write(
        folder / "report.html",
        "evaluation",
        benchmark=outcome.benchmark.name,
        tables=[table_values(table) for table in shown.tables],
        failures=outcome.failures,
        figures=shown.figures,
        pictures=shown.pictures,
        protocol=[
            ("scenes", ", ".join(outcome.scenes)),
            *((name.replace("_", " "), _plain(value)) for name, value in asdict(outcome.benchmark).items()),
        ],
    )
    for name, text in written.items():
        with atomic(folder / name) as file:
            file.write_text(text, encoding="utf-8")
    write_results(folder / "results.json", outcome, shown.tables)
    return page


def write_results(path: Path, outcome: Outcome, tables: Sequence[Table]) -> None:
    """Tables, and every part they were made from."""
    write_json(path, {**outcome.json(), "tables": [table.json() for table in tables]})


def table_values(table: Table) -> dict[str, Any]:
    """A table as the macro `numbers` of a page takes it."""
    rows = [
        {"kind": row.kind, "label": row.label, "cells": cells}
        for row, cells in zip(table.rows, cells_of(table), strict=True)
    ]
    columns = [column.name for column in table.columns]
    return {"title": table.title, "columns": columns, "rows": rows, "notes": table.notes}


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
