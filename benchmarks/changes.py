"""How well changes are found in houses that were visited again, and how many where nothing has changed.

    python benchmarks/changes.py FOLDER [--model NAME] [--kept FOLDER] [--same-coordinates]
    python benchmarks/changes.py --still SCENE... [--second SCENE]

FOLDER holds houses and their visits, as `locus houses` and `locus houses --changed-from` write them. Each visit is
aligned with the map of its house and compared with it; with --same-coordinates no map is made, and true coordinates are
taken. A change is observable if its thing is shown by two frames of
its own recording, and two frames of the other recording look at its place. What has moved, but is observable at one of
its places only, should be called gone, or new. An answer is right if half of its surface lies in the thing's box, and
no other answer has been counted there. Maps and alignments are kept in --kept.

With --still, nothing changes in a recording: every other frame is compared with the rest, or all of it with a --second
recording in the same coordinates. That needs no model, for things are only called gone or new.
"""

import argparse
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus import LandmarkMap, load_scene
from locus.features.dense import scene_features
from locus.files import load_json, write_json
from locus.geometry import invert, transform
from locus.landmarks import session_of
from locus.landmarks.arrays import Frames
from locus.landmarks.coarse_depth import coarse_depth, coarse_kinds
from locus.model import LoCUS, load
from locus.model.shipped import DEFAULT
from locus.progress import track
from locus.scenes import Scene
from locus.tasks.changed_surfaces import changed_surfaces
from locus.tasks.placed_points import detector_or_reason
from locus.tasks.session_changes import PROBABILITY, Change, compare, frame_changes
from locus.tasks.sessions import AlignmentError, align_session

PIXELS = 100  # of a thing, that a frame must show
FRAMES = 2
SHARE = 0.3  # of a place, that a frame must look at
AROUND = 0.1  # metres around a thing's box that its surface may lie in
KINDS = ("gone", "new", "moved")

Box = list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--still", type=Path, nargs="+", default=[])
    parser.add_argument("--second", type=Path)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--kept", type=Path, default=Path("runs/changes"))
    parser.add_argument("--same-coordinates", action="store_true")
    told = parser.parse_args()
    for path in told.still:
        frames = frames_of(path)
        halves = frames.take(slice(None, None, 2)), frames.take(slice(1, None, 2))
        a, b = halves if told.second is None else (frames, frames_of(told.second))
        surfaces = [*changed_surfaces(a, b), *changed_surfaces(b, a)]
        found = sum(surface.probability >= PROBABILITY for surface in surfaces)
        print(f"{path.name:36} {len(a):4} and {len(b):4} frames: {found} changes", flush=True)
    if told.folder is None:
        return
    visits = sorted(file.with_suffix("") for file in told.folder.glob("*-visit-*.json"))
    prepared = Prepared(told.model, told.kept, told.same_coordinates)
    changed, still = Score(), []
    for visit in track(visits, "visits", len(visits)):
        home = visit.with_name(visit.name.split("-visit-")[0])
        found = prepared.changes(home, visit)
        if found is None:
            print(f"{visit.name}: not aligned")
            continue
        if truth := observable(load_json(visit.with_suffix(".json"))["changes"], home, visit, told.kept):
            changed.add(found, truth)
        else:
            still.append(len(found))
        print(f"{visit.name}: {', '.join(f'{sum(each.what == kind for each in found)} {kind}' for kind in KINDS)}")
    print(f"\n{'':18} right answers  precision   found observable  recall")
    for name, (right, answers, hits, things) in changed.counts.items():
        shares = [f"{a / b:.2f}" if b else "–" for a, b in ((right, answers), (hits, things))]
        print(f"{name:18} {right:5} {answers:7} {shares[0]:>10} {hits:7} {things:10} {shares[1]:>7}")
    print(f"{len(still)} visits without changes: {sum(still)} false changes, in {np.count_nonzero(still)} of them")


def frames_of(path: Path, model: LoCUS | None = None) -> Frames:
    """What a map knows of frames when only changes matter; of what kind things are, if there is a model."""
    scene = load_scene(path)
    surface, lens = map(np.stack, zip(*map(coarse_depth, scene), strict=True))
    poses = np.stack([frame.world_from_camera for frame in scene])
    known = {
        "environment": np.zeros(len(poses), np.int32),
        "world_from_camera": poses,
        "surface": surface,
        "lens": lens,
    }
    if model is not None:
        seen = scene_features(model, scene)
        known["kind"] = np.stack([coarse_kinds(seen, row) for row in range(len(seen))])
    return replace(Frames.none(1), **known)


class Prepared:
    """Maps of recordings, and how visits lie in them."""

    def __init__(self, model: str, kept: Path, same_coordinates: bool) -> None:
        self.model, self.kept, self.same = load(model), kept, same_coordinates
        self.detector = detector_or_reason()[0]

    def changes(self, home: Path, visit: Path) -> list[Change] | None:
        """What has changed; None if the visit cannot be aligned."""
        if self.same:
            return frame_changes(*(frames_of(path, self.model) for path in (home, visit)))
        world, later = self._map(home), self._map(visit)
        file = self.kept / "aligned" / f"{visit.name}.json"
        if not file.exists():
            try:
                motion = align_session(world, self.model, load_scene(visit)).agreement.a_from_b.tolist()
            except AlignmentError:
                motion = None
            write_json(file, motion)
        motion = json.loads(file.read_text())
        if motion is None:
            return None
        return compare(world, session_of(later, world.environments[0], visit.name, np.array(motion)))

    def _map(self, path: Path) -> LandmarkMap:
        folder = self.kept / "maps" / path.name
        if not folder.exists():
            LandmarkMap.build(self.model, load_scene(path), detector=self.detector).save(folder)
        return LandmarkMap.load(folder)


@dataclass(frozen=True)
class Thing:
    """What should be found of a thing that has changed: its places, and what to call it, None if it cannot be seen."""

    kind: str | None
    before: Box | None
    after: Box | None


def observable(changes: list[dict[str, Any]], home: Path, visit: Path, kept: Path) -> list[Thing]:
    """What the two recordings show of the true changes, by their labels and full depth."""
    file = kept / "observable" / f"{visit.name}.json"
    if not file.exists():
        scenes = {"before": load_scene(home), "after": load_scene(visit)}
        seen = []
        for change in changes:
            sides = [
                bool(change[own]) and shown(change["instance"], scenes[own]) and looked_at(change[own], scenes[other])
                for own, other in (("before", "after"), ("after", "before"))
            ]
            kind = {(True, True): "moved", (True, False): "gone", (False, True): "new"}.get((sides[0], sides[1]))
            seen.append({"kind": kind, "before": change["before"], "after": change["after"]})
        write_json(file, seen)
    return [Thing(**each) for each in json.loads(file.read_text())]


def shown(instance: int, scene: Scene) -> bool:
    return sum(int((frame.instance == instance).sum()) >= PIXELS for frame in scene) >= FRAMES


def looked_at(box: Box, scene: Scene) -> bool:
    """Whether frames see so much of a place, or see that it is empty."""
    low, high = np.array(box[:3]), np.array(box[3:])
    steps = np.stack(np.meshgrid(*3 * [np.linspace(0.1, 0.9, 5)]), axis=-1).reshape(-1, 3)
    return sum(_share(low + steps * (high - low), frame) >= SHARE for frame in scene) >= FRAMES


def _share(points: Float[ndarray, "n 3"], frame: Any) -> float:
    pixels, z = frame.camera.project(transform(invert(frame.world_from_camera), points))
    inside = (z > 0) & ((pixels >= 0) & (pixels < (frame.camera.width, frame.camera.height))).all(axis=1)
    x, y = pixels[inside].astype(int).T
    return float((frame.depth[y, x] >= z[inside]).sum() / len(points))


@dataclass
class Score:
    """Right answers, answers, things found, things observable; by what was said, and by place alone."""

    counts: dict[str, list[int]] = field(
        default_factory=lambda: {name: [0, 0, 0, 0] for name in (*KINDS, "places left", "places taken")}
    )

    def add(self, found: list[Change], things: list[Thing]) -> None:
        for kind in KINDS:
            of_kind = [answer for answer in found if answer.what == kind]
            known = [thing for thing in things if thing.kind in (kind, None)]
            self._count(kind, of_kind, known, ("before", "after"), (kind,))
        for name, side, kinds in (
            ("places left", "before", ("gone", "moved")),
            ("places taken", "after", ("new", "moved")),
        ):
            answers = [answer for answer in found if getattr(answer, side) is not None]
            known = [thing for thing in things if getattr(thing, side) is not None]
            self._count(name, answers, known, (side,), kinds)

    def _count(
        self, name: str, answers: list[Change], things: list[Thing], sides: tuple[str, ...], kinds: tuple[str, ...]
    ) -> None:
        taken: set[int] = set()
        for answer in answers:
            fits = (number for number, thing in enumerate(things) if number not in taken and fit(answer, thing, sides))
            if (number := next(fits, None)) is not None:
                taken.add(number)
        wanted = [number for number, thing in enumerate(things) if thing.kind in kinds]
        added = len(taken), len(answers), len(taken.intersection(wanted)), len(wanted)
        self.counts[name] = [a + b for a, b in zip(self.counts[name], added, strict=True)]


def fit(answer: Change, thing: Thing, sides: tuple[str, ...]) -> bool:
    """Whether an answer is about a thing: all that it says of these sides lies in the thing's boxes there."""
    pairs = [(getattr(answer, side), getattr(thing, side)) for side in sides]
    return all(
        surface is None or (box is not None and inside(surface.points, box) >= 0.5) for surface, box in pairs
    ) and any(surface is not None for surface, _ in pairs)


def inside(points: Float[ndarray, "n 3"], box: Box) -> float:
    low, high = np.array(box[:3]) - AROUND, np.array(box[3:]) + AROUND
    return float(((points >= low) & (points <= high)).all(axis=1).mean())


if __name__ == "__main__":
    main()
