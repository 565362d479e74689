"""RIO10 (Wald et al. 2020): flats in which things have moved since they were mapped."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.protocols.split_localization import SplitLocalization, SplitScene
from locus.evaluation.scene_patches import EvaluationError
from locus.geometry import Camera
from locus.opening import read_text
from locus.scenes import FileSource, SceneReading
from locus.scenes.reading import camera_from_four, read_matrix

MODEL = re.compile(r"model:\s*\[([^\]]*)\]")


@dataclass(frozen=True)
class Rio10(SplitLocalization):
    """RIO10: localize the second recording of a flat, in which things have moved, in a map of the first.

    SCENE: seq01, seq02, ..., each with seqXX_01 (the map) and seqXX_02 (validation, the queries):
    frame-*.color.jpg, .rendered.depth.png, .pose.txt; and intrinsics.txt, or a camera.yaml in each recording. The poses
    of the other recordings are not public.
    """

    name = "rio10"

    def load(self, path: Path, reading: SceneReading) -> SplitScene:
        sources = []
        for folder in (path / f"{path.name}_01", path / f"{path.name}_02"):
            intrinsics = _rio10_camera(path, folder)
            for image in sorted(folder.glob("frame-*.color.jpg")):
                stem = image.name.removesuffix(".color.jpg")
                depth, pose = image.with_name(f"{stem}.rendered.depth.png"), image.with_name(f"{stem}.pose.txt")
                sources.append(Rio10Frame(f"{folder.name}/{stem}", image, depth, pose, intrinsics))
        queries = frozenset(source.name for source in sources if source.name.startswith(f"{path.name}_02/"))
        return SplitScene(path.name, "rio10", sources, folder=path, queries=queries)


def _rio10_camera(scene: Path, folder: Path) -> tuple[float, ...]:
    yaml, text = folder / "camera.yaml", scene / "intrinsics.txt"
    if not text.is_file():
        text = scene.parent / "intrinsics.txt"  # one for all scenes
    words: Sequence[str] = ()
    if yaml.is_file() and (said := MODEL.search(read_text(yaml))) is not None:
        words = said[1].replace(",", " ").split()
    elif text.is_file():
        lines = [line.split() for line in read_text(text).splitlines()]
        words = next((line[1:] for line in lines if line[:1] == [folder.name]), ())
    try:
        fx, fy, cx, cy = map(float, words)
    except ValueError:
        raise EvaluationError(
            f"the camera of {folder} is not known: write `{folder.name} fx fy cx cy` to {text}, or camera.yaml there"
        ) from None
    return fx, fy, cx, cy


@dataclass(frozen=True, eq=False)
class Rio10Frame(FileSource):
    pose_path: Path
    four: tuple[float, ...]

    def camera(self) -> Camera:
        return camera_from_four(self.four, self.image_size(), self.image_path)

    def pose(self) -> Float[ndarray, "4 4"]:
        return read_matrix(self.pose_path)
