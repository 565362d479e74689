"""How many places does one need? Trainings at equal steps on 2, 4, 8, ... of the scenes, tried on places never seen.

    python benchmarks/places.py --scenes SCENE... --val SCENE... --unseen SCENE... --out DIR [--steps N] ...

Each training takes the first of the scenes, by name; `--val` chooses its checkpoint, `--unseen` takes no part. The rest
of the settings are those of `locus train`. Printed is cross-view AP at the first radius on every unseen place, beside
the untrained backbone by PCA, plain and whitened (fitted to the first ten scenes); places.png in DIR shows it. The
trainings are kept in DIR, and the same command goes on with them.
"""

from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import tyro
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from unseen import measured

from locus.training import PRESETS, RunSummary, Settings, train

DEFAULT = replace(PRESETS["default"], steps=300)
FITTED = 10


def main(
    scenes: tuple[str, ...],
    val: tuple[str, ...],
    unseen: tuple[str, ...],
    out: Path,
    cache: Path | None = None,
    batches: int = 8,
    settings: Annotated[Settings, tyro.conf.arg(name="")] = DEFAULT,
) -> None:
    """Train on more and more places.

    Args:
        scenes: Places to train on.
        val: Places that choose the checkpoints.
        unseen: Places to try the models on.
        out: The trainings and the picture.
        cache: Where the frozen backbone's tokens are cached.
        batches: Of every unseen place.
        settings: Of the trainings.
    """
    paths = sorted(scenes)
    counts = [*takewhile(lambda count: count <= len(paths), (2**power for power in range(1, 20)))]
    runs: dict[int, RunSummary] = {}
    for count in counts:
        runs[count] = train(paths[:count], out / f"{count}", settings, val=val, cache=cache, progress=True)
        if not runs[count].finished:  # Ctrl-C
            return
    rows = next(iter(measured([out / f"{count}" for count in counts], unseen, paths[:FITTED], batches, cache).values()))
    print("places", *rows["PCA-64"], "training places", "chose the checkpoint", sep=" | ")
    for name, found in rows.items():
        chosen = [runs[int(name)].best[on]["cross-view"] for on in ("train", "validation")] if name.isdigit() else []
        print(name, *(f"{value:.3f}" for value in (*found.values(), *chosen)), sep=" | ")
    draw(counts, rows, out / "places.png")


def draw(counts: list[int], rows: dict[str, dict[str, float]], path: Path) -> None:
    """AP against places, a colour for each place it was tried on; dashed is whitened PCA."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    last = rows[f"{counts[-1]}"]
    for place in sorted(last, key=last.__getitem__, reverse=True):
        (line,) = axes.plot(counts, [rows[f"{count}"][place] for count in counts], marker="o", label=place)
        axes.axhline(rows["whitened PCA-64"][place], color=line.get_color(), linestyle="--", linewidth=0.8)
    axes.plot([], [], "--", color="grey", linewidth=0.8, label="untrained, whitened PCA")
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, counts)
    axes.set(xlabel="places trained on", ylabel="cross-view AP on places never seen", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    FigureCanvasAgg(figure).print_png(str(path))


if __name__ == "__main__":
    tyro.cli(main)
