"""What a segmentation run says: Table 2, and class by class."""

import numpy as np

from locus.evaluation.bootstrap import DRAWS, estimate
from locus.evaluation.methods import Competitor
from locus.evaluation.published import NOTE, SEGMENTATION, reference_rows
from locus.evaluation.runner import Outcome
from locus.evaluation.segmentation import class_name, names_in
from locus.evaluation.segmentation_metrics import GROUPS
from locus.evaluation.table import Column, Row, Table, unavailable

MEASURES = ("mAP", "mIoU", "Jaccard")
MOST = 30  # classes listed one by one


def tables(outcome: Outcome) -> list[Table]:
    return [_main(outcome), _printed(outcome), _by_class(outcome)]


def figures(outcome: Outcome) -> list[tuple[str, str]]:
    return []


def _values(outcome: Outcome, label: str, group: str, measure: str) -> np.ndarray:
    """One a place that has any of the group."""
    groups = [part.measured["groups"].get(group, {}) for part in outcome.of(label)]
    return np.array([each[measure] for each in groups if each.get(measure) is not None], float)


def _main(outcome: Outcome) -> Table:
    keys = [(group, measure) for group in GROUPS for measure in MEASURES]
    rows = []
    for method in outcome.methods:
        if isinstance(method, Competitor):
            cells = [estimate(_values(outcome, method.label, *key)) for key in keys]
            rows.append(outcome.row(method, cells))
        else:
            rows.append(unavailable(method.label, method.reason))
    places = {part.scene: part.measured for part in outcome.parts}  # all methods are scored on the same patches
    names = ("patches", "straddling", "absent classes", "absent patches")
    counts = {name: sum(measured[name] for measured in places.values()) for name in names}
    without = [scene for scene, measured in places.items() if "things" not in measured["groups"]]
    notes = [
        f"{len(outcome.scenes)} places, {outcome.benchmark.split}; {counts['patches']:,} patches scored, "
        f"{counts['straddling']:,} that straddle or are unlabelled left out. What the probe was never shown is left "
        f"out for every method: {counts['absent classes']} classes or objects, {counts['absent patches']:,} patches.",
        "Jaccard: TP/(TP+FP+FN) over all classes together, as the authors' code counts."
        + (f" No things in {', '.join(without)}." if without else ""),
        f"In brackets: 95 % of {DRAWS:,} bootstrap draws of places."
        if len(outcome.scenes) > 1
        else "One place: nothing to draw intervals from.",
        NOTE,
    ]
    columns = [Column(f"{measure}, {group}") for group, measure in keys]
    return Table("Segmentation", columns, [*rows, *reference_rows(SEGMENTATION)], notes)


def _printed(outcome: Outcome) -> Table:
    rows = []
    for method in outcome.methods:
        if isinstance(method, Competitor):
            values = [_values(outcome, method.label, group, "Jaccard as printed") for group in GROUPS]
            rows.append(outcome.row(method, [estimate(each) for each in values]))
    note = "TP/(FP+FN), mean over classes; places where a class is told without error, where it is infinite, left out."
    return Table("Jaccard as the paper prints it", [Column(group) for group in GROUPS], rows, [note])


def _by_class(outcome: Outcome) -> Table:
    """AP and IoU by class, objects of one class together."""
    methods = [method for method in outcome.methods if isinstance(method, Competitor) and outcome.of(method.label)]
    every = [each for part in outcome.of(methods[0].label) for each in part.measured["classes"]]
    counts = {name: sum(class_name(each["name"], each["kind"]) == name for each in every) for name in names_in(every)}
    shown = sorted(counts, key=lambda name: (-counts[name], name))[:MOST]
    rows = []
    for name in shown:
        cells: list[float | None] = [float(counts[name])]
        for method in methods:
            own = [
                each
                for part in outcome.of(method.label)
                for each in part.measured["classes"]
                if class_name(each["name"], each["kind"]) == name
            ]
            precisions = [each["average_precision"] for each in own if each["average_precision"] is not None]
            cells.append(float(np.mean(precisions)) if precisions else None)
            cells.append(float(np.mean([each["iou"] for each in own])) if own else None)
        rows.append(Row(name, cells))
    columns = [Column("objects", 0, "neither")]
    columns += [
        Column(f"{measure}, {outcome.label(m)}", better="neither") for m in methods for measure in ("AP", "IoU")
    ]
    left = len(counts) - len(shown)
    notes = [f"Means over objects; the {len(shown)} commonest of {len(counts)} classes."] if left else []
    return Table("Segmentation by class", columns, rows, notes)
