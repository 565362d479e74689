"""Which frames are compared: drawn by overlap, or named in a file (SuperGlue's lines too)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.scene_patches import EvaluationError, ScenePatches
from locus.features.images import IMAGE_SUFFIXES
from locus.geometry import Camera, invert, rigid
from locus.opening import read_text

OVERLAP = (0.1, 0.25, 0.5, 1.0)  # pairs that see less of each other are not drawn
SUPERGLUE = 2 + 2 + 9 + 9 + 16  # name_a name_b rot_a rot_b K_a K_b T_b_from_a
CALIBRATED = 2 + 9 + 9 + 9 + 3  # name_a name_b K_a K_b R t, as glue-factory lists pairs


@dataclass(frozen=True)
class FramePair:
    """Two frames (rows of the scene's patches) and the true motion between them."""

    a: int
    b: int
    names: tuple[str, str]
    cameras: tuple[Camera, Camera]
    b_from_a: Float[ndarray, "4 4"]
    overlap: float
    """The lesser of the shares that each sees of the other."""
    line: int | None = None
    """Which of a file's pairs it is."""


@dataclass(frozen=True)
class PairLine:
    """A line of a pairs file."""

    a: str
    b: str
    b_from_a: Float[ndarray, "4 4"] | None = None
    """If the line says it."""
    intrinsics: tuple[Float[ndarray, "3 3"], Float[ndarray, "3 3"]] | None = None

    def __str__(self) -> str:
        return f"{self.a} {self.b}"


def between(overlap: Float[ndarray, " n"], low: float, high: float) -> Bool[ndarray, " n"]:
    """Which lie in a range, whose end belongs to the next one; there is none after 1."""
    return (overlap >= low) & ((overlap < high) | (high == 1))


def draw_pairs(
    patches: ScenePatches, count: int, seed: int, overlap: Sequence[float] = OVERLAP, baseline: float = 0.0
) -> list[FramePair]:
    """Up to `count` pairs of each range between two values of `overlap`, cameras at least `baseline` metres apart."""
    centres = np.stack([patches.frame(row).world_from_camera[:3, 3] for row in range(len(patches))])
    apart = np.linalg.norm(centres[:, None] - centres, axis=-1) >= baseline
    first, second = np.nonzero(np.triu(apart, 1))
    values = patches.mutual_overlap[first, second]
    rng = patches.random(seed)
    drawn = []
    for low, high in pairwise(overlap):
        inside = np.flatnonzero(between(values, low, high))
        for pair in np.sort(rng.choice(inside, min(count, len(inside)), replace=False)):
            # Either may come first, or the camera would always move on in time.
            a, b = rng.permutation([first[pair], second[pair]])
            drawn.append(pair_of(patches, int(a), int(b)))
    return drawn


def pair_of(patches: ScenePatches, a: int, b: int) -> FramePair:
    """As the scene says."""
    first, second = patches.frame(a), patches.frame(b)
    b_from_a = invert(second.world_from_camera) @ first.world_from_camera
    names, cameras = (first.name, second.name), (first.camera, second.camera)
    return FramePair(a, b, names, cameras, b_from_a, float(patches.mutual_overlap[a, b]))


def read_pairs(path: Path) -> list[PairLine]:
    """Lines `name_a name_b`, SuperGlue's 38 values or glue-factory's 32; those empty or begun with # are skipped."""
    if not path.is_file():
        raise EvaluationError(f"{path}, the file of pairs, does not exist")
    pairs, seen = [], set()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            pair = _named(words)
        except (LocusError, ValueError) as error:
            raise EvaluationError(f"{path}, line {number}: {error}") from None
        if _bare(pair.a) == _bare(pair.b):
            raise EvaluationError(f"{path}, line {number}: {pair.a} is paired with itself")
        if (pair.a, pair.b) in seen:
            raise EvaluationError(f"{path}, line {number}: the pair {pair} is there twice")
        seen.add((pair.a, pair.b))
        pairs.append(pair)
    if not pairs:
        raise EvaluationError(f"{path} names no pair")
    return pairs


def _named(words: Sequence[str]) -> PairLine:
    if len(words) == 2:
        return PairLine(words[0], words[1])
    if len(words) == CALIBRATED:
        values = np.array(words[2:], np.float64)
        b_from_a = np.eye(4)
        b_from_a[:3, :3], b_from_a[:3, 3] = values[18:27].reshape(3, 3), values[27:]
        return PairLine(words[0], words[1], rigid(b_from_a), (values[:9].reshape(3, 3), values[9:18].reshape(3, 3)))
    if len(words) != SUPERGLUE:
        raise EvaluationError(
            f"a pair has 2 names, glue-factory's {CALIBRATED} values, or SuperGlue's {SUPERGLUE}, not {len(words)}"
        )
    if (words[2], words[3]) != ("0", "0"):
        raise EvaluationError("turned images (the third and fourth value) are not supported; turn them upright")
    values = np.array(words[4:], np.float64)
    b_from_a = rigid(values[18:].reshape(4, 4))
    return PairLine(words[0], words[1], b_from_a, (values[:9].reshape(3, 3), values[9:18].reshape(3, 3)))


def named_pairs(patches: ScenePatches, named: Sequence[PairLine]) -> list[FramePair]:
    """The pairs of a file that are of this scene: frames by name, with or without the scene's folder and an ending."""
    rows = {_bare(patches.scene.sources[index].name): row for row, index in enumerate(patches.indices)}

    def row_of(name: str) -> int | None:
        path = Path(_bare(name))
        # Frames of other scenes have the same numbers.
        here = len(path.parts) == 1 or patches.scene.name in path.parts[:-1]
        return rows.get(str(path), rows.get(path.name) if here else None)

    pairs = []
    for line, each in enumerate(named):
        a, b = row_of(each.a), row_of(each.b)
        if a is None or b is None:
            continue
        pair = replace(pair_of(patches, a, b), line=line)
        if each.b_from_a is not None and each.intrinsics is not None:
            first, second = (
                Camera.from_opencv(k, camera.width, camera.height)
                for camera, k in zip(pair.cameras, each.intrinsics, strict=True)
            )
            pair = replace(pair, b_from_a=each.b_from_a, cameras=(first, second))
        pairs.append(pair)
    return pairs


def _bare(name: str) -> str:
    """Without the ending of an image; a time that a frame is named by has a point of its own."""
    path = Path(name)
    return str(path.with_suffix("") if path.suffix.lower() in IMAGE_SUFFIXES else path)
