"""Cross-view AP of trained models on places they never saw, beside the untrained backbone reduced by PCA.

    python benchmarks/unseen.py RUN... --scenes SCENE... --fit TRAINING_SCENE... [--cache DIR]

The batches are drawn as for the runs' own validation; PCA is fitted on the scenes given with --fit. One table for each
radius of the first run, whose kappa and head (for PCA) count, too; all must share its backbone and layer.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from locus import load_scene
from locus.model import LoCUS
from locus.model.heads import start_from_pca
from locus.progress import track
from locus.training.baselines import sample_rows, untrained
from locus.training.checkpoints import SETTINGS
from locus.training.environments import open_environments
from locus.training.settings import Settings
from locus.training.validation import Features, fixed_batches, precision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--scenes", nargs="+", required=True)
    parser.add_argument("--fit", nargs="+", required=True)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--batches", type=int, default=2, help="batches of each scene")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for radius, rows in measured(
        arguments.runs, arguments.scenes, arguments.fit, arguments.batches, arguments.cache
    ).items():
        places = next(iter(rows.values()))
        print(f"cross-view AP at {radius:g} m", *places, "mean", sep=" | ")
        for name, found in rows.items():
            values = [*found.values(), np.mean([*found.values()])]
            print(name, *(f"{value:.3f}" for value in values), sep=" | ")


def measured(
    runs: Sequence[Path], scenes: Sequence[str], fit: Sequence[str], batches: int, cache: Path | None
) -> dict[float, dict[str, dict[str, float]]]:
    """Cross-view AP by radius, method and scene; the methods are PCA, plain and whitened, and the runs."""
    told = json.loads((runs[0] / SETTINGS).read_text())["settings"]
    settings = Settings(**{**told, "radii": tuple(told["radii"])})
    models = {run.name: LoCUS.from_pretrained(run) for run in runs}
    backbone = next(iter(models.values())).backbone
    fitted, tested = (
        open_environments([load_scene(path) for path in paths], backbone, settings, cache, progress=True)
        for paths in (fit, scenes)
    )
    drawn = fixed_batches(tested, settings, batches)
    methods = {}
    for name, whiten in (("PCA-64", False), ("whitened PCA-64", True)):
        start = untrained(LoCUS(backbone, head=settings.head, blocks=settings.blocks, radii=settings.radii))
        rows = sample_rows(start, [environment.scene for environment in fitted])
        start_from_pca(start.head, rows, len(settings.radii), whiten=whiten)
        methods[name] = start.head_features
    methods |= {name: model.head_features for name, model in models.items()}
    found: dict[float, dict[str, dict[str, float]]] = {radius: {} for radius in settings.radii}
    for name in track(methods, "on unseen places", len(methods), True):
        for scale, radius in enumerate(settings.radii):
            by_place = precision(at_scale(methods[name], scale), drawn, replace(settings, radii=(radius,)))
            found[radius][name] = {tested[place].name: each.cross_view for place, each in by_place.items()}
    return found


def at_scale(features: Features, scale: int) -> Features:
    """Of several maps that of one scale."""
    return lambda *sequence: features(*sequence)[scale][None]


if __name__ == "__main__":
    main()
