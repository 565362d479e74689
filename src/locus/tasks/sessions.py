"""Another recording of a mapped environment, in coordinates of its own: its frames are localized, so it is aligned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import FrameError, LocusError
from locus.geometry import pose_error
from locus.keypoints import Detector
from locus.landmarks import LandmarkMap, merge, session_of
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Frame, Scene
from locus.tasks.agreement import DEGREES, METRES, AgreedMotion, agreed_motion
from locus.tasks.localize import localize

FRAMES = 40  # of a session, that are localized,
FEW = 16  # and of a scene, to see whether it shows a place that the map has

Answer = tuple[Float[ndarray, "4 4"], Float[ndarray, "4 4"], float]
"""A camera's pose in the map and in the session, and the confidence of the first."""


class AlignmentError(LocusError):
    """A session that cannot be aligned with a map."""


@dataclass(frozen=True, eq=False)
class AlignedSession:
    """How a session's coordinates lie in those of a map."""

    environment: str
    """Of the map, in which the session was recorded."""
    agreement: AgreedMotion
    asked: int
    """Frames that were looked for in the map."""
    by_colour: int
    """Of these, those without depth."""

    @property
    def sentence(self) -> str:
        found = self.agreement
        agree, localized = int(found.agree.sum()), len(found.agree)
        scale = "" if found.scale == 1 else f", one unit is {found.scale:.4g} m ± {found.scale_error:.1%}"
        return (
            f"in {self.environment}: {agree} of {localized} localized frames agree (of {self.asked} looked for, "
            f"{self.by_colour} by colour alone), from {found.viewpoints} viewpoints; its cameras are placed to "
            f"± {found.metres:.3f} m and {found.degrees:.2f}°{scale}"
        )

    def described(self) -> dict[str, Any]:
        """For machines."""
        found = self.agreement
        return {
            "environment": self.environment,
            "a_from_b": found.a_from_b.tolist(),
            "scale": found.scale,
            "error": {"metres": found.metres, "degrees": found.degrees, "scale": found.scale_error},
            "asked": self.asked,
            "by colour": self.by_colour,
            "localized": len(found.agree),
            "agree": int(found.agree.sum()),
            "viewpoints": found.viewpoints,
            "share": found.share,
        }

    def trajectory(self, frames: Sequence[Frame]) -> dict[str, Float[ndarray, "4 4"]]:
        """The poses of the session's frames in the map's coordinates, by name."""
        placed = self.agreement.placed(np.stack([frame.world_from_camera for frame in frames]))
        return {frame.name: pose for frame, pose in zip(frames, placed, strict=True)}


def align_session(
    world: LandmarkMap,
    model: LoCUS,
    frames: Sequence[Frame],
    *,
    queries: int = FRAMES,
    scale: bool = False,
    progress: bool = False,
) -> AlignedSession:
    """How a session lies in the environment of a map that it was recorded in; an error says why there is no answer.

    Args:
        world: The map.
        model: The model the map was made with.
        frames: The session, such as a scene. Frames are localized with their depth, or by colour if they have none.
        queries: Frames that are localized, spread evenly over the session.
        scale: The session has a unit of length of its own, which is to be found too. Its depth is not used then.
    """
    if queries < 1:
        raise AlignmentError(f"at least one frame must be localized, not {queries}")
    chosen, by_colour = spread_over(len(frames), queries), 0
    answers: dict[str, list[Answer]] = {}
    for index in track(chosen, "localize", len(chosen), progress):
        frame = frames[index]
        try:
            depth = None if scale else frame.depth
        except FrameError:
            depth = None
        location = localize(world, model, frame.image, frame.camera, depth)
        by_colour += depth is None
        if location.environment is not None and location.world_from_camera is not None:
            answer = location.world_from_camera, frame.world_from_camera, location.confidence
            answers.setdefault(location.environment, []).append(answer)
    if not answers:
        raise AlignmentError(f"none of the {len(chosen)} frames that were looked for is in the map")
    agreements = {
        name: agreed_motion(*(np.array(each) for each in zip(*found, strict=True)), scale=scale)
        for name, found in answers.items()
    }
    best = max(agreements, key=lambda name: agreements[name].agree.sum())
    if reason := agreements[best].reason:
        raise AlignmentError(f"the session cannot be aligned with {best}: of {len(chosen)} frames, {reason}")
    return AlignedSession(best, agreements[best], len(chosen), by_colour)


def join_session(
    world: LandmarkMap,
    environment: str,
    model: LoCUS,
    scene: Scene,
    *,
    most: int | None = None,
    detector: Detector | None = None,
    cache: Path | None = None,
    progress: bool = False,
) -> tuple[LandmarkMap, AlignedSession]:
    """The map with another session of one of its environments, aligned and merged; an error if it does not fit.

    `most`, `detector` and `cache` are those of `LandmarkMap.build`.
    """
    home = world.environment(world.environment_number(environment))
    try:
        aligned = align_session(home, model, scene, progress=progress)
    except AlignmentError as error:
        raise AlignmentError(
            f"{scene.name} was not merged: {error}; without --session-of it becomes an environment of its own"
        ) from None
    built = LandmarkMap.build(model, scene, most=most, detector=detector, cache=cache, progress=progress)
    return merge([world, session_of(built, environment, scene.name, aligned.agreement.a_from_b)]), aligned


def check_same_world(world: LandmarkMap, environment: str, model: LoCUS, frames: Sequence[Frame]) -> None:
    """Refuse frames that do not show an environment of a map, or do so in other coordinates than its own."""
    home = world.environment(world.environment_number(environment))
    other = "give it another name with --name"
    try:
        found = align_session(home, model, frames, queries=FEW, progress=True)
    except AlignmentError as error:
        raise AlignmentError(
            f"the map has an environment {environment}, and these frames do not fit it: {error}; {other}"
        ) from None
    degrees = pose_error(found.agreement.a_from_b, np.eye(4))[1]
    # How far cameras are moved, not the origin of the world, which may be far from them.
    moved = found.agreement.placed(poses := np.stack([frames[0].world_from_camera, frames[-1].world_from_camera]))
    metres = float(np.linalg.norm((moved - poses)[:, :3, 3], axis=1).max())
    if metres > METRES or degrees > DEGREES:
        raise AlignmentError(
            f"these frames show {environment}, but in other coordinates, {metres:.2f} m and {degrees:.1f}° from those "
            f"of the map: add them with --session-of {environment}, or {other}"
        )


def known_environment(world: LandmarkMap, model: LoCUS, frames: Sequence[Frame]) -> str | None:
    """The environment of a map that frames were recorded in, if so many agree; None if it is new."""
    try:
        return align_session(world, model, frames, queries=FEW, progress=True).environment
    except AlignmentError:
        return None


def spread_over(count: int, most: int) -> list[int]:
    """At most so many indices of a sequence, spread evenly over it."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()
