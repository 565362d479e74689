"""How fast houses are generated, beside the bare time of their rays, and how much memory frames take.

    python benchmarks/houses.py [--houses 3] [--frames 48]

Prints one table: frames per second with everything (building, lighting, rendering, writing), the time that the primary
rays of the same frames alone take, the ratio, and the peak memory for few and for many frames.
"""

import multiprocessing
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from locus.scenes import Scene, load_scene
from locus.scenes.houses import write_houses
from locus.scenes.houses.house import build
from locus.scenes.render.parts import join
from locus.scenes.render.tracer import Tracer
from locus.scenes.render.view import rays


@dataclass(frozen=True)
class Arguments:
    houses: int = 3
    """How many houses to generate."""
    frames: int = 48
    """Frames per house."""
    size: tuple[int, int] = (320, 256)
    """Width and height."""
    seed: int = 0
    """Seed of the first house."""


def ray_seconds(scene: Scene, seed: int) -> float:
    """Mean time of one frame's primary rays, and of nothing else."""
    mesh = join(build(seed).things)
    tracer = Tracer(mesh.vertices, mesh.faces)
    spent = 0.0
    for frame in scene:
        directions, _ = rays(frame.camera, frame.world_from_camera, frame.camera.pixel_grid().reshape(-1, 2))
        origins = np.ascontiguousarray(np.broadcast_to(frame.world_from_camera[:3, 3], directions.shape), np.float32)
        start = time.perf_counter()
        tracer.nearest(origins, directions)
        spent += time.perf_counter() - start
    return spent / len(scene)


def peak_megabytes(arguments: tuple[int, int, tuple[int, int]]) -> float:
    """Peak memory of a fresh process that writes one house."""
    seed, frames, size = arguments
    with tempfile.TemporaryDirectory() as folder:
        write_houses(Path(folder) / "houses", range(seed, seed + 1), frames=frames, size=size)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Arguments) -> None:
    table = Table(title=f"Houses of {arguments.frames} frames at {arguments.size[0]} × {arguments.size[1]}")
    for column in ("seed", "rooms", "seconds", "frames/s", "ms per frame", "rays alone, ms", "ratio"):
        table.add_column(column, justify="right")
    totals = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seed, arguments.seed + arguments.houses):
            start = time.perf_counter()
            seeds = range(seed, seed + 1)
            out = Path(folder) / "houses"
            (written,) = write_houses(out, seeds, frames=arguments.frames, size=arguments.size)
            seconds = time.perf_counter() - start
            totals.append(seconds)
            scene = load_scene(written)
            each, bare = seconds / len(scene), ray_seconds(scene, seed)
            values = (seconds, len(scene) / seconds, 1000 * each, 1000 * bare, each / bare)
            table.add_row(str(seed), str(len(build(seed).plan.rooms)), *(f"{value:.2f}" for value in values))
    console = Console()
    console.print(table)
    console.print(f"{arguments.houses * arguments.frames / sum(totals):.2f} frames/s over all, everything included")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        few, many = arguments.frames // 4, 2 * arguments.frames
        jobs = [(arguments.seed, count, arguments.size) for count in (few, many)]
        low, high = pool.map(peak_megabytes, jobs, chunksize=1)
    console.print(f"peak memory: {low:.0f} MB for {few} frames, {high:.0f} MB for {many}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
