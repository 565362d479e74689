"""Images and their features, whether they are frames of a scene or files: what is searched and segmented."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures, scene_features
from locus.features.images import is_scene, sources
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Scene, load_scene
from locus.scenes.reading import read_image


@dataclass(frozen=True, eq=False)
class View:
    """One image and what the model sees in it."""

    name: str
    read: Callable[[], UInt8[ndarray, "height width 3"]]
    """RGB; read anew each time, because many images do not fit in memory."""
    size: tuple[int, int]
    """(width, height) of the image."""
    features: Float[Tensor, "scales rows columns c"]
    """Unit length, on the CPU."""


def views(model: LoCUS, inputs: Sequence[str], cache: Path | None = None, *, progress: bool = False) -> Iterator[View]:
    """Images one by one: a scene's frames, by way of the token cache; or files, folders, patterns and videos.

    What cannot be read is left out with a warning. Images may be of any sizes.
    """
    scene = only_scene(inputs)
    if scene is not None:
        yield from scene_views(scene_features(model, scene, cache, progress=progress))
        return
    images = sources(inputs)
    for image in track(images, "features", len(images), progress):
        try:
            pixels = image.read()
        except LocusError as error:
            warnings.warn(f"{image.name} is left out: {error}", stacklevel=2)
            continue
        yield View(image.name, image.read, (pixels.shape[1], pixels.shape[0]), model.features(pixels).cpu())


def only_scene(inputs: Sequence[str]) -> Scene | None:
    """The scene, if the input is one and nothing else."""
    if len(inputs) == 1 and Path(inputs[0]).is_dir() and is_scene(Path(inputs[0])):
        return load_scene(inputs[0])
    return None


def scene_views(seen: SceneFeatures) -> list[View]:
    """A scene's frames as views."""
    found = []
    for row in range(len(seen)):
        frame = seen.frame(row)
        size = (frame.camera.width, frame.camera.height)
        found.append(View(frame.name, lambda row=row: seen.frame(row).image, size, seen.features[:, row]))
    return found


def query_view(model: LoCUS, image: str, scene: Scene | None, known: Sequence[View]) -> View:
    """The view a query names: an image file, or a frame of the scene by its name or its file."""
    for view in known:
        if view.name == image:
            return view
    path = Path(image)
    if path.is_file():
        files = {} if scene is None else {source.name: getattr(source, "image_path", None) for source in scene.sources}
        for view in known:
            file = files.get(view.name)
            if file is not None and file.exists() and file.samefile(path):
                return view
        pixels = read_image(path, upright=True)
        return View(path.name, lambda: pixels, (pixels.shape[1], pixels.shape[0]), model.features(pixels).cpu())
    names = ", ".join(view.name for view in known[:3])
    raise LocusError(f"{image} is neither an image file nor one of the {len(known)} images searched ({names}, ...)")
