"""What the page costs the server: opened, clicked, its threshold moved, with many frames and points.

    python benchmarks/viewer.py SCENE MAP RUN [--frames 300] [--points 1000000] [--cache DIR]

The scene's frames are repeated, and its points copied a few millimetres apart, until there are so many. Times are the
processor's, medians of several; bytes are what a browser is sent.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from locus import LandmarkMap, load_scene
from locus.model import load
from locus.viewer.app import Page
from locus.viewer.picking import Hit, Ray
from locus.viewer.serve import server
from locus.viewer.viewed import ViewedScene

REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("map", type=Path)
    parser.add_argument("run")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    world = LandmarkMap.load(arguments.map)
    viewed = ViewedScene.open(load(arguments.run), load_scene(arguments.scene), world, arguments.cache, progress=True)
    measure(enlarged(viewed, arguments.frames, arguments.points))


def enlarged(viewed: ViewedScene, frames: int, points: int) -> ViewedScene:
    """The same scene with so many frames and points."""
    rows, random = np.arange(frames) % len(viewed.seen), np.random.default_rng(0)
    chosen = random.integers(0, len(viewed.cloud), points)
    moved = viewed.cloud.points[chosen] + random.normal(0, 0.003, (points, 3)).astype(np.float32)
    frame = viewed.cloud.frame[chosen] + len(viewed.seen) * random.integers(0, frames // len(viewed.seen), points)
    cloud = replace(
        viewed.cloud,
        points=moved,
        colours=viewed.cloud.colours[chosen],
        frame=frame.astype(np.int32),
        pixel=viewed.cloud.pixel[chosen],
    )
    return replace(viewed, seen=viewed.seen.take(rows.tolist()), pictures=viewed.pictures[rows], cloud=cloud)


def measure(viewed: ViewedScene) -> None:
    print(f"{len(viewed.seen)} frames, {len(viewed.cloud):,} points, {len(viewed.landmarks(0))} landmarks\n")
    with server("127.0.0.1", 0) as running:
        start = time.process_time()
        page = Page(running, viewed)
        print(f"page made ready: {time.process_time() - start:.1f} s")
        random = np.random.default_rng(1)
        hits = [Hit("point", int(index), 1.0) for index in random.integers(0, len(viewed.cloud), REPEATS)]
        eye = np.asarray(running.initial_camera.position)
        rays = [Ray.of(tuple(eye), tuple(viewed.cloud.points[hit.index] - eye)) for hit in hits]
        print(f"what a click hits: {1e3 * _median(lambda i: page.canvas.hit(rays[i], cameras=True)):.0f} ms")
        print(f"all that lights up for it, drawn: {1e3 * _median(lambda i: page.choose(hits[i])):.0f} ms")

        def move(i: int) -> None:
            page.panel.threshold.value = 0.6 + 0.02 * i
            page.relight()

        print(f"the threshold moved: {1e3 * _median(move):.0f} ms")
    shown = page.canvas.shown.sum()
    print(f"sent once: {shown * 9 / 1e6:.0f} MB of points; for a click: {shown * 3 / 1e6:.0f} MB, their colours")


def _median(action: Callable[[int], object]) -> float:
    times = []
    for index in range(REPEATS):
        start = time.process_time()
        action(index)
        times.append(time.process_time() - start)
    return median(times)


if __name__ == "__main__":
    main()
