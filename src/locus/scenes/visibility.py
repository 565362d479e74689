"""Frames read once for their geometry: which of them can be used, and what each of them sees."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray

from locus.errors import FrameError, LocusError, SceneError
from locus.geometry import Camera, invert, transform
from locus.scenes.patches import patch_points
from locus.scenes.scene import Frame, Scene
from locus.threads import in_order

Result = TypeVar("Result")

GRID = (18, 24)
LOOKUP = 160  # depth is looked up in maps of at most this many pixels a side: patches are coarser still
SHOWN = 3  # reasons in a warning
REACH = 3  # times its greatest depth: as far a frame is taken to see where it has no depth
OCCLUSION = 0.05  # a point this share of its depth, and this many metres, behind the surface seen there is hidden


@dataclass(frozen=True)
class FrameGeometry:
    """What remains of a frame when only its geometry matters: small enough to keep for every frame of a scene."""

    points: Float32[ndarray, "n 3"]
    """World points of the valid patches."""
    depth: Float32[ndarray, "h w"]
    """Every k-th pixel of the depth map."""
    camera: Camera
    """For that small map."""
    world_from_camera: Float[ndarray, "4 4"]

    @classmethod
    def of(cls, frame: Frame, grid: tuple[int, int] = GRID) -> "FrameGeometry":
        rows, columns = min(grid[0], frame.camera.height), min(grid[1], frame.camera.width)
        points, valid = patch_points(frame, (rows, columns))
        depth, camera = thinned(frame.depth, frame.camera)
        return cls(points[valid].astype(np.float32), depth, camera, frame.world_from_camera)


def thinned(depth: Float32[ndarray, "h w"], camera: Camera) -> tuple[Float32[ndarray, "a b"], Camera]:
    """Every k-th pixel of a depth map, as values a camera of that size has at its pixel centres."""
    step = min(-(-max(camera.width, camera.height) // LOOKUP), camera.width, camera.height)
    small = np.ascontiguousarray(depth[step // 2 :: step, step // 2 :: step])
    height, width = small.shape
    # Pixel i of the small map is pixel i·step + step // 2 of the large one.
    shift = step // 2 + 0.5 - step / 2
    intrinsics = (camera.fx / step, camera.fy / step, (camera.cx - shift) / step, (camera.cy - shift) / step)
    return small, Camera(width, height, *intrinsics)


def visible(points: Float32[ndarray, "n 3"], geometry: FrameGeometry) -> ndarray:
    """Indices of the world points that a frame sees."""
    camera_from_world = invert(geometry.world_from_camera).astype(np.float32)
    pixels, z = geometry.camera.project(transform(camera_from_world, points))
    height, width = geometry.depth.shape
    inside = np.flatnonzero(
        (z > 0) & (pixels[:, 0] >= 0) & (pixels[:, 0] < width) & (pixels[:, 1] >= 0) & (pixels[:, 1] < height)
    )
    x, y = pixels[inside].astype(np.int64).T
    surface = geometry.depth[y, x]
    return inside[z[inside] <= hidden_beyond(np.where(surface > 0, surface, REACH * geometry.depth.max()))]


def hidden_beyond(surface: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    """The depth beyond which a surface hides what lies behind it."""
    return surface * (1 + OCCLUSION) + OCCLUSION


def read_frames(
    scene: Scene,
    work: Callable[[Frame], Result],
    size: Callable[[Camera], object] = lambda camera: (camera.width, camera.height),
    indices: Sequence[int] | None = None,
) -> Iterator[tuple[int, Result]]:
    """`work` done on every frame that can be used (of those at `indices`, if not of all), each with its index in order.

    The others are left out, and named in a warning with the reason: those that cannot be read, and those whose `size`
    is not that of the first frame. If that is every frame of the scene, it is an error.
    """
    expected = size(first_camera(scene))
    chosen = range(len(scene)) if indices is None else indices

    def checked(frame: Frame) -> Result:
        if (own := size(frame.camera)) != expected:
            raise FrameError(f"frame {frame.name} is of {own} pixels, the first frame of {expected}")
        return work(frame)

    left_out = []
    results = each_frame(checked, replace(scene, sources=[scene.sources[index] for index in chosen]))
    for index, result in zip(chosen, results, strict=True):
        if isinstance(result, LocusError):
            left_out.append(str(result))
        else:
            yield index, result
    if len(left_out) == len(scene):
        raise SceneError(f"none of the {len(scene)} frames of {scene.name} can be used; {left_out[0]}")
    if left_out:
        shown = "; ".join(left_out[:SHOWN])
        warnings.warn(f"{scene.name}: {len(left_out)} of {len(scene)} frames are left out: {shown}", stacklevel=2)


def first_camera(scene: Scene) -> Camera:
    """The camera of the first frame that can be read: it says how large the images are."""
    reason = "it has none"
    for frame in scene:
        try:
            return frame.camera
        except LocusError as error:
            reason = str(error)
    raise SceneError(f"no frame of {scene.name} can be read: {reason}")


def each_frame(work: Callable[[Frame], Result], scene: Scene) -> Iterator[Result | LocusError]:
    """`work` done on every frame, a few at a time and in order; an error is handed back instead of a result."""

    def attempt(index: int) -> Result | LocusError:
        try:
            return work(scene[index])
        except LocusError as error:
            return error

    # Decoding images releases Python's lock; more threads than this only add memory.
    workers = min(8, os.cpu_count() or 1)
    return in_order(attempt, range(len(scene)), workers, ahead=2 * workers)
