"""A house mapped from every other frame; the frames between, and another house's, looked for in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.features.dense import SceneFeatures
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap
from locus.landmarks.map import MapError
from locus.model import LoCUS
from locus.tasks.localize import localize_features

CLOSE = (0.25, 5.0)  # metres and degrees: a good answer


@dataclass(frozen=True, eq=False)
class Answer:
    """What was said of one image."""

    found: Float[ndarray, "4 4"] | None
    """The pose; None for "not here"."""
    true: Float[ndarray, "4 4"] | None
    """None for an image of another house."""

    @property
    def error(self) -> tuple[float, float] | None:
        """Metres and degrees, where there is an answer and a truth."""
        return None if self.found is None or self.true is None else pose_error(self.found, self.true)


@dataclass(frozen=True)
class Answers:
    """All images of one kind, asked about in one way."""

    answers: Sequence[Answer]

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def found(self) -> int:
        return sum(answer.found is not None for answer in self.answers)

    @property
    def errors(self) -> Float[ndarray, "n 2"]:
        """Metres and degrees; infinite where an image of this house was not found."""
        far = (np.inf, np.inf)
        return np.array([answer.error or far for answer in self.answers], np.float64).reshape(-1, 2)

    @property
    def close(self) -> int:
        """Answers within 0.25 m and 5°."""
        return int((self.errors <= CLOSE).all(axis=1).sum())

    @property
    def median(self) -> tuple[float, float]:
        """Metres and degrees, over all images; not finite if fewer than half were found."""
        metres, degrees = np.median(self.errors, axis=0)
        return float(metres), float(degrees)


@dataclass(frozen=True)
class Finding:
    """One kind of features, put to work."""

    label: str
    world: LandmarkMap
    rgbd: Answers
    """Frames of the mapped house, with depth."""
    rgb: Answers
    """The same from colour alone."""
    elsewhere: Answers
    """Frames of another house, with depth."""
    elsewhere_rgb: Answers


def mapped_rows(seen: SceneFeatures) -> range:
    return range(0, len(seen), 2)


def query_rows(seen: SceneFeatures) -> range:
    return range(1, len(seen), 2)


def find(label: str, world: LandmarkMap, here: SceneFeatures, elsewhere: SceneFeatures) -> Finding:
    """Look for the frames between the mapped ones, and for another house's."""
    asked = [(seen, depth, seen is here) for seen in (here, elsewhere) for depth in (True, False)]
    return Finding(label, world, *(_ask(world, *each) for each in asked))


def _ask(world: LandmarkMap, seen: SceneFeatures, depth: bool, here: bool) -> Answers:
    answers = []
    for row in query_rows(seen):
        frame = seen.frame(row)
        location = localize_features(world, seen.features[:, row], frame.camera, frame.depth if depth else None)
        answers.append(Answer(location.world_from_camera, frame.world_from_camera if here else None))
    return Answers(answers)


def open_map(folder: Path, model: LoCUS, seen: SceneFeatures) -> tuple[LandmarkMap, bool]:
    """The map of every other frame, and whether it was there already; one that is damaged or of others is replaced."""
    names = tuple(seen.frame(row).name for row in mapped_rows(seen))
    try:
        world = LandmarkMap.load(folder)
        if world.model == model.fingerprint and world.environments == (seen.scene.name,) and world.frame_names == names:
            return world, True
    except MapError:
        pass
    world = LandmarkMap.build(model, seen.take(mapped_rows(seen)))
    world.save(folder)
    return world, False
