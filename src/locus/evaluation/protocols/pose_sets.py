"""Two sets of true poses: those a data set comes with, and those that structure from motion found later."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from locus.evaluation.predictions import ListedPose, read_poses
from locus.evaluation.protocols.split_localization import SplitLocalization
from locus.evaluation.scene_patches import EvaluationError

PoseList = Mapping[str, ListedPose]


@dataclass(frozen=True)
class TwoPoseSets(SplitLocalization):
    """What 7-Scenes and 12-Scenes have in common: poses of depth SLAM, and others of structure from motion."""

    poses: Path | None = None
    """A folder of pseudo ground truth, `SCENE_train.txt` and `SCENE_test.txt` (pgt/sfm/... of Brachmann et al. 2021);
    by default the poses that the data set comes with, of depth SLAM."""

    def listed(self, scene: str) -> PoseList | None:
        """Poses and focal lengths by name, if other poses are asked for."""
        if self.poses is None:
            return None
        files = [self.poses / f"{scene.replace('/', '_')}_{part}.txt" for part in ("train", "test")]
        return read_poses(files[0]) | read_poses(files[1])


def focal_length(known: ListedPose) -> float:
    """What a line of pseudo ground truth ends with, in pixels."""
    try:
        return float(known.more[0])
    except (IndexError, ValueError):
        raise EvaluationError("a line of pseudo ground truth has no focal length at its end") from None
