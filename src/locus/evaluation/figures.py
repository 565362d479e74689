"""Curves for the report, as SVG that needs nothing else."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Float
from numpy import ndarray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#1f4e79", "#c1502e", "#4a8f5a", "#7a5aa6", "#c99a2e", "#3d98a8", "#a84878", "#6b6b6b")


@dataclass(frozen=True)
class Line:
    label: str
    x: Float[ndarray, " n"]
    y: Float[ndarray, " n"]
    dashed: bool = False
    """Grey and dashed: a bound, not a competitor."""


def line_figure(
    panels: Mapping[str, Sequence[Line]],
    x: str,
    y: str,
    x_limits: tuple[float | None, float | None] = (None, None),
    y_limits: tuple[float | None, float | None] = (0, None),
    *,
    log: bool = False,
    ticks: Sequence[str] = (),
) -> str:
    """Panels side by side that share their axes; a line has the same colour in each; `ticks` name x = 0, 1, 2 …"""
    from matplotlib.figure import Figure

    labels = dict.fromkeys(line.label for lines in panels.values() for line in lines if not line.dashed)
    colours = {label: COLOURS[index % len(COLOURS)] for index, label in enumerate(labels)}
    figure = Figure(figsize=(4.6 * len(panels) + 0.4, 3.8), layout="constrained")
    for axes, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for line in lines:
            label = line.label.replace("$", r"\$")  # a name is no formula
            if line.dashed:
                axes.plot(line.x, line.y, color="#767676", linestyle="--", linewidth=1, label=label)
            else:
                marker = "o" if len(line.x) < 20 else None
                axes.plot(line.x, line.y, color=colours[line.label], marker=marker, markersize=4, label=label)
        axes.set(title=title, xlabel=x, ylabel=y, xlim=x_limits, ylim=y_limits)
        if log:
            axes.set_xscale("log")
        if ticks:
            axes.set_xticks(range(len(ticks)), ticks)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#dddddd", linewidth=0.5)
    if any(panels.values()):
        axes.legend(frameon=False, fontsize=8)
    return as_svg(figure)


def as_svg(figure: "Figure") -> str:
    """A figure as text inside a page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.StringIO()
    # Text stays text; a fixed salt and no metadata make the same figure the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "locus", "font.family": "sans-serif"}):
        FigureCanvasSVG(figure).print_svg(file, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    drawn = file.getvalue()
    return drawn[drawn.index("<svg") :]
