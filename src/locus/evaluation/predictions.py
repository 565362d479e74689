"""Answers of systems run elsewhere, from files (docs/evaluation.md says how they are written)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.methods import Competitor
from locus.evaluation.scene_patches import EvaluationError
from locus.features.images import IMAGE_SUFFIXES
from locus.files import content_hash
from locus.geometry import invert, pose_matrices, rigid
from locus.opening import parse_json, read_text
from locus.scenes.trajectory import is_number

SAME_TIME = 0.02  # seconds between a pose of a trajectory and its frame, as the TUM benchmark's tools allow
NUMBERED = re.compile(r"#\s*(\d+) is (.+)")  # in a trajectory that `locus localize` wrote


class PosePredictions(Competitor):
    """Motions between frames: one JSON object a line, `{"scene", "a", "b", "b_from_a"}`; null: it found none."""

    def __init__(self, path: Path) -> None:
        self.label = path.stem
        self.path = path
        self._poses: dict[tuple[str, str, str], Float[ndarray, "4 4"] | None] = {}
        if not path.is_file():
            raise EvaluationError(f"{path}, the file of predictions, does not exist")
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if line.strip():
                try:
                    self._add(parse_json(line, "the line"))
                except (LocusError, KeyError, TypeError, ValueError) as error:
                    what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
                    raise EvaluationError(f"{path}, line {number}: {what}") from None

    @property
    def fingerprint(self) -> str:
        return content_hash(self.path)

    def _add(self, told: dict[str, Any]) -> None:
        key = (str(told["scene"]), str(told["a"]), str(told["b"]))
        if key in self._poses:
            raise EvaluationError(f"the pair {' '.join(key)} is there twice")
        stored = told["b_from_a"]
        if stored is not None:
            pose = np.array(stored, np.float64)
            if pose.shape != (4, 4):
                raise EvaluationError(f"b_from_a has shape {pose.shape}, not 4×4")
            stored = rigid(pose)
        self._poses[key] = stored

    def poses(self, scene: str, pairs: Sequence[tuple[str, str]]) -> list[Float[ndarray, "4 4"] | None]:
        """Of pairs of frames; one that is missing is an error, because leaving it out would flatter."""
        missing = [pair for pair in pairs if (scene, *pair) not in self._poses]
        if missing:
            raise EvaluationError(
                f"{self.path} misses {len(missing)} of {len(pairs)} pairs of {scene}, the first "
                f"{' '.join(missing[0])}; write null for pairs without a pose"
            )
        return [self._poses[(scene, *pair)] for pair in pairs]


@dataclass(frozen=True)
class ListedPose:
    """A line of a list of poses."""

    world_from_camera: Float[ndarray, "4 4"]
    more: tuple[str, ...]
    """What follows the pose: a focal length, errors that the system itself measured."""


def read_poses(path: Path) -> dict[str, ListedPose]:
    """Poses by the names of their images, as hloc, ACE and COLMAP write them, or by time, as the TUM benchmark does.

    Lines are `name qw qx qy qz tx ty tz`, which map the world's points to the camera's; or `time tx ty tz qx qy qz qw`,
    which map the camera's to the world's.
    """
    if not path.is_file():
        raise EvaluationError(f"{path}, the file of poses, does not exist")
    poses: dict[str, ListedPose] = {}
    named: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if (said := NUMBERED.fullmatch(line.strip())) is not None:
            named[said[1]] = said[2]
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            name, pose = _posed(words)
        except (LocusError, ValueError) as error:
            raise EvaluationError(f"{path}, line {number}: {error}") from None
        name = plain_name(named.get(name, name))
        if name in poses:
            raise EvaluationError(f"{path}, line {number}: {name} is there twice")
        poses[name] = pose
    if not poses:
        raise EvaluationError(f"{path} holds no pose")
    return poses


def _posed(words: Sequence[str]) -> tuple[str, ListedPose]:
    name, values = words[0], np.array(words[1:8], np.float64)
    if len(values) != 7:
        raise EvaluationError(f"a pose has a name and 7 numbers, not {len(words)} values")
    by_time = len(words) == 8 and is_number(name)
    order = [0, 1, 2, 3, 4, 5, 6] if by_time else [4, 5, 6, 1, 2, 3, 0]  # to a position and x y z w
    pose = rigid(pose_matrices(values[None, order])[0])
    return name, ListedPose(pose if by_time else invert(pose), tuple(words[8:]))


def plain_name(name: str) -> str:
    """What systems that write `seq-01/frame-000000.color.png` and `seq-01-frame-000000` both mean."""
    path = Path(name)
    stem = str(path.with_suffix("") if path.suffix.lower() in IMAGE_SUFFIXES else path)
    return stem.removesuffix(".color").replace("/", "-")


class LocationPredictions(Competitor):
    """Where frames were taken: a list of poses, or a folder with one for each scene, named after it."""

    def __init__(self, path: Path) -> None:
        self.label = path.stem
        self.path = path
        if not path.exists():
            raise EvaluationError(f"{path}, the predictions, does not exist")

    @property
    def fingerprint(self) -> str:
        return content_hash(*(sorted(self.path.rglob("*.txt")) if self.path.is_dir() else [self.path]))

    def poses(self, scene: str, frames: Sequence[str]) -> list[Float[ndarray, "4 4"] | None]:
        """Of the frames of a scene, None where the list has none, which counts as wrong."""
        file = self._of(scene)
        listed = read_poses(file)
        last = [Path(name).name for name in frames]
        short = last if len(set(last)) == len(last) else [""] * len(last)  # frames of two sequences share numbers
        found = [
            listed.get(plain_name(name)) or listed.get(plain_name(part)) or _at_time(listed, name)
            for name, part in zip(frames, short, strict=True)
        ]
        if not any(found):
            raise EvaluationError(
                f"{file} has a pose for none of the {len(frames)} frames of {scene} that are asked about: "
                f"it names {next(iter(listed))}, and the first frame is {frames[0]}"
            )
        return [None if each is None else each.world_from_camera for each in found]

    def _of(self, scene: str) -> Path:
        if self.path.is_file():
            return self.path
        part = re.compile(rf"(?:^|_){re.escape(scene.replace('/', '_'))}(?:_|\.txt$)")
        every = sorted(self.path.rglob("*.txt"))
        files = [file for file in every if part.search("_".join(file.relative_to(self.path).parts))]
        if len(files) != 1:
            names = ", ".join(file.relative_to(self.path).as_posix() for file in files)
            raise EvaluationError(
                f"{self.path} should hold one list of poses whose name has {scene} in it, not {names or 'none'}"
            )
        return files[0]


def _at_time(listed: Mapping[str, ListedPose], frame: str) -> ListedPose | None:
    """The pose nearest in time, where both are named by it."""
    if not is_number(frame):
        return None
    times = [name for name in listed if is_number(name)]
    nearest = min(times, key=lambda name: abs(float(name) - float(frame)), default=None)
    return None if nearest is None or abs(float(nearest) - float(frame)) > SAME_TIME else listed[nearest]
