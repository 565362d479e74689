"""Where an image was probably taken, as a robot knows from its odometry: only what is seen from around there counts."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import LocusError
from locus.geometry import pose_error
from locus.landmarks import LandmarkMap
from locus.tasks.landmark_matches import LandmarkMatches
from locus.tasks.localize import Location

AROUND = 5.0  # metres farther than the pose may be off, that the frames of a map are used from: about a room


@dataclass(frozen=True, eq=False)
class Prior:
    """A pose, and how far off it may be."""

    world_from_camera: Float[ndarray, "4 4"]
    environment: str | None = None
    """Whose world it is in; None if the map has only one."""
    metres: float = 2.0
    degrees: float = 60.0

    def __post_init__(self) -> None:
        if not (0 < self.metres < np.inf and 0 < self.degrees <= 180):
            raise LocusError(
                f"a prior pose is off by a positive number of metres and at most 180 degrees, not {self.metres:g} m "
                f"and {self.degrees:g}°"
            )

    def narrowed(self, world: LandmarkMap) -> LandmarkMap:
        """The part of a map that shows its environment from around the pose; it may have no frames."""
        local = world.environment(world.environment_number(self.environment))
        away = np.linalg.norm(local.frames.world_from_camera[:, :3, 3] - self.world_from_camera[:3, 3], axis=1)
        frames = np.flatnonzero(away <= self.metres + AROUND)
        rows = np.unique(local.sightings[frames].indices)
        return replace(
            local,
            landmarks=local.landmarks.take(rows),
            frames=local.frames.take(frames),
            sightings=local.sightings[frames][:, rows],
            frame_names=tuple(local.frame_names[frame] for frame in frames),
            points=None if local.points is None else local.points.take(frames),
        )

    def nowhere(self) -> Location:
        """The answer if there is nothing in the map around the pose."""
        none = LandmarkMatches(*np.zeros((2, 0), int), np.zeros(0), np.zeros((0, 2)), np.zeros(0, bool))
        reason = f"not here: no frame of the map was taken within {self.metres + AROUND:g} m of the prior pose"
        return Location(None, None, 0.0, np.zeros(0, bool), none, reason)

    def checked(self, location: Location) -> Location:
        """An answer, if it is no farther from the pose than the pose may be off."""
        if location.world_from_camera is None:
            return location
        metres, degrees = pose_error(self.world_from_camera, location.world_from_camera)
        if metres <= self.metres and degrees <= self.degrees:
            return location
        reason = (
            f"not here: the best pose is {metres:.2f} m and {degrees:.0f}° from the prior pose, "
            f"and {self.metres:g} m and {self.degrees:g}° are allowed"
        )
        nothing = {"environment": None, "world_from_camera": None, "covariance": None, "evidence": None}
        return replace(location, **nothing, reason=reason)
