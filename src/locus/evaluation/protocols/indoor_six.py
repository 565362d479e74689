"""Indoor-6 (Do et al. 2022): rooms recorded over days, without depth."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.errors import LocusError
from locus.evaluation.protocols.split_localization import SplitLocalization, SplitScene
from locus.evaluation.scene_patches import EvaluationError
from locus.geometry import Camera
from locus.opening import read_text
from locus.scenes import Convention, FileSource, SceneReading
from locus.scenes.reading import read_numbers


@dataclass(frozen=True)
class Indoor6(SplitLocalization):
    """Indoor-6: localize the test images in a map of the training images; it has no depth, so the map finds some.

    SCENE: scene1, scene2a, ..., each with images/*.color.jpg, .pose.txt, .intrinsics.txt, and train.txt and test.txt,
    the names of its train_test_val.pkl, one a line: pickled files are not opened.
    """

    name = "indoor6"

    def load(self, path: Path, reading: SceneReading) -> SplitScene:
        train, test = (_names(path / f"{part}.txt") for part in ("train", "test"))
        sources = [Indoor6Frame(_stem(name), path / "images" / Path(name).name, None) for name in [*train, *test]]
        convention = Convention(pose="camera_from_world")
        queries = frozenset(_stem(name) for name in test)
        return SplitScene(path.name, "indoor6", sources, convention, folder=path, queries=queries)


def _stem(name: str) -> str:
    return Path(name).name.removesuffix(".jpg").removesuffix(".color")


def _names(path: Path) -> list[str]:
    if not path.is_file():
        raise EvaluationError(
            f"{path} is missing: write the names of train_test_val.pkl to it, one a line (docs/protocols.md says how); "
            "pickled files can run code and are not opened"
        )
    return read_text(path).split()


@dataclass(frozen=True, eq=False)
class Indoor6Frame(FileSource):
    def camera(self) -> Camera:
        file = self.image_path.with_name(f"{self.name}.intrinsics.txt")
        words = read_text(file).split() if file.is_file() else []
        try:
            width, height, focal, x, y = map(float, words[:5])
        except ValueError:
            raise LocusError(
                f"{file} is missing or does not begin with the image's size, focal length and centre"
            ) from None
        return Camera(int(width), int(height), focal, focal, x, y)

    def pose(self) -> Float[ndarray, "4 4"]:
        rows = read_numbers(self.image_path.with_name(f"{self.name}.pose.txt"))[:3]
        if rows.shape != (3, 4):
            raise LocusError(f"the pose of {self.name} is not a 3×4 matrix")
        return np.concatenate([rows, [[0.0, 0.0, 0.0, 1.0]]])
