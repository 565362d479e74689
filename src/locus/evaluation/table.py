"""Tables: the same rows as aligned text, Markdown, LaTeX and JSON."""

from collections.abc import Iterable, Sequence
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
            "digits": [column.digits for column in self.columns],
            "better": [column.better for column in self.columns],
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


def cells_of(table: Table) -> list[list[tuple[str, bool]]]:
    """Of every row, the cells as they are shown, and whether each is the best of its column.

    A row that is not available has its reason in the first cell.
    """
    best, rows = table.best(), []
    for index, row in enumerate(table.rows):
        texts = [shown(cell, column.digits) for cell, column in zip(row.cells, table.columns, strict=False)]
        texts += [""] * (len(table.columns) - len(texts))
        rows.append([(text, (index, at) in best) for at, text in enumerate(texts)])
    return rows


def _text(table: Table) -> str:
    lines = [["", *(column.name for column in table.columns)]]
    lines += [[row.label, *(text for text, _ in cells)] for row, cells in zip(table.rows, cells_of(table), strict=True)]
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
    def line(texts: Iterable[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    lines = [line(["", *(column.name for column in table.columns)]), "|---" * (len(table.columns) + 1) + "|"]
    for row, cells in zip(table.rows, cells_of(table), strict=True):
        lines.append(line([row.label, *(f"**{text}**" if best else text for text, best in cells)]))
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

    def safe(text: str) -> str:
        return "".join(LATEX.get(letter, letter) for letter in text)

    lines = [r"\begin{tabular}{@{}l" + "c" * len(table.columns) + "@{}}", r"\toprule"]
    lines += [" & ".join(["", *(safe(column.name) for column in table.columns)]) + r" \\", r"\midrule"]
    for row, cells in zip(table.rows, cells_of(table), strict=True):
        texts = [rf"\textbf{{{safe(text)}}}" if best else safe(text) for text, best in cells]
        if row.kind == "unavailable":
            texts = [rf"\multicolumn{{{len(table.columns)}}}{{l}}{{{texts[0]}}}"]
        lines.append(" & ".join([safe(row.label), *texts]) + r" \\")
    notes = [f"% {note}" for note in table.notes]
    return "\n".join([f"% {table.title}", *notes, *lines, r"\bottomrule", r"\end{tabular}"])
