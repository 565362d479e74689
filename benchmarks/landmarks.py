"""Are landmarks chosen by Smooth-AP_j found again? In views that took no part in choosing them, beside random patches.

    python benchmarks/landmarks.py RUN SCENE... [--cache DIR]

Landmarks are chosen among one half of a scene's frames and looked for in the other (first and second half). Found again
in a view: of all its patches, the one most alike lies within the radius. Given are the views in which a landmark is
found again, of those that show its spot, and how many these are for each landmark. `Smooth-AP_j` is the top 10 % by it
alone; `worth` by what maps use, which takes into account in how many views it was seen. Both are of the candidates that
at least two frames of the first half show, and are searched by the mean feature of the patches within the radius.

Random patches are up to 1000 of the first half's, drawn evenly among those whose spot at least two of its frames show,
as asked of landmarks. `random, mean` searches by the mean feature of the patches within the radius, as for landmarks:
what differs is the choice alone, and the ratios are to it. `random, single` searches for the same by their own feature.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from locus import load_scene
from locus.dense import SceneFeatures, scene_features
from locus.landmarks.describe import CANDIDATES, KAPPA, TAU, VIEWS, observed
from locus.landmarks.observations import Patches, patches, within
from locus.landmarks.selection import candidates, landmark_scores
from locus.model import load

RIVALS = ("Smooth-AP_j", "worth", "random, mean", "random, single")
TOP = 0.1
SAMPLE = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    model = load(arguments.run)
    radius = model.radii[0]
    print("found again, of views that show it; views each |", " | ".join(RIVALS), "| ratios, worth to random, mean")
    everything: dict[str, list[np.ndarray]] = {name: [] for name in RIVALS}
    for path in arguments.scenes:
        seen = scene_features(model, load_scene(path), arguments.cache)
        chosen_in, held_out = seen.take(range(len(seen) // 2)), seen.take(range(len(seen) // 2, len(seen)))
        found = patches(chosen_in)
        found = replace(found, label=np.full_like(found.label, -1))  # labels take no part
        counts = {}
        for name, (spots, embedding) in _rivals(found, found.features(chosen_in, 0), radius).items():
            counts[name] = _found_again(spots, embedding, held_out, radius)
            everything[name].append(counts[name])
        _line(seen.scene.name, counts)
    _line("all", {name: np.concatenate(counts) for name, counts in everything.items()})


def _rivals(found: Patches, features: np.ndarray, radius: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Where to look and what for: the best tenth of the candidates by either measure, and random patches two ways."""
    chosen = candidates(found.point, radius, CANDIDATES)
    scores = landmark_scores(torch.from_numpy(features), found.point, found.frame, chosen, radius, KAPPA, TAU)
    described = observed(within(found.point[chosen], found.point, radius), found, features, 0)
    described = replace(described, score=scores.astype(np.float32))
    seen_again = np.flatnonzero(described.views >= VIEWS)
    rivals = {}
    for name, value in (("Smooth-AP_j", described.score), ("worth", described.worth)):
        best = seen_again[np.argsort(-value[seen_again])[: max(1, round(TOP * len(seen_again)))]]
        rivals[name] = (found.point[chosen[best]], described.embedding[best])
    # In random order, so that the first of those seen again are an even draw among them.
    drawn = np.random.default_rng(0).permutation(len(features))[: 4 * SAMPLE]
    random = observed(within(found.point[drawn], found.point, radius), found, features, 0)
    again = np.flatnonzero(random.views >= VIEWS)[:SAMPLE]
    spots = found.point[drawn[again]]
    return rivals | {
        "random, mean": (spots, random.embedding[again]),
        "random, single": (spots, features[drawn[again]]),
    }


def _found_again(spots: np.ndarray, embedding: np.ndarray, views: SceneFeatures, radius: float) -> np.ndarray:
    """For each spot: how many views show it, and in how many of them it is found."""
    counts = np.zeros((len(spots), 2))
    for row in range(len(views)):
        points = views.points[row].reshape(-1, 3)
        known = np.isfinite(points).all(axis=1)
        features = views.features[0, row].flatten(0, 1).numpy()
        near = np.linalg.norm(np.where(known[:, None], points, np.inf) - spots[:, None], axis=-1) <= radius
        most = (embedding @ features.T).argmax(axis=1)
        counts += np.stack([near.any(axis=1), near[np.arange(len(spots)), most]], axis=1)
    return counts


def _line(name: str, counts: dict[str, np.ndarray]) -> None:
    rates = {rival: (count[:, 1].sum() / count[:, 0].sum(), count[:, 1].mean()) for rival, count in counts.items()}
    cells = [f"{share:.3f} {times:.2f}" for share, times in rates.values()]
    ratios = [f"{a / b:.2f}" for a, b in zip(rates["worth"], rates["random, mean"], strict=True)]
    print(name, *cells, " ".join(ratios), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
