"""A frame as its format stores it: where its pieces are and what they say, before any convention."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float, Int32, Num, UInt8
from numpy import ndarray

from locus.errors import LocusError
from locus.files import content_hash
from locus.geometry import Camera
from locus.opening import admitted
from locus.scenes.lens import Lens
from locus.scenes.reading import LARGEST_IMAGE, image_size, read_depth, read_image


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """One frame as its format stores it. A reader subclasses this; methods read when called and keep nothing.

    Errors are `LocusError`s that name the file; `Frame` adds the frame's name.
    """

    name: str

    @abstractmethod
    def image(self) -> UInt8[ndarray, "h w 3"]:
        """RGB."""

    @abstractmethod
    def image_size(self) -> tuple[int, int]:
        """(width, height) of the image, without reading its pixels."""

    def depth(self) -> Num[ndarray, "h w"]:
        """z in the stored unit; 0, negative or not finite where unknown. May be of another size than the image."""
        raise LocusError("the scene has no depth for it; `locus depth` finds some from the colour of all frames")

    def has_depth(self) -> bool:
        """Whether the scene says where its depth is."""
        return True

    def points(self) -> Float[ndarray, "n 3"] | None:
        """Points of the world that the frame is known to show, in the unit of the poses; None if nothing is known."""
        return None

    @abstractmethod
    def camera(self) -> Camera:
        """Intrinsics for some size of the image; they are carried to the size that the image file has."""

    @abstractmethod
    def pose(self) -> Float[ndarray, "4 4"]:
        """The matrix as stored; the scene's convention says what it means."""

    def lens(self) -> Lens:
        """What took the image, and depth and labels of the same camera. By default one that does not distort."""
        return Lens()

    def straight(self, values: Num[ndarray, "h w *c"]) -> Num[ndarray, "h w *c"]:
        """What this camera took, an image or a map, as a pinhole camera would have seen it."""
        return self.lens().straighten(values, self.camera()) if self.lens().distorts else values

    def semantic(self) -> Int32[ndarray, "h w"] | None:
        """Class ids, 0 where unlabelled; None if the scene has no labels."""
        return None

    def instance(self) -> Int32[ndarray, "h w"] | None:
        """Instance ids, the same in all frames, 0 where there is none; None if the scene has no instances."""
        return None

    # Hashes that tell whether something is as it was, wherever it is stored; what is kept of a frame is found by them.

    def image_state(self) -> str:
        return content_hash(self.image())

    def depth_state(self) -> str:
        return content_hash(self.depth())

    def label_state(self) -> str:
        return content_hash(self.semantic(), self.instance())


@dataclass(frozen=True, eq=False)
class FileSource(Source):
    """A frame whose image and depth are files; what a lens has distorted is straightened. States are of the files."""

    image_path: Path
    depth_path: Path | None

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.straight(read_image(self.image_path))

    def image_size(self) -> tuple[int, int]:
        return image_size(self.image_path)

    def has_depth(self) -> bool:
        return self.depth_path is not None

    def depth(self) -> Num[ndarray, "h w"]:
        if self.depth_path is None:
            return super().depth()
        return self.straight(read_depth(self.depth_path))

    def label_files(self) -> Sequence[Path]:
        """The files that labels are made from."""
        return ()

    def image_state(self) -> str:
        return self._state(self.image_path)

    def depth_state(self) -> str:
        return self._state(self.depth_path)

    def label_state(self) -> str:
        return self._state(*self.label_files())

    def _state(self, *files: Path | None) -> str:
        for file in files:
            if file is not None and os.path.exists(file):  # noqa: PTH110  of a name too long Path makes an error
                admitted(file, LARGEST_IMAGE)  # what would not be read need not be looked through
        lens = self.lens()
        return content_hash(*files, *((lens, self.camera()) if lens.distorts else ()))


@dataclass(frozen=True, eq=False)
class PosedFile(FileSource):
    """One whose pose, as stored, is known when the scene is opened."""

    stored_pose: Float[ndarray, "4 4"]

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.stored_pose


@dataclass(frozen=True, eq=False)
class CalibratedFile(PosedFile):
    """One whose camera is known then too."""

    intrinsics: Camera
    distortion: Lens

    def camera(self) -> Camera:
        return self.intrinsics

    def lens(self) -> Lens:
        return self.distortion


@dataclass(frozen=True, eq=False)
class ArraySource(Source):
    """A frame in memory, as a robot sends it: depth in metres, `world_from_camera`, OpenCV's axes."""

    pixels: UInt8[ndarray, "h w 3"]
    metres: Num[ndarray, "h w"]
    intrinsics: Camera
    world_from_camera: Float[ndarray, "4 4"]

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.pixels

    def image_size(self) -> tuple[int, int]:
        return self.pixels.shape[1], self.pixels.shape[0]

    def depth(self) -> Num[ndarray, "h w"]:
        return self.metres

    def camera(self) -> Camera:
        return self.intrinsics

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.world_from_camera


@dataclass(frozen=True, eq=False)
class AlteredSource(Source):
    """A frame as another source has it, but for what a subclass says."""

    source: Source

    def image(self) -> UInt8[ndarray, "h w 3"]:
        return self.source.image()

    def image_size(self) -> tuple[int, int]:
        return self.source.image_size()

    def has_depth(self) -> bool:
        return self.source.has_depth()

    def depth(self) -> Num[ndarray, "h w"]:
        return self.source.depth()

    def camera(self) -> Camera:
        return self.source.camera()

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.source.pose()

    def semantic(self) -> Int32[ndarray, "h w"] | None:
        return self.source.semantic()

    def instance(self) -> Int32[ndarray, "h w"] | None:
        return self.source.instance()

    def image_state(self) -> str:
        return self.source.image_state()

    def label_state(self) -> str:
        return self.source.label_state()


@dataclass(frozen=True, eq=False)
class MovedSource(AlteredSource):
    """A frame with another pose, as its scene's convention stores it."""

    stored_pose: Float[ndarray, "4 4"]

    def pose(self) -> Float[ndarray, "4 4"]:
        return self.stored_pose

    def depth_state(self) -> str:
        return self.source.depth_state()
