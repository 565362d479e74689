"""Images with their features, whether they are frames of a scene or files: what is searched and segmented."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures, scene_features
from locus.features.images import Input, NamedImage, sources
from locus.model import LoCUS
from locus.progress import track
from locus.scenes import Scene


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """One image and its features."""

    image: NamedImage
    size: tuple[int, int]
    """(width, height) of the image."""
    features: Float[Tensor, "scales rows columns c"]
    """Unit length, on the CPU."""


def image_features(
    model: LoCUS, inputs: Sequence[Input], cache: Path | None = None, *, progress: bool = False
) -> Iterator[ImageFeatures]:
    """Images one by one: a scene's frames, by way of the token cache; or files, folders, patterns and videos.

    Images that cannot be read are left out with a warning. They may be of any sizes.
    """
    if len(inputs) == 1 and isinstance(inputs[0], Scene):
        yield from frame_features(scene_features(model, inputs[0], cache, progress=progress))
        return
    images = sources(inputs)
    for image in track(images, "features", len(images), progress):
        try:
            yield features_of(model, image)
        except LocusError as error:
            warnings.warn(f"{image.name} is left out: {error}", stacklevel=2)


def features_of(model: LoCUS, image: NamedImage) -> ImageFeatures:
    """One image, read and run through the model."""
    pixels = image.read()
    return ImageFeatures(image, (pixels.shape[1], pixels.shape[0]), model.features(pixels).cpu())


def frame_features(seen: SceneFeatures) -> list[ImageFeatures]:
    """A scene's frames, with the features that are known already."""
    frames, found = sources(seen.scene), []
    for row, index in enumerate(seen.indices):
        camera = seen.frame(row).camera
        found.append(ImageFeatures(frames[index], (camera.width, camera.height), seen.features[:, row]))
    return found


def query_features(model: LoCUS, image: NamedImage, known: Iterable[ImageFeatures]) -> ImageFeatures:
    """An image that is asked about: one of the known, if it is the same frame or file."""
    return next((each for each in known if _same(each.image, image)), None) or features_of(model, image)


def _same(a: NamedImage, b: NamedImage) -> bool:
    if a.scene is not None and b.scene is not None:
        same_name = a.scene.sources[a.index].name == b.scene.sources[b.index].name
        return same_name and a.scene.folder == b.scene.folder
    return a.file is not None and b.file is not None and a.file.resolve() == b.file.resolve()
