"""Whether an index names the right house for an image, among many small generated houses.

    python benchmarks/places.py [--houses 1000] [--kept runs/places]

Each house has three rooms, and its light is sampled coarsely, which takes half the time. Of a walk, frames 0 and 2 are
mapped, 0.6 m apart; frame 1, between them, and frame 7, 1.5 m farther on, are looked for in the index of all houses.
What is done is kept in --kept: a run that was stopped goes on, and `--houses` may be fewer or more the next time.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch
import tyro

from locus.files import atomic
from locus.geometry import Camera
from locus.houses import HouseSettings, generate
from locus.houses.house import stream
from locus.houses.planning import draw_plan
from locus.landmarks import LandmarkMap, MapError
from locus.landmarks.indexing import build_index
from locus.landmarks.map_files import ARRAYS
from locus.landmarks.map_index import OPENED
from locus.model import LoCUS, load
from locus.model.shipped import DEFAULT
from locus.progress import track
from locus.render import baking
from locus.tasks.localize import localize_features

FIRST = 900_000  # seed
ROOMS = 3  # the fewest that houses have
MAPPED = slice(0, 3, 2)
SURE = 0.5  # probability of a pose to 0.1 m and 5°
ASKED = {1: "between two mapped frames", 7: "1.5 m farther on"}


def main(houses: int = 1000, kept: Path = Path("runs/places")) -> None:
    baking.GATHER_RAYS, baking.WINDOW_RAYS, baking.LAMP_RAYS, baking.SUN_RAYS, baking.BOUNCES = 6, (1, 2), 2, 1, 2
    model = load(DEFAULT)
    seeds = list(islice(small(), houses))
    folders = [kept / "maps" / f"house-{seed:06d}" for seed in seeds]
    for seed, folder in track(list(zip(seeds, folders, strict=True)), "houses", houses):
        if not folder.with_suffix(".npz").exists():
            make(seed, folder, model)
    mapped = [folder for folder in folders if (folder / ARRAYS).exists()]
    index = build_index(mapped, kept / f"index-{len(mapped)}")
    print(f"{len(mapped)} of {houses} houses have landmarks, {len(index)} in all")
    for row, title in enumerate(ASKED.values()):
        first = among = 0
        answers = []
        seconds = []
        for folder in track(mapped, title, len(mapped)):
            with np.load(folder.with_suffix(".npz"), allow_pickle=False) as file:
                features, depth = torch.from_numpy(file["features"][row].astype(np.float32)), file["depth"][row]
                width, height, *lens = file["camera"]
            order = np.argsort(-index.votes(features), kind="stable")
            first += index.environments[order[0]] == folder.name
            among += folder.name in [index.environments[number] for number in order[:OPENED]]
            began = time.process_time()
            found = localize_features(index.near(features), features, Camera(int(width), int(height), *lens), depth)
            seconds.append(time.process_time() - began)
            answers.append((found.here, found.environment == folder.name, found.probability or 0.0))
        here, right, probability = map(np.array, zip(*answers, strict=True))
        sure = probability >= SURE
        print(
            f"{title}: most votes {first / len(mapped):.3f}, among {OPENED} {among / len(mapped):.3f}; localized "
            f"{here.sum()} of {len(mapped)}, {right.sum()} in the right house; with a probability of {SURE} "
            f"{sure.sum()}, {right[sure].sum()} in the right house; {1000 * np.median(seconds):.0f} ms"
        )


def small() -> Iterator[int]:
    """Seeds of houses with the fewest rooms."""
    return (seed for seed in count(FIRST) if len(draw_plan(stream(seed, "plan")).rooms) == ROOMS)


def make(seed: int, folder: Path, model: LoCUS) -> None:
    """The map of a house, and what is asked; no map if no spot is seen twice."""
    scene = generate(seed, HouseSettings(frames=max(ASKED) + 1, path="walk"))
    asked = [scene[number] for number in ASKED]
    features = np.stack([model.features(frame.image).cpu().numpy() for frame in asked]).astype(np.float16)
    camera = asked[0].camera
    with suppress(MapError):
        LandmarkMap.build(model, scene[MAPPED], cache=folder.parent.parent / "tokens").save(folder)
    depth = np.stack([frame.depth for frame in asked])
    lens = np.array([camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy])
    with atomic(folder.with_suffix(".npz")) as path, path.open("wb") as file:
        np.savez(file, features=features, depth=depth, camera=lens)


if __name__ == "__main__":
    tyro.cli(main)
