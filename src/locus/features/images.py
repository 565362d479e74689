"""Images from anywhere: files, folders, patterns, videos and scenes become one list of named images, read when asked.

Names are what features are stored under: a file's own name; in a folder or a pattern the path from there, with `/`; in
a video `clip.mp4/000123`, counted from 0; in a scene the frame's name. Where several folders, patterns or scenes are
given, each one's name comes first, so that `a/0001` and `b/0001` stay apart.
"""

import glob
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxtyping import UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.files import content_hash
from locus.scenes import Scene, load_scene
from locus.scenes.load import is_scene
from locus.scenes.reading import read_image
from locus.scenes.video import VIDEO_SUFFIXES, Video

IMAGE_SUFFIXES = frozenset(
    ".avif .bmp .gif .heic .heif .hif .jp2 .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp".split()  # noqa: SIM905
)
KNOWN = IMAGE_SUFFIXES | VIDEO_SUFFIXES

Input = str | os.PathLike[str] | Scene


@dataclass(frozen=True, eq=False)
class NamedImage:
    """One image; nothing is read before `read` is called, and nothing is kept."""

    name: str
    read: Callable[[], UInt8[ndarray, "h w 3"]]
    """RGB; a `LocusError` that names the file where it cannot be read."""
    file: Path | None = None
    """Where it is stored, if it is."""
    scene: Scene | None = None
    """The scene it is a frame of, if it is,"""
    index: int = 0
    """and which of its frames."""

    @property
    def state(self) -> str:
        """Changes when the content of the file does."""
        return "" if self.file is None else content_hash(self.file)


def sources(inputs: Input | Iterable[Input], every: int = 1, *, by_file: bool = False) -> list[NamedImage]:
    """The images of all inputs, in order. Of a video, every `every`-th frame from the first.

    `by_file` names frames of scenes as hloc and COLMAP do, by their files: `frame-000000.color.jpg`.
    """
    if every < 1:
        raise LocusError(f"every must be a positive number of frames, not {every}")
    given = [inputs] if isinstance(inputs, str | os.PathLike | Scene) else list(inputs)
    if not given:
        raise LocusError("no images were given; name a file, a folder, a pattern, a video or a scene")
    groups = [_group(item, every, by_file) for item in given]
    several = sum(bool(label) for label, _ in groups) > 1
    found: dict[str, NamedImage] = {}
    for label, images in groups:
        for image in images:
            name = f"{label}/{image.name}" if label and several else image.name
            name = os.fsencode(name).decode("utf-8", "backslashreplace")  # not every file's name is text
            if name in found:
                raise LocusError(
                    f"two images are named {name}, and features are stored by name; give the folder above both, "
                    "or write two files"
                )
            found[name] = replace(image, name=name)
    return list(found.values())


def _group(item: Input, every: int, by_file: bool) -> tuple[str, Sequence[NamedImage]]:
    """One input's images, and what sets them apart from those of other inputs; single files need nothing."""
    if isinstance(item, Scene):
        return item.name, _frames(item, by_file)
    path = Path(item)
    if is_scene(path):
        return path.resolve().name, _frames(load_scene(path), by_file)
    if path.is_dir():
        label = path.resolve().name
        return label, _files(path, sorted(_inside(path)), every)
    if path.exists():
        return "", _file(path, path.name, every)
    if glob.has_magic(str(item)):
        return _pattern(str(item), every)
    raise LocusError(f"{path} does not exist; name an image, a folder, a pattern in quotes, a video or a scene")


def _frames(scene: Scene, by_file: bool) -> list[NamedImage]:
    files = [getattr(source, "image_path", None) for source in scene.sources]
    names = [source.name for source in scene.sources]
    if by_file:  # with as many folders as the frame's own name has
        named = zip(names, files, strict=True)
        names = [name if file is None else "/".join(file.parts[-1 - name.count("/") :]) for name, file in named]
    return [
        NamedImage(name, lambda i=i: scene[i].image, file, scene, i)
        for i, (name, file) in enumerate(zip(names, files, strict=True))
    ]


def _inside(folder: Path) -> Iterator[Path]:
    """All images and videos below a folder. Hidden ones are thumbnails and other programs' leavings."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in files if not name.startswith("."))
        yield from (path for path in paths if path.suffix.lower() in KNOWN)


def _files(root: Path, paths: Sequence[Path], every: int) -> list[NamedImage]:
    if not paths:
        raise LocusError(f"{root} holds no images or videos ({' '.join(sorted(KNOWN))}) and is no scene")
    found: list[NamedImage] = []
    for path in paths:
        try:
            found += _file(path, path.relative_to(root).as_posix(), every)
        except LocusError as error:  # a video; of an image it is said when it is read
            warnings.warn(f"left out: {error}", stacklevel=2)
    return found


def _pattern(pattern: str, every: int) -> tuple[str, list[NamedImage]]:
    matches = sorted(Path(match) for match in glob.glob(pattern, recursive=True))  # noqa: PTH207  any root
    paths = [path for path in matches if path.is_file() and path.suffix.lower() in KNOWN]
    if not paths:
        raise LocusError(f"no image or video matches {pattern}")
    parts = Path(pattern).parts
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:fixed])
    return root.resolve().name, _files(root, paths, every)


def _file(path: Path, name: str, every: int) -> Sequence[NamedImage]:
    if path.suffix.lower() not in VIDEO_SUFFIXES:
        return [NamedImage(name, lambda: read_image(path, upright=True), path)]
    video = Video(path, every)
    return [NamedImage(f"{name}/{i:06d}", lambda i=i: video.read(i), path) for i in range(0, video.count(), every)]
