"""How well co-segmentation finds the spot of a pixel, and the object it lies on, for a choice of thresholds.

    python benchmarks/cosegment.py --model RUN --scenes SCENE... --fit TRAINING_SCENE... [--cache DIR]

Queries are random pixels on things of labelled scenes. A region is compared, in all other views together, with the
pixels whose points lie within the model's radius of the query's point (spot), and with those of the query's object:
intersection over union, a mean over queries. The last columns rank the other views by their score: average precision of
those that show the spot, and the same of a random order. Beside the model, its untrained backbone reduced by PCA,
fitted on the scenes given with --fit.
"""

import argparse

import numpy as np
import torch
from compared import add_methods, methods, precision

from locus import load_scene
from locus.features.dense import SceneFeatures, scene_features
from locus.geometry import transform
from locus.tasks.cosegmentation import enlarged, feature_at, similarity

THRESHOLDS = np.arange(0.3, 0.951, 0.05).round(2)
ENOUGH = 200  # pixels of the truth in other views, for a query to count
SHOWN = 50  # pixels, for a view to show the spot


class Truth:
    """A scene's labels and points, for every pixel."""

    def __init__(self, seen: SceneFeatures) -> None:
        things = [label.id for label in seen.scene.classes if label.kind == "thing"]
        frames = [seen.frame(row) for row in range(len(seen))]
        self.instance = np.stack([np.where(np.isin(f.semantic, things), f.instance, 0) for f in frames])
        self.known = np.stack([frame.depth > 0 for frame in frames])
        self.points = np.stack(
            [
                transform(f.world_from_camera, f.camera.unproject(f.camera.pixel_grid(), f.depth).astype(np.float32))
                for f in frames
            ]
        )

    def query(self, random: np.random.Generator, radius: float) -> tuple[int, int, int, np.ndarray, np.ndarray]:
        """A pixel (frame, row, column) of a thing, its object's pixels and those within the radius, in other views."""
        while True:
            view, row, column = (int(random.integers(size)) for size in self.instance.shape)
            if not self.instance[view, row, column] or not self.known[view, row, column]:
                continue
            there = self.instance == self.instance[view, row, column]
            near = self.known & (np.linalg.norm(self.points - self.points[view, row, column], axis=-1) <= radius)
            there[view] = near[view] = False
            if min(there.sum(), near.sum()) >= ENOUGH:
                return view, row, column, there, near


def curve(similarity: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Intersection over union at every threshold."""
    found = [similarity >= threshold for threshold in THRESHOLDS]
    return np.array([(mask & truth).sum() / (mask | truth).sum() for mask in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_methods(parser)
    parser.add_argument("--queries", type=int, default=30, help="of each scene")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    networks = methods(arguments)
    radius = networks["LoCUS"].radii[0]
    curves: dict[str, list[np.ndarray]] = {name: [] for name in networks}
    ranking: dict[str, list[tuple[float, float]]] = {name: [] for name in networks}
    for path in arguments.scenes:
        scene = load_scene(path)
        seen = {name: scene_features(network, scene, arguments.cache) for name, network in networks.items()}
        truth, random = Truth(seen["LoCUS"]), np.random.default_rng(0)
        size = truth.instance.shape[2], truth.instance.shape[1]
        for _ in range(arguments.queries):
            view, row, column, there, near = truth.query(random, radius)
            others = np.arange(len(truth.instance)) != view
            shows = near[others].sum(axis=(1, 2)) >= SHOWN
            for name, each in seen.items():
                query = feature_at(each.features[0, view], column + 0.5, row + 0.5, size)
                values = similarity(query, each.features[0])
                shown = np.stack([enlarged(value, size) for value in values])[others]
                curves[name].append(np.stack([curve(shown, near[others]), curve(shown, there[others])]))
                if shows.any():
                    scores = values[others].max(axis=(1, 2))
                    ranking[name].append((precision(scores, shows), precision(random.random(len(shows)), shows)))
    print("threshold", *(f"{threshold:.2f}" for threshold in THRESHOLDS), "views AP", "random", sep=" | ")
    for name in networks:
        near, there = np.mean(curves[name], axis=0)
        ap, chance = np.mean(ranking[name], axis=0)
        print(f"{name}, spot", *(f"{v:.3f}" for v in near), f"{ap:.3f}", f"{chance:.3f}", sep=" | ")
        print(f"{name}, object", *(f"{v:.3f}" for v in there), "", "", sep=" | ", flush=True)


if __name__ == "__main__":
    main()
