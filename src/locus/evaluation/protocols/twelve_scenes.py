"""12-Scenes (Valentin et al. 2016): the first sequence of each scene is for testing."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from jaxtyping import Float, Num
from numpy import ndarray

from locus.evaluation.predictions import plain_name
from locus.evaluation.protocols.pose_sets import TwoPoseSets, focal_length
from locus.evaluation.protocols.split_localization import SplitScene
from locus.evaluation.scene_patches import EvaluationError
from locus.geometry import Camera
from locus.opening import read_text
from locus.scenes import FileSource, SceneReading
from locus.scenes.formats.scannet import seen_by
from locus.scenes.reading import camera_from_four, read_matrix

FRAMES = re.compile(r"frames\s*=\s*(\d+)")


@dataclass(frozen=True)
class TwelveScenes(TwoPoseSets):
    """12-Scenes: localize the first sequence of each scene in a map of the others.

    SCENE: apt1/kitchen and its like, each with split.txt, info.txt and data/frame-*.color.jpg, .depth.png, .pose.txt.
    """

    name = "12scenes"

    def load(self, path: Path, reading: SceneReading) -> SplitScene:
        name = f"{path.resolve().parent.name}/{path.resolve().name}"  # there are two kitchens
        listed, colour, depth = self.listed(name), *(_calibration(path / "info.txt", of) for of in ("Color", "Depth"))
        first = path / "split.txt"
        said = FRAMES.search(read_text(first)) if first.is_file() else None
        if said is None:
            raise EvaluationError(f"{first} should begin with `sequence0 [frames=N]`: those N frames are the queries")
        sources, queries = [], set()
        for number, image in enumerate(sorted((path / "data").glob("frame-*.color.jpg"))):
            stem = image.name.removesuffix(".color.jpg")
            known = None if listed is None else listed.get(plain_name(f"data/{stem}"))
            if listed is not None and known is None:
                continue
            files = image.with_name(f"{stem}.depth.png"), image.with_name(f"{stem}.pose.txt")
            focal = colour if known is None else replace(colour, fx=focal_length(known), fy=focal_length(known))
            pose = None if known is None else known.world_from_camera
            sources.append(TwelveScenesFrame(f"data/{stem}", image, *files, focal, depth, pose))
            if number < int(said[1]):
                queries.add(sources[-1].name)
        if not sources:
            raise EvaluationError(f"{path} has no data/frame-*.color.jpg" + (" with a pose" if listed else ""))
        return SplitScene(name, "12scenes", sources, folder=path, queries=frozenset(queries))


def _calibration(path: Path, camera: str) -> Camera:
    """Of the colour or the depth camera, from the lines `m_calibrationColorIntrinsic = fx 0 cx 0 0 fy cy 0 ...`."""
    text = read_text(path) if path.is_file() else ""
    lines = {name.strip(): value.split() for name, _, value in (line.partition("=") for line in text.splitlines())}
    small = camera.lower()
    try:
        size = tuple(int(lines[f"m_{small}{side}"][0]) for side in ("Width", "Height"))
        fx, _, cx, _, _, fy, cy, *_ = map(float, lines[f"m_calibration{camera}Intrinsic"])
    except (KeyError, ValueError, IndexError):
        raise EvaluationError(f"{path} is missing or does not describe the {small} camera of 12-Scenes") from None
    return camera_from_four((fx, fy, cx, cy), (size[0], size[1]), path)


@dataclass(frozen=True, eq=False)
class TwelveScenesFrame(FileSource):
    """Colour and depth have cameras of their own, which stand in one place."""

    pose_path: Path
    colour: Camera
    own: Camera
    listed: Float[ndarray, "4 4"] | None

    def camera(self) -> Camera:
        return self.colour

    def depth(self) -> Num[ndarray, "h w"]:
        depth = super().depth()
        own = self.own.resized(depth.shape[1], depth.shape[0])
        return seen_by(self.colour.resized(*self.image_size()), depth, own)

    def pose(self) -> Float[ndarray, "4 4"]:
        return read_matrix(self.pose_path) if self.listed is None else self.listed
