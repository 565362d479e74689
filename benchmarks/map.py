"""What maps cost: searching them, building them, and localizing in them, by stage.

    python benchmarks/map.py RUN SCENE [--cache DIR] [--only localize]

The scene should have a few hundred frames, such as `locus houses big --frames-per-scene 192` writes. Building starts
from cached tokens. The slope is that of time against frames in a double logarithmic plot: 1 is linear.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from timeit import repeat

import numpy as np
import torch

from locus import LandmarkMap, load_scene
from locus.features.dense import scene_features
from locus.keypoints.fusion import point_scales
from locus.landmarks.search import Index
from locus.model import load
from locus.scenes.patches import points_at
from locus.tasks.localize import localize, localize_features
from locus.tasks.localize_points import KEYPOINTS, match_points, pose_of_points, similar_frames
from locus.tasks.placed_points import placed_points, point_detector, point_matcher

REPEATS = 5
QUERIES = 400  # patches of an image, about
FRAMES = (25, 50, 100, 190)  # of maps that are localized in


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("scene")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--only", nargs="+", choices=("search", "build", "localize"))
    arguments = parser.parse_args()
    print(f"{torch.get_num_threads()} threads\n")
    model, scene = load(arguments.run), load_scene(arguments.scene)
    scene_features(model, scene, arguments.cache, progress=True)  # the cache, if it is not there
    stages = {
        "search": searching,
        "build": lambda: building(model, scene, arguments.cache),
        "localize": lambda: localizing(model, scene, arguments.cache),
    }
    for name in arguments.only or stages:
        stages[name]()


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
    seen = scene_features(model, scene, cache)
    others = [row for row in range(len(seen)) if row != 1]
    counts = [count for count in FRAMES if count <= len(others)]
    print(f"\nlocalization in a map of so many frames, stage | {' | '.join(map(str, counts))}")
    rows: dict[str, list[str]] = {}
    for count in counts:
        world = LandmarkMap.build(model, seen.take(others[:count]), detector=point_detector())
        for stage, seconds in _stages(world, model, seen.frame(1), seen.features[:, 1]).items():
            rows.setdefault(stage, []).append(f"{1e3 * seconds:.1f} ms")
    for stage, times in rows.items():
        print(f"{stage} | {' | '.join(times)}", flush=True)
    with TemporaryDirectory() as folder:
        (points,) = world.save(folder).glob("points-*.safetensors")
        size = points.stat().st_size
    print(f"the file of points: {size / len(world.frames) / 1e3:.1f} kB a frame")


def _stages(world: LandmarkMap, model, frame, features) -> dict[str, float]:
    """Seconds that each stage takes, for one image."""
    camera, depth, image = frame.camera, frame.depth, frame.image
    of_points = features[point_scales(world.radii)]
    placed = placed_points(image, of_points)
    frames = similar_frames(world, features, placed)
    matches = match_points(world, features, placed, camera)
    points = points_at(depth, camera, matches.pixel)

    def solved(known: np.ndarray | None) -> Callable[[], object]:
        return lambda: pose_of_points(matches.pixel, matches.position, camera, known)

    stages: dict[str, Callable[[], object]] = {
        "features of the image (backbone and head)": lambda: model.features(image),
        "keypoints": lambda: placed_points(image, of_points),
        "landmarks: environment and first pose": lambda: localize_features(world, features, camera),
        "the most similar frames": lambda: similar_frames(world, features, placed),
        "matching": lambda: [point_matcher().match(placed[:KEYPOINTS], each.placed) for _, each in frames],
        "pose": solved(None),
        "pose, with depth": solved(points),
        "all": lambda: localize(world, model, image, camera),
        "all, with depth": lambda: localize(world, model, image, camera, depth),
    }
    return {stage: _median(work) for stage, work in stages.items()}


def _median(work: Callable[[], object]) -> float:
    work()
    return median(repeat(work, number=1, repeat=REPEATS))


if __name__ == "__main__":
    main()
