"""Drawings of the page: how training went, the map from above, the errors of localization."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.demo.finding import Finding, Pose
from locus.evaluation.figures import COLOURS, Line, as_svg, line_figure
from locus.features.dense import SceneFeatures

ABOVE = 1.9  # metres: what hangs higher would hide the rest of a plan
ARROW = 0.3  # metres
REFUSED = "#b3261e"
VIEWS = {"cross-view": "in other views", "all pairs": "in all views, its own too"}


def training_curves(metrics: Sequence[Mapping[str, Any]]) -> str:
    """AP while training, beside the untrained network's."""
    steps = np.array([row["step"] for row in metrics], np.float64)
    panels = {}
    for pairs, title in VIEWS.items():
        lines = [
            Line(label, steps, np.array([row[group][pairs] for row in metrics], np.float64))
            for label, group in (("a house not trained on", "validation"), ("houses trained on", "train"))
        ]
        level = float(metrics[0]["baselines"]["pca"][pairs])  # whitened, it is where the curve begins
        lines.append(Line("untrained, PCA", steps[[0, -1]], np.array([level, level]), dashed=True))
        panels[title] = lines
    return line_figure(panels, "training step", "average precision")


def error_curves(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """The share of images with no larger error, in metres and in degrees; (caption, SVG)."""
    drawn = []
    for column, (unit, most) in enumerate((("metres", 1.0), ("degrees", 30.0))):
        limits = np.linspace(0, most, 60)
        lines = [
            Line(f"{finding.label}, {kind}", limits, (answers.errors[:, column, None] <= limits).mean(axis=0))
            for finding in findings
            for kind, answers in finding.here.items()
        ]
        svg = line_figure({"": lines}, f"error in {unit}", "share of images", (0, most), (0, 1))
        drawn.append((f"The share of images that are no more than so many {unit} off.", svg))
    return drawn


def map_drawing(finding: Finding, seen: SceneFeatures) -> str:
    """The map from above: landmarks in their own colours, cameras as they were and as they were found."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    landmarks, frames = finding.world.landmarks, finding.world.frames
    low = np.flatnonzero(landmarks.position[:, 2] < ABOVE)
    order = low[np.argsort(landmarks.position[low, 2])]
    spots, points = landmarks.position[order], seen.points[seen.points[..., 2] < ABOVE]
    width, height = np.ptp(spots[:, :2], axis=0)
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]]) if height > width else np.eye(2)  # the longer side lies across
    aspect = (min(width, height) + 1) / (max(width, height) + 0.5)
    figure = Figure(figsize=(10, 10 * float(np.clip(aspect, 0.4, 1))), layout="constrained")
    axes = figure.subplots()
    axes.scatter(*(turned @ points[:, :2].T), s=4, color="#d4d4d4", linewidths=0, rasterized=True)
    sizes, shades = 15 + 120 * landmarks.worth[order], landmarks.colour[order] / 255
    axes.scatter(*(turned @ spots[:, :2].T), s=sizes, c=shades, linewidths=0)
    _cameras(axes, frames.world_from_camera, turned, "#999999")
    answers = finding.here["with depth"]
    for found, true in zip(answers.found, answers.true, strict=True):
        _answer(axes, found, true, turned)
    # Not where images were found: a wrong answer may be far outside.
    there = turned @ np.concatenate([spots[:, :2], frames.world_from_camera[:, :2, 3]]).T
    (left, bottom), (right, top), room = there.min(axis=1), there.max(axis=1), 0.5
    axes.set(xlim=(left - room, right + room), ylim=(bottom - 1.5 * room, top + room))
    axes.plot([left, left + 1], [bottom - 0.8 * room] * 2, color="#222222", linewidth=3)
    axes.text(left + 0.5, bottom - room, "1 m", ha="center", va="top")
    axes.set_aspect("equal")
    axes.set_axis_off()
    names = {
        "frames of the map": ("#999999", "o"),
        "true pose of an image": (COLOURS[0], "o"),
        "pose found for it": (COLOURS[1], "o"),
        'answered "not here"': (REFUSED, "x"),
    }
    handles = [Line2D([], [], color=c, marker=marker, linestyle="", label=n) for n, (c, marker) in names.items()]
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=4)
    return as_svg(figure)


def _answer(axes: Any, found: Pose | None, true: Pose, turned: Float[ndarray, "2 2"]) -> None:
    if found is None:
        axes.scatter(*(turned @ true[:2, 3]), marker="x", s=60, color=REFUSED, zorder=4)
        return
    _cameras(axes, true[None], turned, COLOURS[0])
    _cameras(axes, found[None], turned, COLOURS[1])
    both = np.stack([true[:2, 3], found[:2, 3]], axis=1)
    axes.plot(*(turned @ both), color=COLOURS[1], linewidth=1, zorder=3)


def _cameras(axes: Any, poses: Float[ndarray, "n 4 4"], turned: Float[ndarray, "2 2"], colour: str) -> None:
    """Where cameras are, and where they look."""
    eyes, ahead = turned @ poses[:, :2, 3].T, turned @ poses[:, :2, 2].T
    options = {"angles": "xy", "scale_units": "xy", "scale": 1 / ARROW, "width": 0.002}
    axes.quiver(*eyes, *ahead, color=colour, zorder=3, **options)
    axes.scatter(*eyes, s=12, color=colour, zorder=3)
