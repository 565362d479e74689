"""Images as they are named on the command line: files, folders, patterns, videos, scenes, and frames as SCENE:NAME."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import Any, TypeVar

from jaxtyping import Float, Float32, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.features.images import NamedImage, sources
from locus.geometry import Camera
from locus.scenes import Scene, SceneReading
from locus.scenes.load import AS_STATED, is_scene


def open_inputs(words: Sequence[str], reading: SceneReading = AS_STATED) -> list[str | Scene]:
    """The inputs that words name: scenes are opened, a frame is a scene of one frame, other words stay as they are."""
    return [_opened(word, reading) for word in words]


def _opened(word: str, reading: SceneReading) -> str | Scene:
    path = Path(word)
    if is_scene(path) or (path.is_dir() and reading.format is not None):
        return reading.load(path)
    if path.exists() or has_magic(word):
        return word
    scene, index = open_scene(word, reading)
    return scene if index is None else scene[index : index + 1]


def open_scene(word: str, reading: SceneReading = AS_STATED) -> tuple[Scene, int | None]:
    """The scene that SCENE or SCENE:NAME names, and the index of the frame, if one is named."""
    if _may_be_scene(Path(word)):
        return reading.load(word), None
    for at, letter in enumerate(word):  # names of folders and frames may hold colons themselves
        if letter == ":" and _may_be_scene(Path(word[:at])):
            scene = reading.load(word[:at])
            return scene, frame_index(scene, word[at + 1 :])
    if Path(word).exists():
        raise LocusError(f"{word} is no scene; name a scene, or a frame as SCENE:NAME")
    raise LocusError(f"{word} does not exist; name files and folders that are there, or a frame as SCENE:NAME")


def _may_be_scene(path: Path) -> bool:
    return path.is_dir() or (path.is_file() and is_scene(path))


def frame_index(scene: Scene, name: str) -> int:
    """Of a frame by its name, or else by its number: some scenes number their frames from another start."""
    names = [source.name for source in scene.sources]
    if name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < len(names):
        return int(name)
    raise LocusError(
        f"{scene.name} has no frame {name!r}: they are 0 to {len(names) - 1}, or {names[0]} to {names[-1]}"
    )


def only_image(word: str, reading: SceneReading = AS_STATED) -> NamedImage:
    """The one image that a word names, under that name: an image file, or a frame of a scene."""
    images = sources(open_inputs([word], reading))
    if len(images) > 1:
        raise LocusError(f"{word} is {len(images)} images; name one of them: an image file, or a frame as SCENE:NAME")
    return replace(images[0], name=word)


@dataclass(frozen=True)
class FileCamera:
    """The camera of image files; frames of scenes have their own."""

    camera: tuple[float, float, float, float] | None = None
    """fx fy cx cy of image files, in pixels; the centre of the top-left pixel is (0.5, 0.5)."""
    fov: float = 60.0
    """Where an image file has no --camera, it is guessed to have this horizontal field of view, in degrees."""

    def __post_init__(self) -> None:
        if not 1 <= self.fov < 180:
            raise LocusError(f"a field of view is at least 1 and less than 180 degrees, not {self.fov:g}")

    def of(self, width: int, height: int) -> Camera:
        """For an image of that size."""
        if self.camera is not None and not (0 < self.camera[2] < width and 0 < self.camera[3] < height):
            raise LocusError(
                f"--camera puts the principal point at ({self.camera[2]:g}, {self.camera[3]:g}), outside the "
                f"{width}×{height} image; give fx fy cx cy of the image itself, scaled with it if it was resized"
            )
        if self.camera is None:
            return Camera.from_fov(width, height, self.fov)
        return Camera(width, height, *self.camera)

    @property
    def guess(self) -> str:
        unknown = "so how exact and how likely right a pose is is not known"
        return f"The camera is a guess, {self.fov:g}° wide, {unknown}; give --camera fx fy cx cy if you know it"


A_GUESS = FileCamera()
Found = TypeVar("Found", bound=Any)


@dataclass(frozen=True, eq=False)
class CalibratedImage:
    """An image with its camera; a frame of a scene also has depth and a pose."""

    name: str
    image: UInt8[ndarray, "height width 3"]
    camera: Camera
    guessed: bool = False
    """Whether the camera is a guess."""
    scene: Scene | None = None
    depth: Float32[ndarray, "height width"] | None = None
    world_from_camera: Float[ndarray, "4 4"] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.camera.width, self.camera.height

    def trusted(self, found: Found) -> Found:
        """A pose found with this camera. With a guess, what says how exact and how likely right it is would mislead."""
        return replace(found, covariance=None, evidence=None) if self.guessed else found


def calibrated(image: NamedImage, files: FileCamera, *, rgb: bool = False) -> CalibratedImage:
    """An image, read, with its camera; `rgb` leaves the depth of frames aside."""
    if image.scene is None:
        pixels = image.read()
        camera = files.of(pixels.shape[1], pixels.shape[0])
        return CalibratedImage(image.name, pixels, camera, guessed=files.camera is None)
    frame = image.scene[image.index]
    depth = None if rgb or not frame.has_depth else frame.depth
    return CalibratedImage(image.name, frame.image, frame.camera, False, image.scene, depth, frame.world_from_camera)
