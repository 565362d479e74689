"""The picture of a run: AP on training and validation scenes side by side, with the baselines."""

from pathlib import Path
from typing import Any

from locus.files import atomic


def draw_curves(rows: list[dict[str, Any]], path: Path) -> None:
    """Write curves.png from a run's metrics."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    steps = [row["step"] for row in rows]
    baselines = rows[0].get("baselines", {})
    for axes, pairs in zip(figure.subplots(1, 2), ("cross-view", "all pairs"), strict=True):
        for group, colour, name in (("train", "#8ab4d8", "training"), ("validation", "#1f4e79", "validation")):
            axes.plot(steps, [row[group][pairs] for row in rows], color=colour, linewidth=2, label=f"{name} scenes")
        for name, style in (("whitened pca", "--"), ("pca", ":")):
            if name in baselines:
                label = f"validation, untrained, {name.replace('pca', 'PCA')}"
                axes.axhline(baselines[name][pairs], color="#888888", linestyle=style, label=label)
        axes.set(title=f"exact AP, {pairs}", xlabel="step", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    with atomic(path) as file:
        FigureCanvasAgg(figure).print_png(str(file))
