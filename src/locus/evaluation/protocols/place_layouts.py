"""Where the images of place recognition lie, and which of them show the same place."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.spatial import KDTree

from locus.evaluation.protocols.place_recognition import PlaceRecognition, PlaceScene
from locus.evaluation.scene_patches import EvaluationError
from locus.features.images import IMAGE_SUFFIXES
from locus.geometry import Camera
from locus.opening import read_text
from locus.scenes import FileSource, SceneReading


@dataclass(frozen=True)
class UtmPlaces(PlaceRecognition):
    """Place recognition with positions in the names of images: Recall@1, 5 and 10.

    SCENE: a folder with database/ and queries/ (or images/test/ with both), whose images are called
    @UTM_east@UTM_north@...jpg, as the deep visual geo-localization benchmark writes Pitts30k, Tokyo 24/7 and others.
    """

    within: float = 25.0
    """Metres between two images of the same place."""

    name = "vpr"

    def load(self, path: Path, reading: SceneReading) -> PlaceScene:
        root = path / "images" / "test" if (path / "images" / "test").is_dir() else path
        parts = [_images(root / part) for part in ("database", "queries")]
        positions = [np.array([_utm(image) for image in part]) for part in parts]
        return _scene(path, parts, positions, self.within)


def _utm(image: Path) -> tuple[float, float]:
    words = image.name.split("@")
    try:
        return float(words[1]), float(words[2])
    except (IndexError, ValueError):
        raise EvaluationError(f"{image} does not tell its position, as @UTM_east@UTM_north@... would") from None


@dataclass(frozen=True)
class BaiduMall(PlaceRecognition):
    """Baidu Mall: photographs of visitors, looked for among those of a survey. Recall@1, 5 and 10.

    SCENE: the folder with training_images_undistort/, training_gt/*.camera, query_images_undistort/, query_gt/*.camera.
    """

    within: float = 10.0
    """Metres between two images of the same place."""

    name = "baidu"

    def load(self, path: Path, reading: SceneReading) -> PlaceScene:
        parts = [_images(path / f"{part}_images_undistort") for part in ("training", "query")]
        positions = []
        for part, images in zip(("training", "query"), parts, strict=True):
            positions.append(np.array([_position(path / f"{part}_gt" / f"{image.stem}.camera") for image in images]))
        return _scene(path, parts, positions, self.within)


def _position(file: Path) -> tuple[float, ...]:
    """The camera's, from the last line but one of its file."""
    lines = read_text(file).splitlines() if file.is_file() else []
    try:
        x, y, z = map(float, lines[-2].split())
    except (IndexError, ValueError):
        raise EvaluationError(f"{file} is missing, or its last line but one is not the camera's position") from None
    return x, y, z


@dataclass(frozen=True)
class SeventeenPlaces(PlaceRecognition):
    """17 Places: a building walked through twice, frame by frame. Recall@1, 5 and 10.

    SCENE: the folder with ref/ and query/, whose images are numbered. Two images show the same place if their numbers
    differ by no more than --frames; the pickled ground truth is not opened.
    """

    frames: int = 5
    """That the numbers of two images of the same place may differ by."""

    name = "17places"

    def load(self, path: Path, reading: SceneReading) -> PlaceScene:
        parts = [_images(path / part) for part in ("ref", "query")]
        strange = next((image for part in parts for image in part if not image.stem.isdecimal()), None)
        if strange is not None:
            raise EvaluationError(f"{strange} should be called by its number")
        return _scene(path, parts, [np.array([[float(image.stem)] for image in part]) for part in parts], self.frames)


def _images(folder: Path) -> list[Path]:
    found = sorted(file for file in folder.rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES)
    if not found:
        raise EvaluationError(f"{folder} holds no images")
    return found


def _scene(
    path: Path, parts: Sequence[Sequence[Path]], positions: Sequence[Float[ndarray, "_ d"]], within: float
) -> PlaceScene:
    """Images are of one place if their positions lie so near each other."""
    if not all(np.isfinite(part).all() for part in positions):
        raise EvaluationError(f"{path} has an image whose position is not a number; download it again")
    near = KDTree(positions[0]).query_ball_point(positions[1], within)
    images = [image for part in parts for image in part]
    return PlaceScene(
        path.resolve().name,
        "places",
        [PlaceImage(image.relative_to(path).as_posix(), image, None) for image in images],
        folder=path,
        database=len(parts[0]),
        positives=tuple(frozenset(rows) for rows in near),
    )


@dataclass(frozen=True, eq=False)
class PlaceImage(FileSource):
    """An image of a place; nothing is known of its camera, and nothing asked."""

    def camera(self) -> Camera:
        width, height = self.image_size()
        return Camera(width, height, float(width), float(width), width / 2, height / 2)

    def pose(self) -> Float[ndarray, "4 4"]:
        return np.eye(4)
