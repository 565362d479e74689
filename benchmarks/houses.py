"""How fast houses are generated, beside the bare time of their rays; how much memory frames take; and what the frames
are worth: what cameras see, how views overlap, and how well they agree.

    python benchmarks/houses.py [--houses 3] [--frames 84]

Seconds include building, lighting, rendering and writing; "rays alone" is the time that the primary rays of the same
frames take. "good views" see at least three things (of 20 pixels or more) and surfaces at different depths (the near
and the far tenth at least 0.3 m apart). "seen from" is the mean number of standing points that see a spot on a thing.
"agree" is the share of points, seen from both cameras by a ray, at which two frames have the same depth within 1 % and
the same instance, at one of the four pixels around the point or between them; "agree where flat" asks for it at the
very point, and only inside one thing and on a flat piece of it, where the pixels around can tell.
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
from scipy import ndimage

from locus.geometry import invert, transform
from locus.houses import HouseSettings, write_houses
from locus.houses.generation import THING
from locus.houses.house import build
from locus.render.camera_view import rays
from locus.render.surfaces import join
from locus.scenes import Frame, Scene, load_scene, overlap
from locus.scenes.rays import Tracer


@dataclass(frozen=True)
class Arguments:
    houses: int = 3
    """How many houses to generate."""
    frames: int = 84
    """Frames per house."""
    size: tuple[int, int] = (320, 256)
    """Width and height."""
    seed: int = 0
    """Seed of the first house."""


def ray_seconds(scene: Scene, tracer: Tracer) -> float:
    """Mean time of one frame's primary rays, and of nothing else."""
    spent = 0.0
    for frame in scene:
        directions, _ = rays(frame.camera, frame.world_from_camera, frame.camera.pixel_grid().reshape(-1, 2))
        origins = np.ascontiguousarray(np.broadcast_to(frame.world_from_camera[:3, 3], directions.shape), np.float32)
        start = time.perf_counter()
        tracer.nearest(origins, directions)
        spent += time.perf_counter() - start
    return spent / len(scene)


def points_of(frame: Frame, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    pixels = frame.camera.pixel_grid()[rows, columns]
    return transform(frame.world_from_camera, frame.camera.unproject(pixels, frame.depth[rows, columns].astype(float)))


def landing(points: np.ndarray, frame: Frame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices of the points that fall into a frame, with their pixels and depths there."""
    pixels, z = frame.camera.project(transform(invert(frame.world_from_camera), points))
    size = np.array([frame.camera.width, frame.camera.height])
    index = np.flatnonzero((z > 0.1) & (pixels > 0.5).all(1) & (pixels < size - 0.5).all(1))
    return index, pixels[index], z[index]


def good_views(frames: list[Frame]) -> float:
    good = 0
    for frame in frames:
        _, sizes = np.unique(frame.instance[THING[frame.semantic]], return_counts=True)
        near, far = np.percentile(frame.depth[frame.depth > 0], (10, 90))
        good += (sizes >= 20).sum() >= 3 and far - near > 0.3
    return good / len(frames)


def standing_points_per_spot(frames: list[Frame]) -> float:
    """Spots are the things' pixels of all frames, thinned to one per cube of 10 cm."""
    spots = np.concatenate([points_of(f, *np.nonzero(THING[f.semantic] & (f.depth > 0)))[::29] for f in frames])
    spots = spots[np.unique(np.round(spots / 0.1), axis=0, return_index=True)[1]]
    places = np.array([frame.world_from_camera[:3, 3] for frame in frames])
    _, place = np.unique(places.round(3), axis=0, return_inverse=True)
    seen = np.zeros((len(spots), place.max() + 1), bool)
    for frame, number in zip(frames, place, strict=True):
        index, pixels, z = landing(spots, frame)
        x, y = pixels.astype(int).T
        seen[index[np.abs(frame.depth[y, x] - z) < 0.03 * z], number] = True
    return float(seen.sum(axis=1).mean())


def comparable(frame: Frame) -> np.ndarray:
    """Pixels inside one thing and on a flat piece of it, where inverse depth is linear in the image."""
    nearness = 1 / np.maximum(frame.depth, 1e-3)
    flat = np.abs(ndimage.laplace(nearness)) < 0.004 * nearness
    inside = ndimage.maximum_filter(frame.instance, 3) == ndimage.minimum_filter(frame.instance, 3)
    return (frame.depth > 0) & flat & inside


def agreement(frames: list[Frame], tracer: Tracer, rng: np.random.Generator) -> tuple[float, float]:
    """Of all pixels with depth that another camera sees by a ray, the share that agrees with the pixels around where
    they land; and of those on flat pieces, the share that agrees with the depth interpolated there."""
    counts = np.zeros(4)
    fit = {id(frame): comparable(frame) for frame in frames}
    for a in frames:
        rows, columns = np.nonzero(a.depth > 0)
        chosen = rng.choice(len(rows), min(400, len(rows)), replace=False)
        rows, columns = rows[chosen], columns[chosen]
        points, instance, flat_here = points_of(a, rows, columns), a.instance[rows, columns], fit[id(a)][rows, columns]
        for b in frames:
            index, pixels, z = landing(points, b)
            if a is b or not len(index):
                continue
            eye = b.world_from_camera[:3, 3]
            way = points[index] - eye
            length = np.linalg.norm(way, axis=1)
            # Depth on disk is in millimetres: what lies less than that before a point does not hide it.
            reach = length - 0.003
            seen = ~tracer.blocked(np.broadcast_to(eye, way.shape), way / length[:, None], reach)
            x, y = (pixels - 0.5).T
            left, top = x.astype(int), y.astype(int)
            fx, fy = x - left, y - top
            corners = [(top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)]
            depths, instances = (np.array([values[corner] for corner in corners]) for values in (b.depth, b.instance))
            known = seen & (depths > 0).all(0)
            between = (z > 0.99 * depths.min(0)) & (z < 1.01 * depths.max(0))
            counts[:2] += known.sum(), (known & between & (instances == instance[index]).any(0)).sum()
            flat = known & flat_here[index] & np.array([fit[id(b)][corner] for corner in corners]).all(0)
            flat &= (instances == instances[0]).all(0)
            weights = np.array([(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy])
            depth = 1 / (weights / np.maximum(depths, 1e-6)).sum(0)
            same = (np.abs(depth / z - 1) < 0.01) & (instances[0] == instance[index])
            counts[2:] += flat.sum(), (flat & same).sum()
    return counts[1] / max(counts[0], 1), counts[3] / max(counts[2], 1)


def peak_megabytes(arguments: tuple[int, int, tuple[int, int]]) -> float:
    """Peak memory of a fresh process that writes one house."""
    seed, frames, size = arguments
    with tempfile.TemporaryDirectory() as folder:
        write_houses(Path(folder) / "houses", range(seed, seed + 1), HouseSettings(frames=frames, size=size))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Arguments) -> None:
    speed = Table(title=f"{arguments.frames} frames a house at {arguments.size[0]} × {arguments.size[1]}")
    for column in ("seed", "rooms", "seconds", "frames/s", "ms per frame", "rays alone, ms", "ratio"):
        speed.add_column(column, justify="right")
    worth = Table()
    for column in ("seed", "good views", "least overlap with another frame", "seen from", "agree", "agree where flat"):
        worth.add_column(column, justify="right")
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seed, arguments.seed + arguments.houses):
            start = time.perf_counter()
            out = Path(folder) / "houses"
            (written,) = write_houses(
                out, range(seed, seed + 1), HouseSettings(frames=arguments.frames, size=arguments.size)
            )
            seconds = time.perf_counter() - start
            total += seconds
            scene, house = load_scene(written), build(seed)
            mesh = join(house.things)
            tracer = Tracer(mesh.vertices, mesh.faces)
            each, bare = seconds / len(scene), ray_seconds(scene, tracer)
            values = (seconds, len(scene) / seconds, 1000 * each, 1000 * bare, each / bare)
            speed.add_row(str(seed), str(len(house.plan.rooms)), *(f"{value:.2f}" for value in values))
            frames = list(scene)
            shared = overlap(scene).toarray()
            np.fill_diagonal(shared, 0)
            facts = (good_views(frames), shared.max(axis=1).min(), standing_points_per_spot(frames))
            same = agreement(frames, tracer, np.random.default_rng(seed))
            worth.add_row(str(seed), *(f"{fact:.3f}" for fact in facts), *(f"{share:.5f}" for share in same))
    console = Console()
    console.print(speed)
    console.print(f"{arguments.houses * arguments.frames / total:.2f} frames/s over all, everything included")
    console.print(worth)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        few, many = arguments.frames // 4, 2 * arguments.frames
        jobs = [(arguments.seed, count, arguments.size) for count in (few, many)]
        low, high = pool.map(peak_megabytes, jobs, chunksize=1)
    console.print(f"peak memory: {low:.0f} MB for {few} frames, {high:.0f} MB for {many}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
