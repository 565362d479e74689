"""How exactly two sessions of one environment are aligned, and whether sessions of different ones are refused.

    python benchmarks/align.py SCENE... [--split halves|interleaved] [--others SCENE...] [--tries 100] [--rgb]
    python benchmarks/align.py A --second B

Each SCENE is two sessions: its first half and its second, or every other frame. A map is made of the first, and the
second is aligned with it after a random motion took its coordinates away. With --second, B is another recording in the
coordinates of A. Each try takes the second session of another scene, which must be refused. Maps and answers are kept
in --kept, so that a run that was stopped goes on; name another folder for another model.
"""

import argparse
import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus import LandmarkMap, load_scene
from locus.evaluation.localization import LEAST
from locus.evaluation.localizers import WITH_DEPTH, PointLocalizer
from locus.evaluation.methods import ModelMethod
from locus.features.dense import SceneFeatures, scene_features
from locus.files import write_json
from locus.geometry import invert, pose_error
from locus.model import load
from locus.model.shipped import DEFAULT
from locus.progress import track
from locus.tasks.agreement import VIEWPOINTS, AgreedMotion, agreed_motion
from locus.tasks.sessions import FRAMES, spread_over

MAPPED = 48  # frames of a map at most

Answer = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", type=Path)
    parser.add_argument("--second", type=Path)
    parser.add_argument("--others", nargs="*", type=Path, default=[])
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--split", choices=("halves", "interleaved"), default="halves")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--rgb", action="store_true")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--kept", type=Path, default=Path("runs/align"))
    told = parser.parse_args()
    sessions = Sessions(told.model, told.split, told.frames, told.rgb or told.scale, told.kept)
    random = np.random.default_rng(0)
    print(f"{'sessions':44} found agree views    m (±)          ° (±)        scale")
    for path in told.scenes:
        answers = sessions.answers(path, told.second or path, whole=told.second is not None)
        truth, stretch = separation(random, told.scale)
        agreement = fitted(answers, truth, stretch, told.scale)
        name = path.name if told.second is None else f"{path.name} {told.second.name}"
        print(f"{name:44} {row(answers, agreement, truth, stretch)}")
    wrong, most = 0, 0
    pairs = different(told.others, told.tries)
    for a, b in track(pairs, "tries", len(pairs)):
        answers = sessions.answers(a, b)
        agreement = fitted(answers, *separation(random, told.scale), told.scale)
        most = max(most, 0 if agreement is None else agreement.viewpoints)
        if agreement is not None and not agreement.reason:
            wrong += 1
            print(f"{a.name + ' ' + b.name:44} merged: {row(answers, agreement, np.eye(4), 1.0)}")
    if pairs:
        print(f"{len(pairs)} tries with sessions of different environments: {wrong} wrong merges;")
        print(f"at most {most} viewpoints agreed with confidence, and {VIEWPOINTS} are needed")


class Sessions:
    """Maps of first sessions, and where frames of second ones are in them."""

    def __init__(self, model: str, split: str, frames: int, rgb: bool, kept: Path) -> None:
        method = ModelMethod(model, load(model))
        self.way, self.split, self.frames, self.kept = PointLocalizer(method), split, frames, kept
        self.kind = next(kind for kind in LEAST if (kind == WITH_DEPTH) != rgb)
        self.seen = cache(lambda path: scene_features(method.model, load_scene(path)))

    def answers(self, a: Path, b: Path, *, whole: bool = False) -> list[Answer]:
        """The frames of a session of B that are found in the map of one of A; `whole` scenes, or parts of them."""
        kept = self.kept / ("whole" if whole else self.split)
        file = kept / f"answers {self.frames} {self.kind}" / f"{a.name} {b.name}.json"
        if not file.exists():
            world, (_, second) = self._map(a, kept, whole), self._sessions(b, whole)
            seen = self.seen(b).take([second[number] for number in spread_over(len(second), self.frames)])
            write_json(file, [self._answer(world, seen, row) for row in range(len(seen))])
        return [each for each in json.loads(file.read_text()) if each["confidence"] >= LEAST[self.kind]]

    def _answer(self, world: LandmarkMap, seen: SceneFeatures, row: int) -> Answer:
        location = self.way.ask(world, seen, row, self.kind, seed=0)
        frame = seen.frame(row)
        return {"frame": frame.name, "truth": frame.world_from_camera.tolist(), **location.described()}

    def _map(self, path: Path, kept: Path, whole: bool) -> LandmarkMap:
        folder = kept / "maps" / path.name
        if not folder.exists():
            first = self._sessions(path, whole)[0]
            rows = [first[number] for number in spread_over(len(first), MAPPED)]
            self.way.build(self.seen(path).take(rows)).save(folder)
        return LandmarkMap.load(folder)

    def _sessions(self, path: Path, whole: bool) -> tuple[range, range]:
        rows = range(len(self.seen(path)))
        if whole:
            return rows, rows
        return (
            (rows[::2], rows[1::2]) if self.split == "interleaved" else (rows[: len(rows) // 2], rows[len(rows) // 2 :])
        )


def different(scenes: Sequence[Path], tries: int) -> list[tuple[Path, Path]]:
    """Pairs of different scenes: as few maps as sessions that are tried with each."""
    side = math.isqrt(max(tries, 1) - 1) + 1
    count, steps = len(scenes), range(1, min(side + 1, len(scenes)))
    return [(scenes[first], scenes[(first + step) % count]) for step in steps for first in range(min(side, count))][
        :tries
    ]


def separation(random: np.random.Generator, scale: bool) -> tuple[Float[ndarray, "4 4"], float]:
    """A motion, A from B, that is to be found, and the length of B's unit in metres."""
    a_from_b = np.eye(4)
    a_from_b[:3, :3] = Rotation.random(random_state=int(random.integers(2**31))).as_matrix()
    a_from_b[:3, 3] = random.uniform(-10, 10, 3)
    return a_from_b, float(np.exp(random.uniform(-1, 1))) if scale else 1.0


def fitted(answers: Sequence[Answer], a_from_b: Float[ndarray, "4 4"], unit: float, scale: bool) -> AgreedMotion | None:
    """What the frames that were localized agree on, in B's own coordinates; None if none was localized."""
    if not answers:
        return None
    poses_a, poses_b = (np.array([each[which] for each in answers]) for which in ("world_from_camera", "truth"))
    poses_b = invert(a_from_b) @ poses_b
    poses_b[:, :3, 3] /= unit
    return agreed_motion(poses_a, poses_b, np.array([each["confidence"] for each in answers]), scale=scale)


def row(answers: Sequence[Answer], agreement: AgreedMotion | None, a_from_b: Float[ndarray, "4 4"], unit: float) -> str:
    """Answers, those that agree, their viewpoints, and the error at the cameras with what is said of it."""
    if agreement is None or agreement.reason:
        return "refused: " + ("no frame was localized" if agreement is None else agreement.reason)
    truth = np.array([each["truth"] for each in answers])
    poses_b = invert(a_from_b) @ truth
    poses_b[:, :3, 3] /= unit
    errors = np.array([pose_error(*pair) for pair in zip(agreement.placed(poses_b), truth, strict=True)])
    metres, degrees = np.sqrt((errors**2).mean(axis=0))
    return (
        f"{len(answers):5} {agreement.agree.sum():5} {agreement.viewpoints:5}   "
        f"{metres:.3f} (± {agreement.metres:.3f})   {degrees:.2f} (± {agreement.degrees:.2f})   "
        f"{agreement.scale / unit:.4f} (± {agreement.scale_error:.4f})"
    )


if __name__ == "__main__":
    main()
