"""The report: one HTML file with tables, curves and pictures; and the tables as Markdown, LaTeX and JSON beside it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from locus.evaluation.outcome import Outcome
from locus.evaluation.table import Table, rendered, texts
from locus.files import atomic
from locus.scenes.inspection_page import STYLE, figure
from locus.scenes.scene_pictures import Picture

OWN_STYLE = """
body { max-width: 1200px; }
table.figures td, table.figures th { padding: .25em .8em .25em 0; text-align: right; white-space: nowrap; }
table.figures th { border-bottom: 2px solid #222; font-size: .9em; vertical-align: bottom; white-space: normal; }
table.figures td:first-child, table.figures th:first-child { text-align: left; color: #222; }
table.figures tr:nth-child(even) { background: #f7f7f7; } tr.reference td, tr.bound td { color: #888 !important; }
tr.unavailable td { text-align: left !important; color: #999 !important; white-space: normal; }
span.interval { color: #888; font-size: .85em; } .scroll { overflow-x: auto; } svg { max-width: 100%; height: auto; }
.failure { border-left: 4px solid #b3261e; padding-left: .8em; }
"""


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
    page = folder / "report.html"
    written = {
        page: page_of(outcome, shown),
        folder / "tables.md": "\n\n".join(rendered(table, "markdown") for table in shown.tables) + "\n",
        folder / "tables.tex": "\n\n".join(rendered(table, "latex") for table in shown.tables) + "\n",
        folder / "results.json": results_json(outcome, shown.tables),
    }
    for path, text in written.items():
        with atomic(path) as file:
            file.write_text(text, encoding="utf-8")
    return page


def results_json(outcome: Outcome, tables: Sequence[Table]) -> str:
    """Tables, and every part they were made from."""
    return json.dumps({**outcome.json(), "tables": [table.json() for table in tables]}, indent=1) + "\n"


def page_of(outcome: Outcome, shown: Shown) -> str:
    title = f"LoCUS: {outcome.benchmark.name}"
    protocol = ", ".join(
        f"{name.replace('_', ' ')} {_plain(value)}" for name, value in asdict(outcome.benchmark).items()
    )
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>",
        f"<style>{STYLE}{OWN_STYLE}</style><h1>{escape(title)}</h1>",
        f"<p class=note>{escape(', '.join(outcome.scenes))}</p><p class=note>Protocol: {escape(protocol)}</p>",
        *(table_html(table) for table in shown.tables),
        *(f"<h2>{escape(caption)}</h2><div class=scroll>{svg}</div>" for caption, svg in shown.figures),
    ]
    if shown.pictures:
        parts += ["<h2>Pictures</h2>", *(figure(picture, caption) for caption, picture in shown.pictures)]
    if outcome.failures:
        lines = (f"<p class=failure>{escape(what)}: {escape(why)}</p>" for what, why in outcome.failures.items())
        parts += ["<h2>What could not be measured</h2>", *lines]
    return "".join(parts)


def table_html(table: Table) -> str:
    best = table.best()
    heads = "".join(f"<th>{escape(column.name)}</th>" for column in table.columns)
    lines = []
    for index, (row, cells) in enumerate(zip(table.rows, texts(table), strict=True)):
        if row.kind == "unavailable":
            inside = f"<td>{escape(row.label)}</td><td colspan={len(table.columns)}>{escape(cells[1])}</td>"
        else:
            inside = f"<td>{escape(cells[0])}</td>" + "".join(
                f"<td>{_cell(text, (index, place) in best)}</td>" for place, text in enumerate(cells[1:])
            )
        lines.append(f"<tr class={row.kind}>{inside}</tr>")
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in table.notes)
    body = f"<table class=figures><tr><th></th>{heads}</tr>{''.join(lines)}</table>"
    return f"<h2>{escape(table.title)}</h2><div class=scroll>{body}</div>{notes}"


def _cell(text: str, best: bool) -> str:
    value, bracket, interval = text.partition(" [")
    value = f"<b>{escape(value)}</b>" if best else escape(value)
    return value + (f" <span class=interval>[{escape(interval)}</span>" if bracket else "")


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
