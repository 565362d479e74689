"""Are landmarks chosen by Smooth-AP_j found again? In views that took no part in choosing them, beside random patches.

    python benchmarks/landmarks.py RUN SCENE... [--cache DIR]

Landmarks are chosen among one half of a scene's frames and looked for in the other (first and second half): in each
view, among all its patches, the one most alike. Three figures each:

    shown   of the views that show the spot: in how many the patch most alike lies within the radius
    blind   the same, but the view is not known to show the spot: the similarity must also exceed a threshold, which in
            5 % of the views that do not show it is exceeded, too (its own for each row of the table)
    times   in how many views a landmark is found, all in all

`Smooth-AP_j` is the top 10 % by it alone; `worth` by what maps use, which takes into account in how many views it was
seen. Both are of the candidates that at least two frames of the first half show, and are searched by their embedding,
the mean feature of the patches within the radius.

Random patches are up to 1000 of the first half's, drawn evenly among those whose spot at least two of its frames show,
as asked of landmarks. `random patches` are searched by their own feature; `random spots` are the same, by the mean
feature of the patches within the radius, as for landmarks: there, what differs is the choice alone.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from locus import load_scene
from locus.features.dense import SceneFeatures, scene_features
from locus.landmarks.describe import CANDIDATES, VIEWS, observed
from locus.landmarks.observations import ScenePatches, patches, within
from locus.landmarks.selection import candidates, landmark_scores
from locus.model import LoCUS, load

CHOSEN, RANDOM = ("Smooth-AP_j", "worth"), ("random patches", "random spots")
TOP = 0.1
SAMPLE = 1000
WRONG = 0.05  # of the views that do not show a spot: in how many it may be claimed to be found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    model = load(arguments.run)
    radius = model.radii[0]
    everything: dict[str, list[np.ndarray]] = {}
    for path in arguments.scenes:
        seen = scene_features(model, load_scene(path), arguments.cache)
        chosen_in, held_out = seen.take(range(len(seen) // 2)), seen.take(range(len(seen) // 2, len(seen)))
        found = patches(chosen_in)
        found = replace(found, label=np.full_like(found.label, -1))  # labels take no part
        searched = {
            name: _search(spots, embedding, held_out, radius)
            for name, (spots, embedding) in _rivals(model, found, found.features(chosen_in, 0)).items()
        }
        _table(seen.scene.name, {name: [search] for name, search in searched.items()})
        for name, search in searched.items():
            everything.setdefault(name, []).append(search)
    _table("all", everything)


def _rivals(model: LoCUS, found: ScenePatches, features: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Where to look and what for: the best tenth of the candidates by either measure, and random patches two ways."""
    radius = model.radii[0]
    chosen = candidates(found.point, radius, CANDIDATES)
    of_patches = (torch.from_numpy(features), found.point, found.frame)
    scores = landmark_scores(*of_patches, chosen, radius, model.kappa, model.tau)
    described = observed(within(found.point[chosen], found.point, radius), found, features, 0)
    described = replace(described, score=scores.astype(np.float32))
    seen_again = np.flatnonzero(described.views >= VIEWS)
    rivals = {}
    for name, value in zip(CHOSEN, (described.score, described.worth), strict=True):
        best = seen_again[np.argsort(-value[seen_again])[: max(1, round(TOP * len(seen_again)))]]
        rivals[name] = (found.point[chosen[best]], described.embedding[best])
    # In random order, so that the first of those seen again are an even draw among them.
    drawn = np.random.default_rng(0).permutation(len(features))[: 4 * SAMPLE]
    random = observed(within(found.point[drawn], found.point, radius), found, features, 0)
    again = np.flatnonzero(random.views >= VIEWS)[:SAMPLE]
    spots = found.point[drawn[again]]
    embeddings = features[drawn[again]], random.embedding[again]
    return rivals | {name: (spots, embedding) for name, embedding in zip(RANDOM, embeddings, strict=True)}


def _search(spots: np.ndarray, embedding: np.ndarray, views: SceneFeatures, radius: float) -> np.ndarray:
    """For each spot and view: does it show the spot, does the patch most alike lie there, how alike is it."""
    searches = []
    for row in range(len(views)):
        points = views.points[row].reshape(-1, 3)
        known = np.isfinite(points).all(axis=1)
        features = views.features[0, row].flatten(0, 1).numpy()
        near = np.linalg.norm(np.where(known[:, None], points, np.inf) - spots[:, None], axis=-1) <= radius
        similarity = embedding @ features.T
        hit = near[np.arange(len(spots)), similarity.argmax(axis=1)]
        searches.append(np.stack([near.any(axis=1), hit, similarity.max(axis=1)], axis=-1))
    return np.stack(searches, axis=1)


def _figures(searches: list[np.ndarray]) -> np.ndarray:
    """Found of the views that show it, the same when that is not known, views in which each is found."""
    times = np.concatenate([search[..., 1].sum(axis=1) for search in searches]).mean()
    shown, hit, similarity = np.concatenate([search.reshape(-1, 3) for search in searches]).T
    shown, hit = shown > 0, hit > 0
    claimed = similarity > np.quantile(similarity[~shown], 1 - WRONG)
    return np.array([hit[shown].mean(), (hit & claimed)[shown].mean(), times])


def _table(scene: str, searches: dict[str, list[np.ndarray]]) -> None:
    figures = {name: _figures(parts) for name, parts in searches.items()}
    print(f"\n{scene} | shown | blind | times")
    for name, values in figures.items():
        print(name, *(f"{value:.3f}" for value in values), sep=" | ")
    for name in CHOSEN:
        for other in RANDOM:
            print(f"{name} to {other}", *(f"{ratio:.2f}" for ratio in figures[name] / figures[other]), sep=" | ")


if __name__ == "__main__":
    main()
