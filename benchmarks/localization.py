"""How well images are localized in maps of places that training never saw.

    python benchmarks/localization.py RUN SCENE... [--cache DIR]

Each scene is mapped from one half of its frames and the other half is localized, once split in the middle (the halves
were taken at other times and mostly look at other spots) and once every other frame. Frames of the next scenes in the
list are the images from elsewhere. `covered` is the share of a query's patches that lie within a landmark's radius of
the map: what is not in the map cannot be found. `perfect` replaces the features by ones made from the true points of
the world, with the same map and solver: the limit that landmarks and solver set.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from locus import LandmarkMap, load_scene
from locus.evaluation.localization import true_features
from locus.features.dense import SceneFeatures, scene_features
from locus.geometry import pose_error
from locus.model import load
from locus.tasks.frame_ranking import rank_frames
from locus.tasks.localize import Location, localize_features

METRES, DEGREES = 0.5, 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--elsewhere", type=int, default=2, help="maps of other scenes each query is held against")
    parser.add_argument("--thresholds", action="store_true", help="what the least confidence of an answer changes")
    arguments = parser.parse_args()
    model = load(arguments.run)
    scenes = [scene_features(model, load_scene(path), arguments.cache) for path in arguments.scenes]
    for split in ("halves", "interleaved"):
        maps, queries = [], []
        for seen in scenes:
            first, second = _split(len(seen), split)
            maps.append(LandmarkMap.build(model, seen.take(first)))
            queries.append(seen.take(second))
        if arguments.thresholds:
            print(f"\n{split}: confidence")
            _thresholds(maps, queries, arguments.elsewhere)
            continue
        print(
            f"\n{split} | queries | right, RGB-D | right, RGB | median RGB-D | median RGB | covered | stuck | first hit"
        )
        everything = [_queries(world, seen) for world, seen in zip(maps, queries, strict=True)]
        for seen, rows in zip(queries, everything, strict=True):
            print(seen.scene.name, *_summary(rows), sep=" | ", flush=True)
        print("all", *_summary(np.concatenate(everything)), sep=" | ")
        known = [_perfect(seen) for seen in scenes]
        perfect = []
        for seen, world in zip(known, maps, strict=True):
            first, second = _split(len(seen), split)
            exact = replace(LandmarkMap.build(model, seen.take(first)), model=world.model)
            perfect.append(_queries(exact, seen.take(second)))
        print("perfect features, all", *_summary(np.concatenate(perfect)), sep=" | ")
        if len(scenes) > 1:
            _from_elsewhere(maps, queries, arguments.elsewhere)
        _places(maps, queries)


def _split(count: int, split: str) -> tuple[range, range]:
    middle = count // 2
    return (range(middle), range(middle, count)) if split == "halves" else (range(0, count, 2), range(1, count, 2))


def _queries(world: LandmarkMap, seen: SceneFeatures) -> np.ndarray:
    """Errors with and without depth, and what else is said of each query."""
    tree = KDTree(world.landmarks.position[world.landmarks.scale == 0])
    rows = []
    for row in range(len(seen)):
        frame, features = seen.frame(row), seen.features[:, row]
        errors = []
        for depth in (frame.depth, None):
            location = localize_features(world, features, frame.camera, depth)
            errors += _errors(location, frame.world_from_camera)
        points = seen.points[row].reshape(-1, 3)
        points = points[np.isfinite(points).all(axis=1)]
        covered = np.mean(tree.query(points)[0] <= world.radii[0]) if len(points) else 0.0
        best = world.frames.world_from_camera[rank_frames(world, features, 1).frame[0]]
        rows.append((*errors, covered, location.matches.stuck, _near(best, frame.world_from_camera)))
    return np.array(rows)


def _errors(location: Location, truth: np.ndarray) -> tuple[float, float]:
    if location.world_from_camera is None:
        return np.inf, np.inf
    return pose_error(location.world_from_camera, truth)


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    metres, degrees = pose_error(a, b)
    return metres < 2 and degrees < 60


def _summary(rows: np.ndarray) -> list[str]:
    right = [((rows[:, i] <= METRES) & (rows[:, i + 1] <= DEGREES)).mean() for i in (0, 2)]
    medians = [f"{np.median(rows[:, i]):.2f} m {np.median(rows[:, i + 1]):.1f}°" for i in (0, 2)]
    others = [f"{rows[:, i].mean():.2f}" for i in (4, 5, 6)]
    return [str(len(rows)), *(f"{share:.3f}" for share in right), *medians, *others]


def _perfect(seen: SceneFeatures) -> SceneFeatures:
    features = true_features(seen.points, seen.features.shape[-1])
    return replace(seen, features=features[None].expand(seen.features.shape).contiguous())


def _thresholds(maps: list[LandmarkMap], queries: list[SceneFeatures], count: int) -> None:
    """How many queries are placed right, and how many from elsewhere refused, by the least confidence of an answer."""
    for kind in ("RGB-D", "RGB"):
        here, elsewhere = [], []
        for number, seen in enumerate(queries):
            for row in range(len(seen)):
                frame = seen.frame(row)
                depth = frame.depth if kind == "RGB-D" else None
                for step in range(min(count, len(maps) - 1) + 1):
                    world = maps[(number + step) % len(maps)]
                    found = localize_features(world, seen.features[:, row], frame.camera, depth, threshold=0.0)
                    if step:
                        elsewhere.append(found.confidence)
                    else:
                        metres, degrees = _errors(found, frame.world_from_camera)
                        here.append(found.confidence if metres <= METRES and degrees <= DEGREES else -1.0)
        for least in np.arange(0.08, 0.21, 0.02):
            refused = np.mean(np.array(elsewhere) < least)
            print(f"{kind} from {least:.2f} | right {np.mean(np.array(here) >= least):.3f} | not here {refused:.3f}")


def _from_elsewhere(maps: list[LandmarkMap], queries: list[SceneFeatures], count: int) -> None:
    refused = {"RGB-D": [], "RGB": []}
    for number, seen in enumerate(queries):
        for step in range(1, min(count, len(maps) - 1) + 1):
            world = maps[(number + step) % len(maps)]
            for row in range(len(seen)):
                frame = seen.frame(row)
                for kind, depth in (("RGB-D", frame.depth), ("RGB", None)):
                    refused[kind].append(not localize_features(world, seen.features[:, row], frame.camera, depth).here)
    for kind, answers in refused.items():
        print(f"from elsewhere, answered `not here`, {kind} | {len(answers)} | {np.mean(answers):.3f}")


def _places(maps: list[LandmarkMap], queries: list[SceneFeatures]) -> None:
    """All places in one map: is the right one found, and the pose in it?"""
    from locus.landmarks import merge

    together = merge(maps)
    for kind in ("RGB-D", "RGB"):
        named, right, count = 0, 0, 0
        for seen in queries:
            for row in range(len(seen)):
                frame = seen.frame(row)
                depth = frame.depth if kind == "RGB-D" else None
                location = localize_features(together, seen.features[:, row], frame.camera, depth)
                metres, degrees = _errors(location, frame.world_from_camera)
                count += 1
                named += location.environment == seen.scene.name
                right += metres <= METRES and degrees <= DEGREES and location.environment == seen.scene.name
        print(f"one map of all, {kind} | {count} | place named {named / count:.3f} | right {right / count:.3f}")


if __name__ == "__main__":
    main()
