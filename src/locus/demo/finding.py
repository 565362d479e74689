"""A house mapped from every other frame; the frames between, and another house's, looked for in it.

What is mapped, what is looked for and what counts as an answer is that of `locus eval localization`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.localization import LEAST, Localization, ask, within
from locus.evaluation.metrics import median
from locus.features.dense import SceneFeatures
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap
from locus.landmarks.map import MapError
from locus.model import LoCUS

CLOSE = (0.25, 5.0)  # metres and degrees: a good answer
PROTOCOL = Localization(split="interleaved")


@dataclass(frozen=True, eq=False)
class Answer:
    """What was said of one image."""

    found: Float[ndarray, "4 4"] | None
    """The pose; None for "not here"."""
    true: Float[ndarray, "4 4"] | None
    """None for an image of another house."""

    @property
    def error(self) -> tuple[float, float]:
        """Metres and degrees; infinite where there is no answer, or no truth."""
        return (np.inf, np.inf) if self.found is None or self.true is None else pose_error(self.found, self.true)


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
        return np.array([answer.error for answer in self.answers], np.float64).reshape(-1, 2)

    @property
    def close(self) -> int:
        """Answers within 0.25 m and 5°."""
        return int(within(self.errors, CLOSE).sum())

    @property
    def median(self) -> tuple[float, float]:
        """Metres and degrees, over all images; infinite if half were not found."""
        return float(median(self.errors[:, 0])), float(median(self.errors[:, 1]))


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


def find(label: str, world: LandmarkMap, here: SceneFeatures, elsewhere: SceneFeatures) -> Finding:
    """Look for frames of the mapped house, and of another."""
    asked = [(seen, kind, seen is here) for seen in (here, elsewhere) for kind in LEAST]
    return Finding(label, world, *(_ask(world, *each) for each in asked))


def _ask(world: LandmarkMap, seen: SceneFeatures, kind: str, here: bool) -> Answers:
    answers = []
    for row in range(len(seen)):
        location = ask(world, seen, row, kind)
        found = location.world_from_camera if location.confidence >= LEAST[kind] else None
        answers.append(Answer(found, seen.frame(row).world_from_camera if here else None))
    return Answers(answers)


def open_map(folder: Path, model: LoCUS, seen: SceneFeatures) -> tuple[LandmarkMap, bool]:
    """The map of some frames, and whether it was there already; one that is damaged or of others is replaced."""
    names = tuple(seen.frame(row).name for row in range(len(seen)))
    try:
        world = LandmarkMap.load(folder)
        if world.model == model.fingerprint and world.environments == (seen.scene.name,) and world.frame_names == names:
            return world, True
    except MapError:
        pass
    world = LandmarkMap.build(model, seen)
    world.save(folder)
    return world, False
