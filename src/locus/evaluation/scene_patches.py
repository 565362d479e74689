"""A scene as every method is asked about it: the same frames, the same grid of patches, the same points."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from numpy import ndarray
from scipy.sparse import csr_array
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import ReadFrames
from locus.geometry import invert, transform
from locus.objective import draw_landmarks
from locus.scenes import Frame, Scene
from locus.scenes.covisibility import draw_frames, overlap_of
from locus.scenes.fingerprint import scene_fingerprint
from locus.scenes.patches import patch_points
from locus.scenes.visibility import FrameGeometry, first_camera, read_frames, visible

SHORTER = 18  # patches along an image's shorter side, where no method says how many


class EvaluationError(LocusError):
    """An evaluation that cannot be done as asked."""


def at_least(least: int, **values: int) -> None:
    """Refuse options that nothing could be measured with."""
    for name, value in values.items():
        if value < least:
            raise EvaluationError(f"--{name.replace('_', '-')} must be at least {least}, not {value}")


@dataclass(frozen=True, eq=False)
class LandmarkBatch:
    """Patches of some frames of a scene, and those of them that are landmarks: what the objective is told of them."""

    rows: Int[ndarray, " k"]
    """The frames, as rows of the `ScenePatches`."""
    geometry: tuple[Float[Tensor, "n 3"], Int[Tensor, " n"], Int[Tensor, " n"], Int[Tensor, " m"]]
    """Positions, environments, frames and landmarks, in the order in which the objective takes them."""

    @property
    def landmarks(self) -> Int[Tensor, " m"]:
        return self.geometry[3]


@dataclass(frozen=True, eq=False)
class ScenePatches(ReadFrames):
    """What the patches of a scene show."""

    overlap: csr_array
    """(frames, frames): the share of frame a's patches that frame b sees, of all pairs."""

    @property
    def known(self) -> Bool[ndarray, "frames rows columns"]:
        """Patches that have a point."""
        return np.all(np.isfinite(self.points), axis=-1)

    @property
    def mutual_overlap(self) -> Float32[ndarray, "frames frames"]:
        """The lesser of the shares that two frames see of each other."""
        return self.overlap.minimum(self.overlap.T).toarray()

    def size(self, row: int) -> tuple[int, int]:
        """(width, height) of a frame."""
        camera = self.frame(row).camera
        return camera.width, camera.height

    def random(self, *seed: int) -> np.random.Generator:
        """Draws that are the same in every run and for every method, and others for a scene of another name."""
        first, *more = seed
        return np.random.default_rng([first, zlib.crc32(self.scene.name.encode()), *more])

    def draw(self, random: np.random.Generator, frames: int, landmarks: int, radius: float) -> LandmarkBatch:
        """Frames that overlap, all of their patches, and landmarks among these, each seen in two of the frames."""
        usable = np.flatnonzero(self.known.reshape(len(self), -1).any(axis=1))
        rows = draw_frames(self.overlap, usable, random, frames)
        positions = torch.from_numpy(self.points[rows].reshape(-1, 3))
        numbers = torch.arange(len(rows)).repeat_interleave(self.grid[0] * self.grid[1])
        alone = torch.zeros_like(numbers)
        chosen = draw_landmarks(positions, alone, numbers, radius, landmarks, random)
        return LandmarkBatch(rows, (positions, alone, numbers, chosen))

    def seen_from(self, a: int, b: int) -> tuple[Bool[ndarray, " n"], Float[ndarray, "seen 2"]]:
        """Which patches of frame a frame b sees, and where in its image."""
        points = self.points[a].reshape(-1, 3)
        known = np.flatnonzero(np.isfinite(points).all(axis=1))
        frame = self.frame(b)
        seen = np.zeros(len(points), bool)
        seen[known[visible(points[known], FrameGeometry.of(frame))]] = True
        pixels, _ = frame.camera.project(transform(invert(frame.world_from_camera), points[seen].astype(np.float64)))
        return seen, pixels


def read_patches(scene: Scene, grid: tuple[int, int] | None = None) -> ScenePatches:
    """The frames of a scene on a (rows, columns) grid; those that cannot be used are named in a warning."""
    shape = grid or grid_of(*first_size(scene))

    def read(frame: Frame) -> tuple[ndarray, FrameGeometry]:
        return patch_points(frame, shape)[0].astype(np.float32), FrameGeometry.of(frame)

    readings = dict(read_frames(scene, read))
    if len(readings) < 2:
        raise EvaluationError(
            f"{scene.name} has {len(readings)} frames that can be used; views are compared, so two are needed"
        )
    points = np.stack([points for points, _ in readings.values()])
    if not np.isfinite(points).any():
        raise EvaluationError(f"{scene.name} has no patch with valid depth; see `locus inspect`")
    geometries = [geometry for _, geometry in readings.values()]
    overlap = overlap_of(len(geometries), lambda: enumerate(geometries), most=len(geometries))
    return ScenePatches(scene, list(readings), points, overlap)


@dataclass(eq=False)
class OpenedScene:
    """A scene to evaluate on; its frames are read once, and only if something is not measured yet."""

    group: str
    path: Path
    scene: Scene
    grid: tuple[int, int] | None
    state: Callable[[Scene], str] = scene_fingerprint
    """A hash of all that is measured of it."""
    error: LocusError | None = None
    """Why its frames cannot be used, once they have been read."""

    @cached_property
    def fingerprint(self) -> str:
        return self.state(self.scene)

    @cached_property
    def patches(self) -> ScenePatches:
        if self.error is None:
            try:
                return read_patches(self.scene, self.grid)
            except LocusError as error:
                self.error = error
        raise self.error


def first_size(scene: Scene) -> tuple[int, int]:
    """(width, height) of the first frame that can be read."""
    camera = first_camera(scene)
    return camera.width, camera.height


def grid_of(width: int, height: int) -> tuple[int, int]:
    """Square patches, `SHORTER` along the shorter side."""
    side = min(width, height) / SHORTER
    return max(1, round(height / side)), max(1, round(width / side))
