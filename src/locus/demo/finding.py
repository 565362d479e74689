"""A house mapped from every other frame; the frames between, and another house's, looked for in it.

What is mapped, what is looked for and what counts as an answer is that of `locus eval localization`, by landmarks
alone: the features are compared here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.localization import LEAST, Localization, within
from locus.evaluation.localizers import ask
from locus.evaluation.metrics import median
from locus.features.dense import SceneFeatures
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap
from locus.landmarks.map import MapError
from locus.model import LoCUS

CLOSE = (0.25, 5.0)  # metres and degrees: a good answer
PROTOCOL = Localization(split="interleaved")


Pose = Float[ndarray, "4 4"]


@dataclass(frozen=True)
class Answers:
    """What was said of all images of a house, asked about in one way."""

    found: Sequence[Pose | None]
    """None for "not here"."""
    true: Sequence[Pose]
    """In the house's own coordinates: images of a house that is not on the map have no errors."""

    def __len__(self) -> int:
        return len(self.found)

    @property
    def refused(self) -> int:
        """Answered "not here"."""
        return sum(pose is None for pose in self.found)

    @property
    def errors(self) -> Float[ndarray, "n 2"]:
        """Metres and degrees; infinite where there is no answer."""
        pairs = zip(self.found, self.true, strict=True)
        off = [(np.inf, np.inf) if found is None else pose_error(found, true) for found, true in pairs]
        return np.array(off, np.float64).reshape(-1, 2)

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
    here: Mapping[str, Answers]
    """Frames of the mapped house, with depth and by colour alone."""
    elsewhere: Mapping[str, Answers]
    """Frames of another house."""


def find(label: str, world: LandmarkMap, here: SceneFeatures, elsewhere: SceneFeatures) -> Finding:
    """Look for frames of the mapped house, and of another."""
    return Finding(label, world, *({kind: _ask(world, seen, kind) for kind in LEAST} for seen in (here, elsewhere)))


def _ask(world: LandmarkMap, seen: SceneFeatures, kind: str) -> Answers:
    locations = [ask(world, seen, row, kind) for row in range(len(seen))]
    found = [each.world_from_camera if each.confidence >= LEAST[kind] else None for each in locations]
    return Answers(found, [seen.frame(row).world_from_camera for row in range(len(seen))])


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
