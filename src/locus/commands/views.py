"""Images named on the command line: a file, or a frame of a scene with all that is known of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from glob import has_magic
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float32, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.features.images import NamedImage, is_scene, sources
from locus.geometry import Camera
from locus.scenes import Frame, Scene, load_scene
from locus.scenes.reading import read_image

Intrinsics = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class View:
    """An image with what is known of its camera."""

    name: str
    image: UInt8[ndarray, "height width 3"]
    camera: Camera
    guessed: bool = False
    """Whether the camera is a guess."""
    depth: Float32[ndarray, "height width"] | None = None
    world: Path | None = None
    """The scene's folder, for a frame."""
    world_from_camera: Float[ndarray, "4 4"] | None = None


def open_view(word: str, intrinsics: Intrinsics | None, fov: float) -> View:
    """The view that a word names.

    Args:
        word: An image file, or `SCENE:NAME` or `SCENE:NUMBER`.
        intrinsics: fx, fy, cx, cy for an image file. Frames have their own.
        fov: Degrees of a guessed horizontal field of view, for an image file without intrinsics.
    """
    if Path(word).is_file():
        return _file_view(word, read_image(Path(word), upright=True), intrinsics, fov)
    if Path(word).is_dir():
        raise LocusError(f"{word} is a folder; name a frame of it, such as {word}:0, or an image file")
    for place in (index for index, letter in enumerate(word) if letter == ":"):  # a name may hold colons itself
        folder, name = Path(word[:place]), word[place + 1 :]
        if folder.is_dir():
            return _frame_view(word, _frame(load_scene(folder), name), folder)
    raise LocusError(f"{word} is no image file, and no frame of a scene (SCENE:NAME or SCENE:NUMBER)")


def open_views(words: Sequence[str], intrinsics: Intrinsics | None, fov: float) -> dict[str, Callable[[], View]]:
    """The views that words name, by name, each read when it is asked for.

    As `open_view`, and besides: all frames of a scene, and all images of a folder, a pattern or a video. Where a name
    is there already, as frames of two scenes often are, the word stands before it.
    """
    found: dict[str, Callable[[], View]] = {}
    for word in words:
        folder = Path(word)
        if folder.is_dir() and is_scene(folder):
            scene = load_scene(folder)
            names = [source.name for source in scene.sources]
            new = {name: partial(_numbered, scene, number, folder) for number, name in enumerate(names)}
        elif folder.exists() or has_magic(word):
            new = {each.name: partial(_image_view, each, intrinsics, fov) for each in sources(word)}
        else:
            new = {word: partial(open_view, word, intrinsics, fov)}
        found |= {f"{word}:{name}" if name in found else name: view for name, view in new.items()}
    return found


def _numbered(scene: Scene, number: int, folder: Path) -> View:
    frame = scene[number]
    return _frame_view(frame.name, frame, folder)


def _image_view(image: NamedImage, intrinsics: Intrinsics | None, fov: float) -> View:
    return _file_view(image.name, image.read(), intrinsics, fov)


def _file_view(name: str, image: UInt8[ndarray, "height width 3"], intrinsics: Intrinsics | None, fov: float) -> View:
    height, width = image.shape[:2]
    if intrinsics is not None:
        return View(name, image, Camera(width, height, *intrinsics))
    focal = width / 2 / np.tan(np.radians(fov) / 2)
    return View(name, image, Camera(width, height, focal, focal, width / 2, height / 2), guessed=True)


def _frame_view(name: str, frame: Frame, folder: Path) -> View:
    return View(
        name,
        frame.image,
        frame.camera,
        depth=frame.depth,
        world=folder.resolve(),
        world_from_camera=frame.world_from_camera,
    )


def _frame(scene: Scene, name: str) -> Frame:
    """By name, or else by number: some scenes number their frames from another start, or with gaps."""
    names = [source.name for source in scene.sources]
    if name in names:
        return scene[names.index(name)]
    if name.isdecimal() and int(name) < len(names):
        return scene[int(name)]
    raise LocusError(
        f"{scene.name} has no frame {name!r}: they are 0 to {len(names) - 1}, or {names[0]} to {names[-1]}"
    )
