"""7-Scenes (Shotton et al. 2013), by its own split of sequences."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Num
from numpy import ndarray

from locus.evaluation.predictions import plain_name
from locus.evaluation.protocols.pose_sets import PoseList, TwoPoseSets, focal_length
from locus.evaluation.protocols.split_localization import SplitScene
from locus.evaluation.scene_patches import EvaluationError
from locus.files import content_hash
from locus.geometry import Camera, invert
from locus.opening import read_text
from locus.scenes import FileSource, SceneReading
from locus.scenes.formats.sevenscenes import OFFICIAL, SevenScenesFrame
from locus.scenes.registration import register

COLOUR_FOCAL = 525.0
"""Pixels of 7-Scenes' colour camera, which has no published calibration; what DSAC* and ACE take."""
COLOUR_FROM_DEPTH = np.array(
    [
        [0.99996518, 0.00267651, -0.00790410, -0.02555894],
        [-0.00274093, 0.99996302, -0.00815045, 0.00010110],
        [0.00788199, 0.00817187, 0.99993555, 0.00203183],
        [0.0, 0.0, 0.0, 1.0],
    ]
)
"""A Kinect's, in metres, as measured by LIRIS (Lyon), which DSAC* and ACE take for 7-Scenes."""


@dataclass(frozen=True)
class SevenScenes(TwoPoseSets):
    """7-Scenes: localize the sequences of TestSplit.txt in a map of those of TrainSplit.txt.

    SCENE: chess, fire, heads, office, pumpkin, redkitchen, stairs, each with TrainSplit.txt, TestSplit.txt and
    seq-*/frame-*.color.png, .depth.png, .pose.txt, as published. Depth is carried to the colour camera.
    """

    name = "7scenes"

    def load(self, path: Path, reading: SceneReading) -> SplitScene:
        scene = reading.load(path)
        listed = self.listed(scene.name)
        train, test = (sequences(path / f"{part}Split.txt") for part in ("Train", "Test"))
        sources = []
        for source in scene.sources:
            if not isinstance(source, SevenScenesFrame):
                raise EvaluationError(f"{path} is read as {scene.format}, not as 7-Scenes")
            if source.name.split("/")[0] in train | test and (listed is None or plain_name(source.name) in listed):
                sources.append(_of_colour_camera(source, listed))
        queries = frozenset(source.name for source in sources if source.name.split("/")[0] in test)
        return SplitScene(scene.name, scene.format, sources, scene.convention, folder=path, queries=queries)


def sequences(path: Path) -> frozenset[str]:
    """The folders that a split names: `sequence3` is seq-03."""
    if not path.is_file():
        raise EvaluationError(f"{path} is missing; it comes with 7-Scenes and says which sequences are for what")
    numbers = re.findall(r"sequence\s*(\d+)", read_text(path))
    if not numbers:
        raise EvaluationError(f"{path} names no sequence; its lines are `sequence1`, `sequence2`, ...")
    return frozenset(f"seq-{int(number):02d}" for number in numbers)


@dataclass(frozen=True, eq=False)
class ColourCameraFrame(SevenScenesFrame):
    """A frame of 7-Scenes whose pose and depth are the colour camera's, which stands beside the depth camera."""

    focal: float
    listed: Float[ndarray, "4 4"] | None

    def camera(self) -> Camera:
        return replace(OFFICIAL, fx=self.focal, fy=self.focal)

    def pose(self) -> Float[ndarray, "4 4"]:
        return super().pose() @ invert(COLOUR_FROM_DEPTH) if self.listed is None else self.listed

    def depth(self) -> Num[ndarray, "h w"]:
        millimetres = COLOUR_FROM_DEPTH.copy()
        millimetres[:3, 3] *= 1000
        return register(super().depth(), OFFICIAL, self.camera().resized(*self.image_size()), millimetres)

    def depth_state(self) -> str:
        return content_hash(super().depth_state(), self.focal)


def _of_colour_camera(source: SevenScenesFrame, listed: PoseList | None) -> FileSource:
    """Registered recordings have intrinsics of their own, and one camera."""
    known = None if listed is None else listed[plain_name(source.name)]
    if source.intrinsics is not None:
        return source if known is None else Reposed(**vars(source), listed=known.world_from_camera)
    focal = COLOUR_FOCAL if known is None else focal_length(known)
    pose = None if known is None else known.world_from_camera
    return ColourCameraFrame(**vars(source), focal=focal, listed=pose)


@dataclass(frozen=True, eq=False)
class Reposed(SevenScenesFrame):
    """The same with another pose."""

    listed: Float[ndarray, "4 4"]

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.listed
