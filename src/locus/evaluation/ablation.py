"""Ablation: what a grid of trainings reached on the same unseen scenes, as a table and setting by setting."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.bootstrap import estimate
from locus.evaluation.figures import Line, line_figure
from locus.evaluation.outcome import Outcome
from locus.evaluation.table import Cell, Column, Row, Table

PAIRS = ("cross-view", "all pairs")

Varied = Mapping[str, Mapping[str, str]]
"""Of every training, by the label of its method: the settings that differ, and their values."""


def tables(outcome: Outcome, varied: Varied) -> list[Table]:
    """One row a training; and, if the seed is varied, one row for all trainings that differ by nothing else."""
    names = list(next(iter(varied.values())))
    count = f"{len(varied)} trainings over {', '.join(names)}, evaluated on {len(outcome.scenes)} unseen scenes."
    seeds = "" if "seed" in names else " One training each: vary the seed too, to see the noise between seeds."
    rows = outcome.rows(lambda method: [estimate(_values(outcome, method.label, pairs)) for pairs in PAIRS])
    columns = [Column(f"AP, {pairs}") for pairs in PAIRS]
    made = [Table("Ablation", columns, rows, [count + seeds, "In brackets: 95 % of bootstrap draws of scenes."])]
    return [*made, _over_seeds(outcome, varied)] if "seed" in names else made


def figures(outcome: Outcome, varied: Varied) -> list[tuple[str, str]]:
    """A panel for each setting: cross-view AP at each of its values, mean over all else."""
    drawn = []
    for name in next(iter(varied.values())):
        values = list(dict.fromkeys(settings[name] for settings in varied.values()))
        means = []
        for value in values:
            reached = _reached(outcome, [each for each in varied if varied[each][name] == value], "cross-view")
            means.append(np.mean(reached) if len(reached) else np.nan)
        line = Line("mean over the other settings", np.arange(len(values), dtype=float), np.array(means))
        drawn.append((f"Cross-view AP against {name}", line_figure({"": [line]}, name, "AP", ticks=values)))
    return drawn


def _values(outcome: Outcome, label: str, pairs: str) -> Float[ndarray, " scenes"]:
    """AP of every scene, mean over batches and radii."""
    return np.array(
        [
            np.mean([batch[pairs]["AP"] for batches in part.measured["radii"].values() for batch in batches])
            for part in outcome.of(label)
        ]
    )


def _reached(outcome: Outcome, labels: Sequence[str], pairs: str) -> Float[ndarray, " trainings"]:
    """AP of each of some trainings, mean over scenes."""
    return np.array([found.mean() for label in labels if len(found := _values(outcome, label, pairs))])


def _over_seeds(outcome: Outcome, varied: Varied) -> Table:
    groups: dict[str, list[str]] = {}
    for label, settings in varied.items():
        same = " ".join(f"{name}={value}" for name, value in settings.items() if name != "seed")
        groups.setdefault(same or "all", []).append(label)
    rows = []
    for name, labels in groups.items():
        cells: list[Cell] = []
        for pairs in PAIRS:
            reached = _reached(outcome, labels, pairs)
            cells += [float(reached.mean())] if len(reached) else [None]
            cells += [float(reached.std(ddof=1))] if len(reached) > 1 else [None]
        rows.append(Row(name, cells))
    columns = [each for pairs in PAIRS for each in (Column(f"AP, {pairs}"), Column("± over seeds", better="neither"))]
    note = "Mean and standard deviation over trainings that differ by their seed alone."
    return Table("Ablation over seeds", columns, rows, [note])
