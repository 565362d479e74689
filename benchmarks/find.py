"""How well a thing marked in one frame is found again in the others.

    python benchmarks/find.py --model RUN --scenes SCENE... --fit TRAINING_SCENE... [--cache DIR]

Every thing of the labelled scenes that fills 1 % of some frame and 0.2 % of another is looked for once, from its true
mask in a random one of the frames it fills so, in all other frames. Printed: mean average precision of the ranking of
frames (right are those with 0.2 % of the thing), among the frames of its own scene and of all scenes together; the same
of a random order; and how well the mask and the box that were found lie on the thing, in frames that show it (mean
intersection over union). Beside the model, its untrained backbone reduced by PCA, fitted on the scenes given with
--fit; the threshold of masks is the model's.
"""

import argparse

import numpy as np
import torch
from compared import add_methods, methods, precision
from locus.tasks.find import box_of, find, instance_of
from locus.tasks.views import scene_views

from locus import load_scene
from locus.features.dense import scene_features

MARKED, SHOWN = 0.01, 0.002  # shares of a frame
RANDOM = 20  # orders


def box_iou(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    sides = [max(0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1)]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return sides[0] * sides[1] / (sum(areas) - sides[0] * sides[1])


def instances(path: str) -> np.ndarray:
    """The instance of each pixel of each frame, things alone."""
    scene = load_scene(path)
    things = [label.id for label in scene.classes if label.kind == "thing"]
    return np.stack([np.where(np.isin(frame.semantic, things), frame.instance, 0) for frame in scene])


def lists(owner: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """The other frames of the scene that a frame is of, and all other frames."""
    others = np.arange(len(owner)) != first
    return others & (owner == owner[first]), others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_methods(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    networks = methods(arguments)
    truth = [instances(path) for path in arguments.scenes]
    owner = np.repeat(np.arange(len(truth)), [len(maps) for maps in truth])
    maps = [each for scene in truth for each in scene]
    random = np.random.default_rng(0)
    queries = []
    for number, scene in enumerate(truth):
        for thing in np.unique(scene[scene > 0]):
            shares = np.zeros(len(maps))
            shares[owner == number] = (scene == thing).mean(axis=(1, 2))
            if (shares >= MARKED).any() and (shares >= SHOWN).sum() > 1:
                queries.append((int(thing), int(random.choice(np.flatnonzero(shares >= MARKED))), shares >= SHOWN))
    print(f"{len(queries)} things, {len(maps)} frames | AP, own scene | AP, all scenes | mask IoU | box IoU")
    orders = [random.random(len(maps)) for _ in range(RANDOM)]
    chance = [
        [precision(order[some], relevant[some]) for some in lists(owner, first)]
        for _, first, relevant in queries
        for order in orders
    ]
    print("random order", *(f"{value:.3f}" for value in np.mean(chance, axis=0)), "", "", sep=" | ")
    for name, network in networks.items():
        views = [
            view
            for path in arguments.scenes
            for view in scene_views(scene_features(network, load_scene(path), arguments.cache))
        ]
        rows, overlaps = [], []
        for thing, first, relevant in queries:
            instance = instance_of(views[first].features[0], maps[first] == thing)
            found = [find(view, instance) for view in views]
            scores = np.array([each.score for each in found])
            rows.append([precision(scores[some], relevant[some]) for some in lists(owner, first)])
            for index in np.flatnonzero(relevant & (np.arange(len(views)) != first)):
                mask = maps[index] == thing
                hit, box = found[index].mask, found[index].box
                overlaps.append([(hit & mask).sum() / (hit | mask).sum(), box_iou(box, box_of(mask)) if box else 0.0])
        values = [*np.mean(rows, axis=0), *np.mean(overlaps, axis=0)]
        print(name, *(f"{value:.3f}" for value in values), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
