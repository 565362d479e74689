"""What has changed in a mapped environment since: gone, new, or moved from one spot to another."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.optimize import linear_sum_assignment

from locus.errors import LocusError
from locus.keypoints import Detector
from locus.landmarks import LandmarkMap, session_of
from locus.landmarks.arrays import Frames
from locus.model import LoCUS
from locus.scenes import Scene
from locus.tasks.changed_surfaces import ChangedSurface, changed_surfaces
from locus.tasks.same_thing import same_thing
from locus.tasks.sessions import AlignedSession, align_session

PROBABILITY = 0.5  # at least, of a change
SAME = 0.4  # and that what is gone and what is new are one thing


@dataclass(frozen=True, eq=False)
class Change:
    """One thing that is not where it was."""

    what: Literal["gone", "new", "moved"]
    before: ChangedSurface | None
    """Where it was; None if it is new."""
    after: ChangedSurface | None
    """Where it is now; None if it is gone."""
    probability: float
    same: float | None = None
    """If it has moved: the probability that what is gone and what is new are one thing."""


@dataclass(frozen=True, eq=False)
class SessionChanges:
    """What has changed between a map and a later session."""

    world: LandmarkMap
    """Of the one environment."""
    later: LandmarkMap
    """Of the session alone, in the coordinates of the environment."""
    changes: list[Change]
    aligned: AlignedSession | None
    """None if the session said that it has the environment's coordinates."""

    @property
    def sentence(self) -> str:
        counts = [(what, sum(change.what == what for change in self.changes)) for what in ("gone", "new", "moved")]
        return ", ".join(f"{count} {what}" for what, count in counts) if self.changes else "Nothing has changed."

    def rows(self) -> list[dict[str, str]]:
        """For people, a row for each change: how sure it is, where it was and is, how large, and by which frames."""
        return [
            {
                "change": change.what,
                "probability": f"{change.probability:.2f}",
                "where (m)": " → ".join(_numbers(surface.points.mean(axis=0)) for surface in surfaces),
                "size (m)": _numbers(np.ptp(surfaces[-1].points, axis=0), "×"),
                "shown by": " → ".join(str(len(surface.shown_by)) for surface in surfaces),
                "seen through by": " → ".join(str(len(surface.missed_by)) for surface in surfaces),
                "same thing": "" if change.same is None else f"{change.same:.2f}",
            }
            for change in self.changes
            for surfaces in [[surface for surface in (change.before, change.after) if surface is not None]]
        ]

    def described(self) -> dict[str, Any]:
        """For machines, and for the viewer."""
        return {
            "environment": self.world.environments[0],
            "session": self.later.provenance["scenes"][-1]["scene"],
            "alignment": None if self.aligned is None else self.aligned.described(),
            "changes": [
                {
                    "change": change.what,
                    "probability": round(change.probability, 3),
                    "same thing": None if change.same is None else round(change.same, 3),
                    "before": self._surface(change.before, self.world, self.later),
                    "after": self._surface(change.after, self.later, self.world),
                }
                for change in self.changes
            ],
        }

    def _surface(self, surface: ChangedSurface | None, own: LandmarkMap, other: LandmarkMap) -> dict[str, Any] | None:
        if surface is None:
            return None
        return {
            "box": surface.box.round(3).tolist(),
            "shown by": [own.frame_names[row] for row in surface.shown_by],
            "missed by": [other.frame_names[row] for row in surface.missed_by],
            "points": surface.points.round(3).tolist(),
        }


def find_changes(
    world: LandmarkMap,
    model: LoCUS,
    scene: Scene,
    *,
    same_coordinates: bool = False,
    detector: Detector | None = None,
    cache: Path | None = None,
    progress: bool = False,
) -> SessionChanges:
    """What has changed in an environment of a map until a later session was recorded there.

    The session is aligned first, or refused, unless it has the coordinates of the environment of its own name, or of
    the only one. `detector` and `cache` are those of `LandmarkMap.build`.
    """
    if not any(frame.has_depth for frame in scene):
        raise LocusError(f"{scene.name} has no depth, which tells what is seen through; `locus depth` finds some")
    aligned = None if same_coordinates else align_session(world, model, scene, progress=progress)
    if aligned is None:
        name = world.environments[world.environment_number(scene.name if scene.name in world.environments else None)]
    else:
        name = aligned.environment
    built = LandmarkMap.build(model, scene, detector=detector, cache=cache, progress=progress)
    later = session_of(built, name, scene.name, np.eye(4) if aligned is None else aligned.agreement.a_from_b)
    home = world.environment(world.environment_number(name))
    return SessionChanges(home, later, compare(home, later), aligned)


def compare(world: LandmarkMap, later: LandmarkMap) -> list[Change]:
    """The changes between two maps of one environment in one world, the surest of each kind first."""
    for each in (world, later):
        if not each.frames.surface.any():
            raise LocusError(
                f"the map of {each.environments[0]} does not know what its frames see; it is of an earlier LoCUS, or "
                "of frames without depth: build it again"
            )
    return frame_changes(world.frames, later.frames)


def frame_changes(before: Frames, after: Frames) -> list[Change]:
    """The same between what frames see."""
    gone, new = (
        [surface for surface in changed_surfaces(a, b) if surface.probability >= PROBABILITY]
        for a, b in ((before, after), (after, before))
    )
    changes = []
    for i, j, same in _moved(before, gone, after, new):
        sure = min(gone[i].probability, new[j].probability)
        changes.append(Change("moved", gone[i], new[j], sure, same))
    taken = [{id(change.before) for change in changes}, {id(change.after) for change in changes}]
    changes += [Change("gone", each, None, each.probability) for each in gone if id(each) not in taken[0]]
    changes += [Change("new", None, each, each.probability) for each in new if id(each) not in taken[1]]
    return sorted(changes, key=lambda change: (change.what, -change.probability))


def _moved(
    before: Frames, gone: list[ChangedSurface], after: Frames, new: list[ChangedSurface]
) -> list[tuple[int, int, float]]:
    """Pairs of what is gone and what is new that are one thing, one to one, with the probability that they are."""
    if not gone or not new:
        return []
    same = same_thing(before, gone, after, new)
    pairs = zip(*linear_sum_assignment(-np.maximum(same, SAME)), strict=True)
    return [(int(i), int(j), float(same[i, j])) for i, j in pairs if same[i, j] > SAME]


def _numbers(values: Float[ndarray, " 3"], between: str = " ") -> str:
    return between.join(f"{value:.1f}" for value in values)
