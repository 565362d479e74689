"""Tables: the same rows as aligned text, Markdown, LaTeX and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from locus.evaluation.bootstrap import Estimate

Style = Literal["text", "markdown", "latex"]
Cell = Estimate | float | str | None


@dataclass(frozen=True)
class Column:
    name: str
    digits: int = 3
    better: Literal["higher", "lower", "neither"] = "higher"


@dataclass(frozen=True)
class Row:
    """One method. Only a `measured` one can be the best of a column."""

    label: str
    cells: Sequence[Cell]
    kind: Literal["measured", "bound", "partial", "reference", "unavailable"] = "measured"
    """Bounds (ground truth, chance) are no competitors, a partial row lacks scenes, a reference is of other data."""


def unavailable(label: str, reason: str) -> Row:
    """The row of a method that is not available here."""
    return Row(label, [f"not available: {reason}"], "unavailable")


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = field(default=())

    def best(self) -> set[tuple[int, int]]:
        """(row, column) of the best measured value of each column, as it is printed, if several rows compete."""
        found = set()
        for at, column in enumerate(self.columns):
            sign = {"higher": 1, "lower": -1, "neither": 0}[column.better]
            values = {
                index: sign * round(value, column.digits)
                for index, row in enumerate(self.rows)
                if row.kind == "measured" and at < len(row.cells) and (value := number(row.cells[at])) is not None
            }
            if sign and len(values) > 1:
                found |= {(index, at) for index, value in values.items() if value == max(values.values())}
        return found

    def json(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "title": self.title,
            "columns": [column.name for column in self.columns],
            "rows": [
                {"label": row.label, "kind": row.kind, "cells": [_plain(cell) for cell in row.cells]}
                for row in self.rows
            ],
            "notes": list(self.notes),
        }


def number(cell: Cell) -> float | None:
    value = cell.value if isinstance(cell, Estimate) else cell
    return value if isinstance(value, int | float) and np.isfinite(value) else None


def _plain(cell: Cell) -> Any:
    if not isinstance(cell, Estimate):
        return cell
    told = {"value": cell.value, "low": cell.low, "high": cell.high}
    # JSON has no infinity.
    return {name: value if np.isfinite(value) else None for name, value in told.items() if value is not None}


def shown(cell: Cell, digits: int) -> str:
    """A value, with its interval in brackets."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return "–"
    if isinstance(cell, Estimate) and cell.low is not None and cell.high is not None:
        return f"{_digits(cell.value, digits)} [{_digits(cell.low, digits)}, {_digits(cell.high, digits)}]"
    return _digits(cell.value if isinstance(cell, Estimate) else cell, digits)


def _digits(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("inf", "∞").replace("nan", "–")


def rendered(table: Table, style: Style = "text") -> str:
    return {"text": _text, "markdown": _markdown, "latex": _latex}[style](table)


def texts(table: Table) -> list[list[str]]:
    """Every cell as it is shown, labels first; a row that is not available has its reason in the first cell."""
    lines = []
    for row in table.rows:
        cells = [shown(cell, column.digits) for cell, column in zip(row.cells, table.columns, strict=False)]
        lines.append([row.label, *cells, *[""] * (len(table.columns) - len(cells))])
    return lines


def _text(table: Table) -> str:
    lines = [["", *(column.name for column in table.columns)], *texts(table)]
    kinds = ["head", *(row.kind for row in table.rows)]
    # A reason runs on over the columns that it has no values for.
    aligned = [line for line, kind in zip(lines, kinds, strict=True) if kind != "unavailable"]
    widths = [max(map(len, column)) for column in zip(*aligned, strict=True)]
    widths[0] = max(len(line[0]) for line in lines)
    body = []
    for line, kind in zip(lines, kinds, strict=True):
        cells = line[1:2] if kind == "unavailable" else [c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        body.append("  ".join([line[0].ljust(widths[0]), *cells]))
    rule = "─" * max(len(line) for line in (body[0], table.title))
    notes = [f"  {note}" for note in table.notes]
    return "\n".join(line.rstrip() for line in [table.title, rule, *body, *notes])


def _markdown(table: Table) -> str:
    best = table.best()

    def cell(text: str, index: int, at: int) -> str:
        text = text.replace("|", "\\|")
        return f"**{text}**" if (index, at) in best else text

    lines = [
        "| " + " | ".join(["", *(column.name for column in table.columns)]) + " |",
        "|---" * (len(table.columns) + 1) + "|",
    ]
    for index, line in enumerate(texts(table)):
        cells = [cell(text, index, at) for at, text in enumerate(line[1:])]
        lines.append("| " + " | ".join([line[0].replace("|", "\\|"), *cells]) + " |")
    return "\n".join([f"**{table.title}**", "", *lines, *[f"\n{note}" for note in table.notes]])


LATEX = {letter: rf"\{letter}" for letter in "&%#_${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≤": r"$\leq$",
    "°": r"$^\circ$",
    "–": "--",
    "κ": r"$\kappa$",
    "×": r"$\times$",
    "∞": r"$\infty$",
}


def _latex(table: Table) -> str:
    """For booktabs."""
    best = table.best()

    def safe(text: str) -> str:
        return "".join(LATEX.get(letter, letter) for letter in text)

    lines = [r"\begin{tabular}{@{}l" + "c" * len(table.columns) + "@{}}", r"\toprule"]
    lines += [" & ".join(["", *(safe(column.name) for column in table.columns)]) + r" \\", r"\midrule"]
    for index, (row, line) in enumerate(zip(table.rows, texts(table), strict=True)):
        if row.kind == "unavailable":
            lines.append(rf"{safe(row.label)} & \multicolumn{{{len(table.columns)}}}{{l}}{{{safe(line[1])}}} \\")
            continue
        cells = [rf"\textbf{{{safe(text)}}}" if (index, at) in best else safe(text) for at, text in enumerate(line[1:])]
        lines.append(" & ".join([safe(row.label), *cells]) + r" \\")
    notes = [f"% {note}" for note in table.notes]
    return "\n".join([f"% {table.title}", *notes, *lines, r"\bottomrule", r"\end{tabular}"])
