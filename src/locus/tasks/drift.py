"""A recording whose poses come from odometry: where it closes loops, and its poses without the drift."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.features.dense import streamed_features
from locus.geometry import pose_error
from locus.landmarks import GrowingMap, LandmarkMap
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Scene
from locus.tasks.loop_closure import LoopCloser, LoopClosure
from locus.tasks.placed_points import point_detector
from locus.tasks.pose_graph import corrected_poses


@dataclass(frozen=True, eq=False)
class DriftingScene:
    """A recording and its loop closures, whose rows are those of its frames."""

    scene: Scene
    """With the frames that could be read."""
    poses: Float[ndarray, "n 4 4"]
    """By odometry."""
    closures: list[LoopClosure]

    @classmethod
    def of(cls, model: LoCUS, scene: Scene, cache: Path | None = None, *, progress: bool = False) -> "DriftingScene":
        """Go through a recording as if it came from a robot."""
        growing = GrowingMap(LandmarkMap.empty(model, scene.name), model, point_detector())
        closer, seen = LoopCloser(growing), streamed_features(model, scene, cache, progress=progress)
        frames = (window.take([row]) for window in seen.windows() for row in range(len(window)))
        for one in track(frames, "loop closures", len(seen), progress):
            growing.update(one)
            closer.update()
        read = replace(scene, sources=[scene.sources[index] for index in seen.indices])
        return cls(read, np.stack(growing.poses), closer.closures)

    def corrected(self) -> tuple[Scene, str]:
        """The recording with the poses of its pose graph, and a sentence about them."""
        found = corrected_poses(self.poses, self.closures)
        if not self.closures:
            return self.scene, "no loop closure was found, so its poses stay as they are"
        moved = max(pose_error(*each)[0] for each in zip(self.poses, found.poses, strict=True))
        agree = f"{int(found.agree.sum())} of {len(self.closures)} loop closures agree"
        return self.scene.moved(found.poses), f"{agree}; frames were moved by up to {moved:.2f} m"
