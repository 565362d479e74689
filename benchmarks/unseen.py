"""Cross-view AP of trained models on places they never saw, beside the untrained backbone reduced by PCA.

    python benchmarks/unseen.py RUN... --scenes SCENE... --fit TRAINING_SCENE... [--cache DIR]

The batches are drawn as for the runs' own validation; PCA is fitted on the scenes given with --fit. One table for each
radius. Runs must share their backbone, layer, head and radii.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from locus import load_scene
from locus.model import LoCUS
from locus.training.baselines import pca_features, sample_rows
from locus.training.batches import Sampler
from locus.training.checkpoints import SETTINGS
from locus.training.places import environments
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
    told = json.loads((arguments.runs[0] / SETTINGS).read_text())["settings"]
    settings = Settings(**{**told, "radii": tuple(told["radii"])})
    models = {run.name: LoCUS.from_pretrained(run) for run in arguments.runs}
    backbone = next(iter(models.values())).backbone
    fitted, tested = (
        environments(
            [load_scene(path) for path in paths], backbone, settings, arguments.cache, augment=False, progress=True
        )
        for paths in (arguments.fit, arguments.scenes)
    )
    batches = fixed_batches(tested, settings, arguments.batches)
    untrained = LoCUS(backbone, head=settings.head, blocks=settings.blocks, radii=settings.radii)
    rows = sample_rows(untrained, Sampler(fitted, settings), backbone.mean.device)
    methods = {"PCA-64": pca_features(untrained, rows, False), "whitened PCA-64": pca_features(untrained, rows, True)}
    methods |= {name: model.head_features for name, model in models.items()}
    for scale, radius in enumerate(settings.radii):
        print(f"cross-view AP at {radius:g} m", *(place.name for place in tested), "mean", sep=" | ")
        for name, features in methods.items():
            found = precision(at_scale(features, scale), batches, replace(settings, radii=(radius,)))
            values = [each.cross_view for each in found.values()]
            print(name, *(f"{value:.3f}" for value in values), f"{np.mean(values):.3f}", sep=" | ", flush=True)


def at_scale(features: Features, scale: int) -> Features:
    """Of several maps that of one scale; PCA has one for all."""

    def only(*sequence: Any) -> torch.Tensor:
        maps = features(*sequence)
        return maps[min(scale, len(maps) - 1)][None]

    return only


if __name__ == "__main__":
    main()
