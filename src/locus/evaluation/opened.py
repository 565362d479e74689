"""A scene as every method is asked about it: the same frames, the same grid of patches, the same points."""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray

from locus.errors import LocusError
from locus.scenes import Frame, Scene
from locus.scenes.patches import patch_points
from locus.scenes.visibility import FrameGeometry, each_frame, first_camera, overlap_of, read_frames

SHORTER = 18  # patches along an image's shorter side, where no method says how many


class EvaluationError(LocusError):
    """An evaluation that cannot be done as asked."""


def at_least(least: int, **values: int) -> None:
    """Refuse options that nothing could be measured with."""
    for name, value in values.items():
        if value < least:
            raise EvaluationError(f"--{name} must be at least {least}, not {value}")


@dataclass(frozen=True, eq=False)
class Place:
    """Frames that can be read and are of one size, and what their patches show."""

    scene: Scene
    indices: list[int]
    """Each frame's place in the scene."""
    points: Float32[ndarray, "frames rows columns 3"]
    """World points of the patches, NaN where there is none."""
    overlap: Float32[ndarray, "frames frames"]
    """The share of frame a's patches that frame b sees."""

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def grid(self) -> tuple[int, int]:
        return self.points.shape[1], self.points.shape[2]

    @property
    def known(self) -> Bool[ndarray, "frames rows columns"]:
        """Patches that have a point."""
        return np.all(np.isfinite(self.points), axis=-1)

    def frame(self, row: int) -> Frame:
        """The frame that a row of `points` is of."""
        return self.scene[self.indices[row]]


def open_place(scene: Scene, grid: tuple[int, int] | None = None) -> Place:
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
    return Place(scene, list(readings), points, overlap_of([geometry for _, geometry in readings.values()]))


def labelled_rows(place: Place) -> list[int]:
    """Frames (rows) whose label maps can be read; the others count as unlabelled, and are told in a warning."""
    every = list(each_frame(lambda frame: (frame.semantic is None, frame.instance is None), place.scene))
    readings = [every[index] for index in place.indices]
    unreadable = [reading for reading in readings if isinstance(reading, LocusError)]
    if unreadable:
        warnings.warn(
            f"{place.scene.name}: labels of {len(unreadable)} of {len(place)} frames are left out: {unreadable[0]}",
            stacklevel=2,
        )
    return [row for row, reading in enumerate(readings) if not isinstance(reading, LocusError)]


def first_size(scene: Scene) -> tuple[int, int]:
    """(width, height) of the first frame that can be read."""
    camera = first_camera(scene)
    return camera.width, camera.height


def grid_of(width: int, height: int) -> tuple[int, int]:
    """Square patches, `SHORTER` along the shorter side."""
    side = min(width, height) / SHORTER
    return max(1, round(height / side)), max(1, round(width / side))
