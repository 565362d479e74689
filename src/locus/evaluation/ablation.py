"""Ablation: what a grid of trainings reached on the same unseen environments, as a table and setting by setting."""

from collections.abc import Mapping

import numpy as np

from locus.evaluation.bootstrap import estimate
from locus.evaluation.figures import Line, line_figure
from locus.evaluation.methods import ModelMethod
from locus.evaluation.runner import Outcome
from locus.evaluation.table import Column, Table

Varied = Mapping[str, Mapping[str, str]]
"""Of every training, by the label of its method: the settings that differ, and their values."""


def _values(outcome: Outcome, label: str, view: str) -> np.ndarray:
    """AP of every place, mean over batches and radii."""
    return np.array(
        [
            np.mean([batch[view]["AP"] for batches in part.measured["radii"].values() for batch in batches])
            for part in outcome.of(label)
        ]
    )


def tables(outcome: Outcome, varied: Varied) -> list[Table]:
    """One row a variant."""
    names = list(next(iter(varied.values())))
    rows = []
    for method in outcome.methods:
        if isinstance(method, ModelMethod):
            cells = [estimate(_values(outcome, method.label, view)) for view in ("cross-view", "all pairs")]
            rows.append(outcome.row(method, cells))
    columns = [Column("AP, cross-view"), Column("AP, all pairs")]
    notes = [
        f"One training each: differences within the noise between seeds mean nothing; vary seed too. {len(varied)} "
        f"trainings over {', '.join(names)}, evaluated on {len(outcome.scenes)} places that chose no checkpoint.",
        "In brackets: 95 % of bootstrap draws of places.",
    ]
    return [Table("Ablation", columns, rows, notes)]


def figures(outcome: Outcome, varied: Varied) -> list[tuple[str, str]]:
    """A panel for each setting: cross-view AP at each of its values, mean over all else."""
    drawn = []
    for name in next(iter(varied.values())):
        values = list(dict.fromkeys(settings[name] for settings in varied.values()))
        means = []
        for value in values:
            same = [label for label, settings in varied.items() if settings[name] == value]
            measured = [found.mean() for each in same if len(found := _values(outcome, each, "cross-view"))]
            means.append(np.mean(measured) if measured else np.nan)
        line = Line("mean over the other settings", np.arange(len(values), dtype=float), np.array(means))
        drawn.append((f"Cross-view AP against {name}", line_figure({"": [line]}, name, "AP", ticks=values)))
    return drawn
