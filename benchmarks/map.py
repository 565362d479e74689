"""What maps cost: searching them, building them, and localizing in them, by stage.

    python benchmarks/map.py RUN SCENE [--cache DIR]

The scene should have a few hundred frames, such as `locus houses big --frames-per-scene 192` writes. Building starts
from cached tokens. The slope is that of time against frames in a double logarithmic plot: 1 is linear.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from locus import LandmarkMap, load_scene
from locus.features.dense import scene_features
from locus.landmarks.search import Index
from locus.model import load
from locus.scenes.patches import patch_points_camera
from locus.tasks.landmark_matches import likely_environments, match_landmarks
from locus.tasks.localize import localize_features

REPEATS = 5
QUERIES = 400  # patches of an image, about


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("scene")
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    print(f"{torch.get_num_threads()} threads\n")
    searching()
    model, scene = load(arguments.run), load_scene(arguments.scene)
    scene_features(model, scene, arguments.cache, progress=True)  # the cache, if it is not there
    building(model, scene, arguments.cache)
    localizing(model, scene, arguments.cache)


def searching() -> None:
    print(f"landmarks | {QUERIES} features searched | one feature | index made in | best one found")
    random = np.random.default_rng(0)
    for count in (1_000, 10_000, 100_000, 1_000_000):
        rows = _clustered(random, count)
        wanted = random.integers(count, size=QUERIES)
        queries = rows[wanted] + 0.05 * random.normal(size=(QUERIES, 64)).astype(np.float32)
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        start = time.perf_counter()
        index = Index(rows)
        made = time.perf_counter() - start
        best = np.concatenate([(part @ rows.T).argmax(axis=1) for part in np.array_split(queries, 20)])
        recall = (index.search(queries, 1)[1][:, 0] == best).mean()
        many, one = (_median(partial(index.search, some, 1)) for some in (queries, queries[:1]))
        print(f"{count} | {1e3 * many:.1f} ms | {1e3 * one:.2f} ms | {made:.1f} s | {recall:.3f}", flush=True)


def _clustered(random: np.random.Generator, count: int) -> np.ndarray:
    """Unit vectors in clusters, as features of like things are."""
    centres = random.normal(size=(max(1, count // 100), 64))
    rows = centres[random.integers(len(centres), size=count)] + 0.5 * random.normal(size=(count, 64))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def building(model, scene, cache: Path | None) -> None:
    start = time.perf_counter()
    seen = scene_features(model, scene, cache)
    print(f"\nfeatures of {len(seen)} frames, from cached tokens: {time.perf_counter() - start:.1f} s")
    counts = [count for count in (12, 24, 48, 96, 192, 384) if count <= len(seen)]
    for kind in (
        "the first frames: the place grows with them",
        "frames spread over the whole place: denser and denser",
    ):
        print(f"\n{kind}\nframes | landmarks | map")
        times = []
        for count in counts:
            rows = (
                range(count) if "first" in kind else np.linspace(0, len(seen) - 1, count).round().astype(int).tolist()
            )
            start = time.perf_counter()
            world = LandmarkMap.build(model, seen.take(rows))
            times.append(time.perf_counter() - start)
            print(f"{count} | {len(world)} | {times[-1]:.1f} s", flush=True)
        print(f"slope of building against frames: {np.polyfit(np.log(counts), np.log(times), 1)[0]:.2f}")


def localizing(model, scene, cache: Path | None) -> None:
    print("\nlocalization, stage | median")
    seen = scene_features(model, scene, cache)
    world = LandmarkMap.build(model, seen.take(range(0, min(len(seen), 48), 2)))
    frame, features = seen.frame(1), seen.features[:, 1]
    image, depth, camera = frame.image, frame.depth, frame.camera
    size = (camera.width, camera.height)
    stages: dict[str, Callable[[], object]] = {
        "features of the image (backbone and head)": lambda: model.features(image),
        "which place": lambda: likely_environments(world, features),
        "matches": lambda: match_landmarks(world, features[0], size),
        "points of the patches (RGB-D only)": lambda: patch_points_camera(depth, camera, seen.grid),
        "all but the features, RGB-D": lambda: localize_features(world, features, camera, depth),
        "all but the features, RGB": lambda: localize_features(world, features, camera),
    }
    for stage, work in stages.items():
        print(f"{stage} | {1e3 * _median(work):.1f} ms", flush=True)


def _median(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


if __name__ == "__main__":
    main()
