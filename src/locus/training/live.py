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
from locus.features.cache import first_camera
from locus.features.views import view
from locus.progress import track
from locus.scenes import Frame, Scene
from locus.scenes.visibility import FrameGeometry, each_frame, overlap_of

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
