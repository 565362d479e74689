"""A scene whose pictures are read, augmented anew and put through the backbone each time they are drawn: no cache."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Int, UInt8
from numpy import ndarray
from torch import Tensor

from locus.backbones import Backbone
from locus.errors import LocusError
from locus.features.augmentation import augmented
from locus.geometry import transform
from locus.progress import track
from locus.scenes import Frame, Scene
from locus.scenes.patches import patch_points_camera
from locus.scenes.visibility import FrameGeometry, each_frame, first_camera, overlap_of

READERS = 4  # threads; a batch is read while the one before is learned from


@dataclass(frozen=True)
class LiveScene:
    """What is known of a scene from looking at each of its frames once."""

    scene: Scene
    backbone: Backbone
    resolution: int | None
    size: tuple[int, int]
    """Width and height of the resized frames."""
    points: Float32[ndarray, "frames rows columns 3"]
    """World points of the frames as they are, NaN where there is none, and all of a frame that cannot be read."""
    overlap: Float32[ndarray, "frames frames"]

    @property
    def name(self) -> str:
        return self.scene.name

    @property
    def grid(self) -> tuple[int, int]:
        return self.points.shape[1], self.points.shape[2]

    def read(
        self, frames: Int[ndarray, " k"], rng: np.random.Generator | None
    ) -> tuple[UInt8[Tensor, "k 3 h w"], Float32[ndarray, "k rows columns 3"]]:
        """Pixels and points of frames as they are; with `rng`, each augmented anew."""
        # A seed for each frame, so that it does not matter which thread is first.
        seeds = [None] * len(frames) if rng is None else rng.integers(2**63, size=len(frames)).tolist()

        def one(index: int, seed: int | None) -> tuple[Tensor, ndarray]:
            own = None if seed is None else np.random.default_rng(seed)
            return view(self.scene[index], self.backbone, self.resolution, self.size, own)

        with ThreadPoolExecutor(READERS) as pool:
            pixels, points = zip(*pool.map(one, frames.tolist(), seeds), strict=True)
        return torch.stack(pixels), np.stack(points)


def look_at(scene: Scene, backbone: Backbone, resolution: int | None, progress: bool) -> LiveScene:
    """Read every frame once: where its patches are, which frames overlap. A warning names those that are unreadable."""
    camera = first_camera(scene)
    size = backbone.size(camera.width, camera.height, resolution)
    grid = (size[1] // backbone.patch_size, size[0] // backbone.patch_size)
    points = np.full((len(scene), *grid, 3), np.nan, np.float32)
    geometries: list[FrameGeometry | None] = []

    def look(frame: Frame) -> tuple[ndarray, FrameGeometry]:
        return view(frame, backbone, resolution, size)[1], FrameGeometry.of(frame)

    for index, seen in enumerate(track(each_frame(look, scene), scene.name, len(scene), progress)):
        if isinstance(seen, LocusError):
            warnings.warn(f"left out: {seen}", stacklevel=2)
            geometries.append(None)
        else:
            points[index], geometry = seen
            geometries.append(geometry)
    return LiveScene(scene, backbone, resolution, size, points, overlap_of(geometries))


def view(
    frame: Frame,
    backbone: Backbone,
    resolution: int | None,
    size: tuple[int, int],
    rng: np.random.Generator | None = None,
) -> tuple[UInt8[Tensor, "3 h w"], Float32[ndarray, "rows columns 3"]]:
    """The frame as it is, or with `rng` augmented (`features.augmentation`); points are NaN where there is no depth.

    `size` is the (width, height) that the frames of a scene have when resized; a frame of another size is refused.
    """
    own = backbone.size(frame.camera.width, frame.camera.height, resolution)
    if own != size:
        raise LocusError(f"frame {frame.name} is {own} pixels wide and high when resized, the first frame {size}")
    image, depth, camera = frame.image, frame.depth, frame.camera
    if rng is not None:
        image, depth, camera = augmented(image, depth, camera, rng)
    grid = (size[1] // backbone.patch_size, size[0] // backbone.patch_size)
    points = transform(frame.world_from_camera, patch_points_camera(depth, camera, grid)[0])
    return backbone.prepare(image, resolution), points.astype(np.float32)
