"""Fit the two probabilities of `locus changes` to houses that were visited again, and print their constants.

    python benchmarks/changes_fit.py FOLDER [--model NAME]

FOLDER holds houses and their visits, as `locus houses` and `locus houses --changed-from` write them. All recordings of
a house are compared in their true coordinates, and turned and shifted a little, as alignments are. *changed*: that a
surface has changed (`locus.tasks.changed_surfaces`). *same thing*: that what is gone and what is new are one thing
(`locus.tasks.same_thing`).
"""

import argparse
from dataclasses import replace
from itertools import combinations, compress
from pathlib import Path

import numpy as np
from changes import Box, frames_of, inside
from jaxtyping import Float
from numpy import ndarray

from locus.files import load_json
from locus.geometry import invert, transform
from locus.model import LoCUS, load
from locus.model.shipped import DEFAULT
from locus.tasks.changed_surfaces import changed_surfaces
from locus.tasks.objects import Curve
from locus.tasks.same_thing import cues
from locus.tasks.session_changes import PROBABILITY

SHIFTS = 2  # times that two recordings are compared: as they are, and turned and shifted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default=DEFAULT)
    told = parser.parse_args()
    fit_curves(told.folder, load(told.model))


def fit_curves(folder: Path, model: LoCUS) -> None:
    """Print the constants of both probabilities."""
    random = np.random.default_rng(0)
    evidence, pairs = [], []
    for home in sorted(folder.glob("house-??????")):
        visits = sorted(file.with_suffix("") for file in folder.glob(f"{home.name}-visit-*.json"))
        frames = {path: frames_of(path, model) for path in (home, *visits)}
        boxes = boxes_of(home, visits)
        for a, b in combinations(frames, 2):
            for near in range(SHIFTS):
                motion = small_motion(random) if near else np.eye(4)
                other = replace(frames[b], world_from_camera=motion @ frames[b].world_from_camera)
                gone, new = changed_surfaces(frames[a], other), changed_surfaces(other, frames[a])
                names = [
                    [named(transform(back, each.points), boxes[path], boxes[beside]) for each in surfaces]
                    for surfaces, path, beside, back in ((gone, a, b, np.eye(4)), (new, b, a, invert(motion)))
                ]
                surfaces = zip([*gone, *new], [*names[0], *names[1]], strict=True)
                evidence += [(each.evidence, name is not None) for each, name in surfaces]
                sure = [[each.probability >= PROBABILITY for each in surfaces] for surfaces in (gone, new)]
                if any(sure[0]) and any(sure[1]):
                    found = cues(frames[a], list(compress(gone, sure[0])), other, list(compress(new, sure[1])))
                    told = [list(compress(*each)) for each in zip(names, sure, strict=True)]
                    truth = [[one is not None and one == two for two in told[1]] for one in told[0]]
                    pairs.append((found.reshape(-1, found.shape[-1]), np.ravel(truth)))
    given = [map(np.array, zip(*evidence, strict=True)), map(np.concatenate, zip(*pairs, strict=True))]
    for name, (found, truths) in zip(("changed", "same thing"), given, strict=True):
        curve = Curve.fit(found, truths)
        weights = ", ".join(f"{value:.2f}" for value in (curve.bias, *curve.weight))
        print(f"{name}: {weights} ({np.sum(truths)} of {len(truths)} true)")


def boxes_of(home: Path, visits: list[Path]) -> dict[Path, dict[str, Box]]:
    """Where each thing that ever changes stands in each recording of a house."""
    changes = {path: load_json(path.with_suffix(".json"))["changes"] for path in visits}
    name = {
        (path, each["instance"]): f"{path.name if each['change'] == 'new' else home.name} {each['instance']}"
        for path in visits
        for each in changes[path]
    }
    first = {
        name[path, each["instance"]]: each["before"] for path in visits for each in changes[path] if each["before"]
    }
    boxes = {home: first}
    for path in visits:
        now = {**first, **{name[path, each["instance"]]: each["after"] for each in changes[path]}}
        boxes[path] = {thing: box for thing, box in now.items() if box}
    return boxes


def named(points: Float[ndarray, "n 3"], here: dict[str, Box], there: dict[str, Box]) -> str | None:
    """The thing that a surface is of, if that is not at the same place in the other recording."""
    fits = (name for name, box in here.items() if there.get(name) != box and inside(points, box) >= 0.5)
    return next(fits, None)


def small_motion(random: np.random.Generator) -> Float[ndarray, "4 4"]:
    """What an alignment may be off by: up to 0.12 m, and 1.5° about the vertical."""
    motion, angle = np.eye(4), np.radians(random.uniform(-1.5, 1.5))
    motion[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    motion[:3, 3] = random.uniform(-0.07, 0.07, 3)
    return motion


if __name__ == "__main__":
    main()
