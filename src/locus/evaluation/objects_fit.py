"""Fit what LoCUS knows of things to labelled scenes: `python -m locus.evaluation.objects_fit SCENE...`.

Writes kinds.safetensors beside `locus.features.kinds`, the directions of kinds for the backbone of the shipped model;
and objects.json beside `locus.tasks.objects`, curves for the shipped model, and for geometry and colour alone.
"""

import sys
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from locus.evaluation.methods import ModelMethod
from locus.evaluation.object_groups import GeometryAlone, ObjectGroups, surfaces
from locus.features.cache import cache_frames
from locus.features.kinds import fit_kinds, fitted_kinds, save_kinds
from locus.files import save_json
from locus.model import LoCUS
from locus.model.shipped import DEFAULT
from locus.scenes import Scene
from locus.scenes.collection import find_scenes, open_scenes
from locus.tasks.objects import FITTED
from locus.tasks.segments import membership

LEAST = 0.5  # patches' worth of a thing that a view must show


def main(scenes: tuple[str, ...]) -> None:
    model = LoCUS.from_pretrained(DEFAULT)
    views = [view for scene in open_scenes(find_scenes(scenes)) for view in thing_views(model, scene)]
    names = np.unique([name for name, _ in views], return_inverse=True)[1]
    save_kinds({model.backbone.fingerprint: fit_kinds(np.array([token for _, token in views]), names)})
    fitted_kinds.cache_clear()
    methods = [GeometryAlone(), ModelMethod(DEFAULT, model)]
    save_json(FITTED, {method.fingerprint: ObjectGroups(scenes).grouping(method).described() for method in methods})


def thing_views(model: LoCUS, scene: Scene) -> Iterator[tuple[str, Float[ndarray, " d"]]]:
    """The name of each thing, and its mean token, for every frame that shows it."""
    cached = cache_frames(scene, model.backbone, model.resolution)
    found, things = surfaces(scene, cached.grid)
    ids: Int[ndarray, " m"]
    ids, number = np.unique(things, return_inverse=True)
    shares, patches = found.shares(membership(number)).tocsc(), int(np.prod(cached.grid))
    for frame in range(len(cached.frames)):
        weight = shares[:, frame * patches : (frame + 1) * patches]
        total = np.asarray(weight.sum(axis=1)).ravel()
        mean = weight @ cached.tokens[frame][cached.prefix :].astype(np.float64) / np.maximum(total, 1e-9)[:, None]
        least = LEAST * float(found.patches.sum()) / (patches * len(cached.frames))
        yield from ((f"{scene.name} {ids[row]}", mean[row]) for row in np.flatnonzero((total >= least) & (ids > 0)))


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
