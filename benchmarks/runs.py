"""What training runs reached, side by side, and the mean and spread of runs that differ by their seed alone.

    python benchmarks/runs.py RUN...

Cross-view AP of each run's best checkpoint on its validation scenes, which also chose it; on its training scenes; and
of the untrained backbone, by PCA, plain and whitened, on the same validation batches. All read from metrics.jsonl.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from locus.training.settings import Settings

COLUMNS = ("validation", "training", "PCA-64", "whitened", "times PCA", "times whitened")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    groups: dict[tuple, list[np.ndarray]] = {}
    print("run", "steps", *COLUMNS, sep=" | ")
    for run in parser.parse_args().runs:
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        best = max(rows, key=lambda row: row["validation"]["cross-view"])
        plain, whitened = (rows[0]["baselines"][name]["cross-view"] for name in ("pca", "whitened pca"))
        value = best["validation"]["cross-view"]
        figures = np.array([value, best["train"]["cross-view"], plain, whitened, value / plain, value / whitened])
        print(run.name, f"{best['step']} of {rows[-1]['step']}", *_cells(figures), sep=" | ")
        told = json.loads((run / "training.json").read_text())
        settings = Settings(**{**told["settings"], "radii": tuple(told["settings"]["radii"]), "seed": 0})
        groups.setdefault((settings, *sorted(told["scenes"])), []).append(figures)
    for alike in groups.values():
        if len(alike) > 1:
            print(f"mean of {len(alike)} seeds", "", *_cells(np.mean(alike, axis=0)), sep=" | ")
            print("standard deviation", "", *_cells(np.std(alike, axis=0, ddof=1)), sep=" | ")


def _cells(figures: np.ndarray) -> list[str]:
    return [f"{figure:.3f}" for figure in figures[:4]] + [f"{figure:.1f}" for figure in figures[4:]]


if __name__ == "__main__":
    main()
