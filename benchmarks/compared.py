"""The methods that benchmarks of tasks compare: a trained model, and its untrained backbone reduced by PCA."""

import argparse
from pathlib import Path

import numpy as np
import torch

from locus import load_scene
from locus.features.cache import cache_scene
from locus.model import LoCUS
from locus.model.heads import start_from_pca
from locus.objective import average_precision

FRAMES = 128  # of the scenes given with --fit, whose patches PCA is fitted to


def add_methods(parser: argparse.ArgumentParser) -> None:
    """The options that `methods` reads."""
    parser.add_argument("--model", required=True)
    parser.add_argument("--scenes", nargs="+", required=True)
    parser.add_argument("--fit", nargs="+", required=True)
    parser.add_argument("--cache", type=Path)


def methods(arguments: argparse.Namespace) -> dict[str, LoCUS]:
    """The model, and PCA of its backbone, plain and whitened, to as many dimensions."""
    trained = LoCUS.from_pretrained(arguments.model)
    every = max(1, sum(len(load_scene(path)) for path in arguments.fit) // FRAMES)
    found = {"LoCUS": trained}
    for name, whiten in ((f"PCA-{trained.dimension}", False), (f"whitened PCA-{trained.dimension}", True)):
        kind = "blocks" if trained.config["head"] == "blocks" else "linear"
        untrained = LoCUS(
            trained.backbone,
            dimension=trained.dimension,
            radii=trained.radii,
            head=kind,
            blocks=trained.config["blocks"],
            resolution=trained.resolution,
        )
        rows = []
        for path in arguments.fit:
            cached = cache_scene(load_scene(path), trained.backbone, trained.resolution, folder=arguments.cache)
            tokens = torch.from_numpy(np.asarray(cached.tokens[::every], np.float32))
            with torch.no_grad():
                rows.append(untrained.head.embed(tokens, cached.grid).flatten(0, 1))
        start_from_pca(untrained.head, torch.cat(rows), len(trained.radii), whiten=whiten)
        found[name] = untrained
    return found


def precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    """AP of one ranked list."""
    right = torch.from_numpy(relevant)[:, None]
    return float(average_precision(torch.from_numpy(scores)[:, None], right, torch.ones_like(right)))
