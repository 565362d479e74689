"""What an index of many maps finds, and what it costs.

    python benchmarks/index.py "houses/house-*" [--landmarks 10000000] [--kept runs/index]

Every other frame of each house is mapped, and patches of the others are looked for. Milliseconds are of processor.

The houses are multiplied by perturbed copies, each an environment of its own, all houses in one map, until there are
--landmarks. A copy of a landmark is as similar to it as, in the median, the most similar one of another house. `locus
index` makes the index. What it finds is compared with what comparing with all landmarks finds, and with the truth; once
more for the houses alone, with cells and codes though they are few. Then the index is made once more and killed three
times: both must have the same bytes.

All that takes long is kept in --kept, so that a run that was stopped goes on. Whether the right house is named, without
copies: `benchmarks/places.py`.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import faiss
import numpy as np
import torch
import tyro
from jaxtyping import Float, Float32, Int64
from numpy import ndarray
from scipy.optimize import brentq

import locus
from locus.features.dense import scene_features
from locus.landmarks import LandmarkMap, disk_cells, indexing, merge
from locus.landmarks.indexing import build_index, landmarks_of
from locus.landmarks.map_files import ARRAYS
from locus.landmarks.map_index import ENVIRONMENT, NEIGHBOURS, OPENED, MapIndex
from locus.model import LoCUS, load
from locus.model.shipped import DEFAULT
from locus.progress import track
from locus.scenes.collection import find_scenes
from locus.tasks.landmark_matches import likely_environments

KILLS = 3
BLOCK = 2**18  # landmarks compared at a time


def many(
    scenes: tyro.conf.Positional[tuple[str, ...]],
    landmarks: int = 10_000_000,
    images: int = 2,
    patches: int = 40,
    kept: Path = Path("runs/index"),
) -> None:
    """Recall, bytes, milliseconds and memory of an index of many landmarks.

    Args:
        images: Of each house, that are looked for.
        patches: Of an image, that are compared with all landmarks.
    """
    model = load(DEFAULT)
    real = [_mapped(model, path, kept) for path in find_scenes(scenes)]
    began = time.perf_counter()
    maps = [*real, *_copies(real, landmarks, kept / "copies")]
    print(f"{len(maps)} maps, the last of them made in {time.perf_counter() - began:.0f} s")
    listed = kept / "maps.txt"
    listed.write_text("\n".join(str(path.resolve()) for path in maps))
    whole, killed = kept / "whole", kept / "killed"
    if not (whole / "index.json").exists():
        print(f"made in {_made(listed, whole)}")
    began = time.process_time()
    index = MapIndex.load(whole)
    print(f"{len(index)} landmarks of {len(index.environments)} environments opened in {_milliseconds(began)}")
    for what in (("cells-",), ("shard-",), ("index.json", "trained-")):
        size = sum(file.stat().st_size for file in whole.iterdir() if file.name.startswith(what))
        print(f"{' '.join(what)}: {size / len(index):.1f} bytes a landmark")
    queries = {path.name: _queries(model, scene, kept) for path, scene in zip(real, find_scenes(scenes), strict=True)}
    _compare(index, queries, images, patches)
    print(f"\nthe {len(real)} houses alone:")
    indexing.EXACT = disk_cells.EXACT = 1000
    _compare(build_index(real, kept / "houses"), queries, images, patches)
    if not (killed / "index.json").exists():
        for kill in range(KILLS):
            _made(listed, killed, files=1 + 3 * kill)
        print(f"made after {KILLS} kills, the last part in {_made(listed, killed)}")
    names = sorted(file.name for file in whole.iterdir())
    same = all((whole / name).read_bytes() == (killed / name).read_bytes() for name in names)
    print(f"the same bytes: {same and names == sorted(file.name for file in killed.iterdir())}")


def _mapped(model: LoCUS, path: Path, kept: Path) -> Path:
    """The map of every other frame of a house."""
    folder = kept / "real" / path.name
    if not (folder / ARRAYS).exists():
        LandmarkMap.build(model, locus.load_scene(path)[::2], cache=kept / "tokens").save(folder)
    return folder


def _queries(model: LoCUS, path: Path, kept: Path) -> Float[ndarray, "scales frames rows columns c"]:
    """The features of the other frames."""
    file = kept / "queries" / f"{path.name}.npy"
    if not file.exists():
        seen = scene_features(model, locus.load_scene(path)[1::2], cache=kept / "tokens")
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, seen.features.cpu().numpy().astype(np.float16))
    return np.load(file)


def _copies(real: Sequence[Path], landmarks: int, folder: Path) -> Iterator[Path]:
    """Maps of all houses with perturbed landmarks, as many as are needed; of each house one frame is kept."""
    world = merge([_bare(LandmarkMap.load(path)) for path in real])
    embedding, house, scale = world.landmarks.embedding, world.landmarks.environment, world.landmarks.scale
    of_scale = [np.flatnonzero(scale == each) for each in range(len(world.radii))]
    amount = [_amount(embedding[rows], house[rows]) for rows in of_scale]
    print(f"{len(world)} landmarks of {len(real)} houses; noise by scale {np.round(amount, 3).tolist()}")
    for number in range(1, -(-landmarks // len(world))):
        copy = folder / f"{number:04d}"
        if not (copy / ARRAYS).exists():
            random, values = np.random.default_rng(number), embedding.copy()
            for rows, much in zip(of_scale, amount, strict=True):
                values[rows] = _perturbed(values[rows], values[rows], much, random)
            names = tuple(f"{name}-{number:04d}" for name in world.environments)
            replace(world, landmarks=replace(world.landmarks, mean=values), environments=names).save(copy)
        yield copy


def _bare(world: LandmarkMap) -> LandmarkMap:
    frames = world.frames.take(np.arange(1))
    return replace(world, frames=frames, sightings=world.sightings[:1], frame_names=world.frame_names[:1])


def _perturbed(
    values: Float32[ndarray, "n c"], pool: Float32[ndarray, "m c"], amount: float, random: np.random.Generator
) -> Float32[ndarray, "n c"]:
    """Noise as features differ: the difference of two random landmarks of the scale."""
    a, b = pool[random.integers(len(pool), size=(2, len(values)))]
    values = values + np.float32(amount) * (a - b)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def _amount(pool: Float32[ndarray, "n c"], house: Int64[ndarray, " n"]) -> float:
    """Of noise, with which a copy is as similar as the most similar landmark of another house."""
    similarity = pool @ pool.T
    similarity[house[:, None] == house] = -1
    aim = np.median(similarity.max(axis=1))
    random = np.random.default_rng

    def beyond(amount: float) -> float:
        return float(np.median((pool * _perturbed(pool, pool, amount, random(0))).sum(axis=1)) - aim)

    return float(brentq(beyond, 0, 10))


def _made(listed: Path, out: Path, files: int | None = None) -> str:
    """`locus index` in a process of its own, killed when there are so many files; seconds and peak memory."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "locus", "index", str(listed), "--out", str(out)])
    while files is not None and process.poll() is None:
        if out.exists() and sum(file.suffix == ".faiss" for file in out.iterdir()) >= files:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.2)
    _, status, usage = os.wait4(process.pid, 0)
    assert files is not None or status == 0, "locus index failed"
    seconds = f"{time.perf_counter() - began:.0f} s ({usage.ru_utime + usage.ru_stime:.0f} s of processor)"
    return f"{seconds}, {usage.ru_maxrss / 2**20:.2f} GiB"


def _milliseconds(began: float, count: int = 1) -> str:
    """Of processor, which other work on the machine does not change."""
    return f"{1000 * (time.process_time() - began) / count:.2f} ms"


def _compare(
    index: MapIndex, queries: dict[str, Float[ndarray, "scales frames rows columns c"]], each: int, patches: int
) -> None:
    """Images of every house, patches of each: what the index finds against what comparing with all landmarks finds."""
    images = [
        (name, number) for name in queries for number in np.linspace(1, queries[name].shape[1] - 2, each, dtype=int)
    ]
    features = [torch.from_numpy(queries[name][:, number].astype(np.float32)) for name, number in images]
    random = np.random.default_rng(0)
    chosen = np.stack([random.choice(features[0][0, ..., 0].numel(), patches, replace=False) for _ in images])
    asked = torch.stack([of.flatten(1, 2)[:, rows] for of, rows in zip(features, chosen, strict=True)], dim=1)
    truth = _exact(index, asked.flatten(1, 2).numpy())
    shape = (len(images), patches, NEIGHBOURS)
    votes = np.zeros((2, len(images), len(index.environments)), np.int64)
    for scale, exact in enumerate(truth):
        began = time.process_time()
        found = index.search(asked[scale].flatten(0, 1), NEIGHBOURS, scale)[1]
        took = _milliseconds(began, len(found))
        same = found[:, :, None] == exact[:, None, :]
        place = (found[:, 0] >> ENVIRONMENT == exact[:, 0] >> ENVIRONMENT).mean()
        best = same[:, :, 0]
        print(
            f"scale {scale}, {len(index.scales[scale])} landmarks: the best one first {best[:, 0].mean():.3f}, "
            f"among {NEIGHBOURS} {best.any(axis=1).mean():.3f}; all {NEIGHBOURS} {same.any(axis=1).mean():.3f};"
            f" its environment first {place:.3f}; {took} a patch"
        )
        for which, numbers in zip(votes, (exact, found), strict=True):
            for of_image, environments in zip(which, (numbers.reshape(shape) >> ENVIRONMENT), strict=True):
                for of_patch in environments:
                    of_image[np.unique(of_patch)] += 1
    exact, found = np.argsort(-votes, axis=2, kind="stable")[..., :10]
    true = np.array([index.environments.index(name) for name, _ in images])
    print(
        f"{len(images)} images, {patches} patches each: the environment that comparing finds is found first "
        f"{(exact[:, 0] == found[:, 0]).mean():.3f}, among 10 {(exact[:, :1] == found).any(axis=1).mean():.3f}"
    )
    for name, which in (("comparing", exact), ("index", found)):
        right = which == true[:, None]
        print(f"the true one, by {name}: first {right[:, 0].mean():.3f}, among 10 {right.any(axis=1).mean():.3f}")
    for state in ("cells and maps seen before or not", "all seen before"):
        began = time.process_time()
        near = [index.near(each) for each in features]
        print(f"{_milliseconds(began, len(near))} an image of {features[0][0, ..., 0].numel()} patches, {state}")
    best = [world.environments[likely_environments(world, each)[0]] for world, each in zip(near, features, strict=True)]
    print(
        f"all patches, compared exactly in {OPENED} environments: the true one first "
        f"{np.mean([name == of for name, (of, _) in zip(best, images, strict=True)]):.3f}"
    )
    print(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB, with what comparing takes"
    )


def _exact(index: MapIndex, asked: Float32[ndarray, "scales q c"]) -> list[Int64[ndarray, "q k"]]:
    """By comparing with every landmark of every map."""
    heaps = [faiss.ResultHeap(len(each), NEIGHBOURS, keep_max=True) for each in asked]
    waiting: list[list] = [[] for _ in asked]
    for number in track(range(len(index.maps)), "compare", len(index.maps)):
        last = number == len(index.maps) - 1
        for heap, queries, rest, of_scale in zip(heaps, asked, waiting, landmarks_of(index, number), strict=True):
            rest.append(of_scale)
            if last or sum(len(rows) for rows, _ in rest) > BLOCK:
                rows, numbers = (np.concatenate(part) for part in zip(*rest, strict=True))
                best = torch.topk(
                    torch.from_numpy(queries) @ torch.from_numpy(rows).T, min(NEIGHBOURS, len(rows)), dim=1
                )
                heap.add_result(best.values.numpy(), numbers[best.indices.numpy()])
                rest.clear()
    for heap in heaps:
        heap.finalize()
    return [heap.I for heap in heaps]


if __name__ == "__main__":
    tyro.cli(many)
