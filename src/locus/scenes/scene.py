"""Scene and Frame: posed images, with or without depth, as every other part of LoCUS sees them.

A reader (`locus.scenes.formats`) describes each frame as a `Source`: where its pieces are and what they say, as stored.
A `Convention` says how the stored numbers are to be understood. `Frame` puts the two together, checks them, and hands
out arrays in the project's own conventions; nothing is read from disk until it is asked for.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args, get_type_hints, overload

import numpy as np
from jaxtyping import Float, Float32, Int32, Num, UInt8
from numpy import ndarray

from locus.errors import FrameError, LocusError
from locus.files import content_hash
from locus.geometry import LARGEST_LENGTH, OPENGL_FROM_OPENCV, Camera, invert, rigid
from locus.scenes.source import ArraySource, MovedSource, Source

# What has no instances one could count; the paper's examples.
STUFF = ("wall", "floor", "ceiling")

# Two image sizes show the same view if their aspect ratios agree this well (ScanNet: 1296×968 and 640×480, 0.4 %).
ASPECT_TOLERANCE = 0.01


@dataclass(frozen=True)
class LabelClass:
    """One semantic class. Label maps hold its id; id 0 is never a class, it means unlabelled."""

    id: int
    name: str
    kind: Literal["stuff", "thing"]


def class_kind(name: str) -> Literal["stuff", "thing"]:
    """The kind of a class in a data set that does not say."""
    return "stuff" if name in STUFF else "thing"


@dataclass(frozen=True)
class Convention:
    """How a scene's stored numbers are to be understood."""

    pose: Literal["world_from_camera", "camera_from_world"] = "world_from_camera"
    """Which way the stored 4×4 matrices map."""
    axes: Literal["opencv", "opengl"] = "opencv"
    """The camera's axes: opencv (x right, y down, z forward) or opengl, also Blender's (x right, y up, z backward)."""
    rotation: Literal["plain", "transposed"] = "plain"
    """Whether the rotation part of the stored matrices has been transposed by mistake."""
    intrinsics: Literal["plain", "swapped"] = "plain"
    """Whether fx, fy and cx, cy have been exchanged by mistake."""
    depth_scale: float = 1000.0
    """Stored depth units per metre: 1000 for millimetres, 5000 for TUM, 4000 for Matterport3D, 1 for metres."""

    def __post_init__(self) -> None:
        for name, values in CHOICES.items():
            if getattr(self, name) not in values:
                raise LocusError(f"{name} must be {' or '.join(values)}, not {getattr(self, name)!r}")
        if not 1 / LARGEST_LENGTH < self.depth_scale < LARGEST_LENGTH:
            raise LocusError(f"the depth scale must be positive (units per metre), not {self.depth_scale:g}")

    def world_from_camera(self, stored: Float[ndarray, "*n 4 4"]) -> Float[ndarray, "*n 4 4"]:
        """Stored rigid matrices, as `world_from_camera` with OpenCV axes."""
        pose = self._turned(stored)
        if self.pose == "camera_from_world":
            pose = invert(pose)
        return pose @ OPENGL_FROM_OPENCV if self.axes == "opengl" else pose

    def stored(self, world_from_camera: Float[ndarray, "*n 4 4"]) -> Float[ndarray, "*n 4 4"]:
        """The inverse of `world_from_camera`: what a file of this convention holds for a pose."""
        pose = world_from_camera @ OPENGL_FROM_OPENCV if self.axes == "opengl" else world_from_camera
        return self._turned(invert(pose) if self.pose == "camera_from_world" else pose)

    def _turned(self, pose: Float[ndarray, "*n 4 4"]) -> Float[ndarray, "*n 4 4"]:
        if self.rotation == "plain":
            return pose
        turned = pose.copy()
        turned[..., :3, :3] = np.swapaxes(pose[..., :3, :3], -1, -2)
        return turned

    def differences(self, other: "Convention") -> dict[str, str | float]:
        """The fields that differ from another convention's, with their values here."""
        return {name: value for name, value in vars(self).items() if value != getattr(other, name)}

    def camera(self, stored: Camera) -> Camera:
        return stored.swapped() if self.intrinsics == "swapped" else stored


# What each field of a convention but the depth scale may be.
CHOICES: dict[str, tuple[str, ...]] = {
    name: get_args(hint) for name, hint in get_type_hints(Convention).items() if name != "depth_scale"
}


class Frame:
    """One posed RGB-D image. Everything but the name is read when first asked for, checked, and then kept."""

    def __init__(self, source: Source, convention: Convention, classes: Sequence[LabelClass] = ()) -> None:
        self.name = source.name
        self._source = source
        self._convention = convention
        self._classes = classes

    @classmethod
    def of(
        cls,
        name: str,
        image: UInt8[ndarray, "h w 3"],
        depth: Num[ndarray, "h w"],
        camera: Camera,
        world_from_camera: Float[ndarray, "4 4"],
    ) -> "Frame":
        """A frame in memory: RGB, z in metres, 0 where unknown, and its pose with OpenCV's axes."""
        return cls(ArraySource(name, image, depth, camera, world_from_camera), Convention(depth_scale=1.0))

    def __repr__(self) -> str:
        return f"Frame({self.name!r})"

    def alone(self, scene: str) -> "Scene":
        """A scene of this name that has this frame only."""
        return Scene(scene, "frames", [self._source], self._convention, self._classes)

    @cached_property
    def image(self) -> UInt8[ndarray, "h w 3"]:
        """RGB."""
        with self._named():
            return self._source.image()

    @cached_property
    def camera(self) -> Camera:
        """Intrinsics for `image`."""
        with self._named():
            stored = self._convention.camera(self._source.camera())
            width, height = self._source.image_size()
            check_aspect((stored.width, stored.height), (width, height), "the calibration", "the image")
            return stored.resized(width, height)

    @cached_property
    def world_from_camera(self) -> Float[ndarray, "4 4"]:
        with self._named():
            return self._convention.world_from_camera(rigid(self._source.pose()))

    @cached_property
    def depth(self) -> Float32[ndarray, "h w"]:
        """z in metres at each pixel of `image`, 0 where unknown."""
        with self._named():
            depth = self._source.depth().astype(np.float32)
            depth /= np.float32(self._convention.depth_scale)
            depth[~(np.isfinite(depth) & (depth > 0))] = 0
            return self._at_image_size(depth, "the depth map")

    @property
    def has_depth(self) -> bool:
        """Whether there is any depth to ask for."""
        return self._source.has_depth()

    @cached_property
    def points(self) -> Float[ndarray, "n 3"] | None:
        """Points of the world that it is known to show, as a COLMAP model has them; None if nothing is known."""
        with self._named():
            return self._source.points()

    def image_state(self) -> str:
        """A hash that changes with the pixels of the image, and with nothing else."""
        with self._named():
            return self._source.image_state()

    def geometry_state(self) -> str:
        """A hash that changes with the depth, the camera or the pose, however they come to change."""
        with self._named():
            state = self._source.depth_state()
        return content_hash(state, self._convention.depth_scale, self.camera, self.world_from_camera)

    def label_state(self) -> str:
        """A hash that changes with the labels."""
        with self._named():
            return self._source.label_state()

    @cached_property
    def semantic(self) -> Int32[ndarray, "h w"] | None:
        """Class ids (see `Scene.classes`), 0 where unlabelled."""
        with self._named():
            labels = self._source.semantic()
            if labels is None:
                return None
            unknown = np.setdiff1d(np.unique(labels), [0, *(label.id for label in self._classes)])
            if unknown.size:
                shown = ", ".join(map(str, unknown[:5]))
                raise LocusError(f"the semantic labels hold ids that are not in the scene's class list: {shown}")
            return self._at_image_size(labels, "the semantic map")

    @cached_property
    def instance(self) -> Int32[ndarray, "h w"] | None:
        """Instance ids, 0 where there is none."""
        with self._named():
            labels = self._source.instance()
            return None if labels is None else self._at_image_size(labels, "the instance map")

    def _at_image_size(self, values: Num[ndarray, "a b"], what: str) -> Num[ndarray, "h w"]:
        """Values resampled to the image's size without inventing any (nearest pixel)."""
        width, height = self._source.image_size()
        rows, columns = values.shape
        if (columns, rows) == (width, height):
            return values
        check_aspect((columns, rows), (width, height), what, "the image")
        y = ((np.arange(height) + 0.5) * rows / height).astype(int)
        x = ((np.arange(width) + 0.5) * columns / width).astype(int)
        return values[np.ix_(y, x)]

    @contextmanager
    def _named(self) -> Generator[None, None, None]:
        """Errors met inside say which frame they are about. Hostile files raise more than one thinks of."""
        try:
            yield
        except LocusError as error:
            raise FrameError(f"frame {self.name}: {error}") from error
        except Exception as error:
            raise FrameError(f"frame {self.name} cannot be read: {type(error).__name__}: {error}") from error


def check_aspect(a: tuple[int, int], b: tuple[int, int], what_a: str, what_b: str) -> None:
    """Raise unless two sizes (width, height) can show the same view."""
    if abs(a[0] * b[1] / (a[1] * b[0]) - 1) > ASPECT_TOLERANCE:
        raise LocusError(
            f"{what_a} is for {a[0]}×{a[1]} pixels but {what_b} has {b[0]}×{b[1]}, another aspect ratio, "
            "so the two cannot be aligned by resizing"
        )


@dataclass(frozen=True, eq=False)
class Scene(Sequence[Frame]):
    """Frames of one world. `scene[i]` is a Frame, `scene[a:b]` a Scene; a frame's data live as long as the Frame."""

    name: str
    format: str
    sources: Sequence[Source] = field(repr=False)
    convention: Convention = Convention()
    classes: Sequence[LabelClass] = field(default=(), repr=False)
    skipped: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Frames left out when the scene was opened, each with the reason."""
    folder: Path | None = field(default=None, repr=False)
    """Where it was opened; None for a scene that exists in memory alone."""

    def __len__(self) -> int:
        return len(self.sources)

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> "Scene": ...
    def __getitem__(self, index: int | slice) -> "Frame | Scene":
        if isinstance(index, slice):
            return replace(self, sources=self.sources[index])
        return Frame(self.sources[index], self.convention, self.classes)

    def __iter__(self) -> Iterator[Frame]:
        return (self[i] for i in range(len(self)))

    def moved(self, poses: Float[ndarray, "n 4 4"]) -> "Scene":
        """The same frames with other `world_from_camera`."""
        stored = zip(self.sources, self.convention.stored(poses), strict=True)
        return replace(self, sources=[MovedSource(source.name, source, pose) for source, pose in stored])
