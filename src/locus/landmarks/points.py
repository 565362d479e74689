"""The points of a map: of each frame its best keypoints, with their places in the world and what they look like.

Landmarks say where about an image was taken; points say it exactly. Descriptors and features are kept in 8 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Int, Int8, Int32, Int64, UInt16
from numpy import ndarray

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.geometry import transform
from locus.keypoints.detection import Keypoints
from locus.keypoints.fusion import PlacedKeypoints
from locus.progress import track
from locus.rows import Rows
from locus.scenes.patches import points_at

if TYPE_CHECKING:
    from locus.keypoints import Detector

FRAME = 100_000  # bytes that the points of one frame may take,
RECORDING = 2_000_000_000  # and those of all frames of a recording
WHOLE = 2**16 - 1  # what pixels are kept in shares of: finer than a sixteenth of a pixel up to 4096 of them
BY_POINT = ("pixel", "position", "descriptor", "places")  # arrays with a row for each point


class FramePoints(NamedTuple):
    """The points of one frame, ready to be matched."""

    placed: PlacedKeypoints
    position: Float[ndarray, "n 3"]
    """Metres in the environment's world."""


@dataclass(frozen=True, eq=False)
class MapPoints(Rows):
    """The points of all frames: of each, `count` rows from `start` on. A frame may have none."""

    start: Int64[ndarray, " f"]
    count: Int32[ndarray, " f"]
    size: Int32[ndarray, "f 2"]
    """Width and height of each frame."""
    pixel: UInt16[ndarray, "n 2"]
    """x and y: 0 is the image's left or upper border, 65535 the other one."""
    position: Float32[ndarray, "n 3"]
    """Metres in the environment's world."""
    descriptor: Int8[ndarray, "n d"]
    """Of the keypoint, its largest number 127 or -127."""
    places: Int8[ndarray, "n scales c"]
    """The LoCUS features at its spot, likewise."""
    detector: str
    """Fingerprint of what found the keypoints."""

    @classmethod
    def of_scene(
        cls,
        seen: SceneFeatures,
        detector: "Detector",
        scales: Sequence[int],
        room: int = FRAME,
        progress: bool = False,
    ) -> "MapPoints":
        """The best keypoints with depth of every frame, as many as fit `room` bytes, with features of some scales."""
        rows = track(range(len(seen)), "keypoints", len(seen), progress)
        return joined([cls._of_frame(seen, row, detector, scales, room) for row in rows])

    @classmethod
    def _of_frame(
        cls, seen: SceneFeatures, row: int, detector: "Detector", scales: Sequence[int], room: int
    ) -> "MapPoints":
        frame = seen.frame(row)
        found = detector.detect(frame.image)
        size = np.array(found.size, np.int32)
        camera = frame.camera
        points = points_at(frame.depth, camera, found.pixels * [camera.width, camera.height] / size)
        numbers = detector.dimension + len(scales) * seen.features.shape[-1]
        best = np.flatnonzero(np.isfinite(points).all(axis=1))[: most(numbers, room)]
        placed = PlacedKeypoints.of(found[best], seen.features[list(scales), row])
        return cls(
            start=np.zeros(1, np.int64),
            count=np.array([len(best)], np.int32),
            size=size[None],
            pixel=(placed.keypoints.pixels / size * WHOLE).round().clip(0, WHOLE).astype(np.uint16),
            position=transform(frame.world_from_camera, points[best]).astype(np.float32),
            descriptor=in_8_bits(placed.keypoints.descriptors.numpy()),
            places=in_8_bits(placed.places.transpose(0, 1).numpy()),
            detector=detector.fingerprint,
        )

    def frame(self, row: int) -> FramePoints:
        """Of one frame, read from the map's file only now."""
        rows = slice(int(self.start[row]), int(self.start[row] + self.count[row]))
        size = (int(self.size[row, 0]), int(self.size[row, 1]))
        position = self.position[rows].astype(np.float64)
        if not np.isfinite(position).all():  # a file's values are not looked at before
            raise LocusError(f"the points of frame {row} of the map are not finite; build the map again")
        descriptors, places = (
            F.normalize(torch.from_numpy(values[rows].astype(np.float32)), dim=-1)
            for values in (self.descriptor, self.places)
        )
        pixels = self.pixel[rows].astype(np.float64) / WHOLE * size
        keypoints = Keypoints(pixels, np.zeros(len(pixels)), descriptors, size)  # no matcher asks for their scores
        return FramePoints(PlacedKeypoints(keypoints, places.transpose(0, 1)), position)

    @property
    def rows(self) -> Int64[ndarray, " m"]:
        """Of all points that a frame has, one frame after the other."""
        within = np.arange(self.count.sum()) - np.repeat(starts(self.count), self.count)
        return np.repeat(self.start, self.count) + within


def starts(count: Int[ndarray, " f"]) -> Int64[ndarray, " f"]:
    """Where the points of each frame begin, if those of all frames lie one after the other."""
    return count.cumsum(dtype=np.int64) - count


def points_room(frames: int) -> int:
    """Bytes for the points of each frame of a recording of so many."""
    return min(FRAME, RECORDING // frames)


def most(dimensions: int, room: int = FRAME) -> int:
    """Points that fit so many bytes, if they have so many 8-bit numbers each."""
    return room // (dimensions + 2 * np.dtype(np.uint16).itemsize + 3 * np.dtype(np.float32).itemsize)


def in_8_bits(vectors: Float[ndarray, "*n c"]) -> Int8[ndarray, "*n c"]:
    """Directions: each vector so long that its largest number is 127 or -127."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=1e-12)
    return (vectors * (127 / largest)).round().astype(np.int8)


def joined(parts: Sequence[MapPoints]) -> MapPoints:
    """The points of all frames, one part after the other."""
    first = parts[0]
    if any(part.detector != first.detector for part in parts):
        raise LocusError("the points were found by different detectors, or with other weights; build one map again")
    count, size = (np.concatenate([getattr(part, name) for part in parts]) for name in ("count", "size"))
    rows = [part.rows for part in parts]
    values = {
        name: np.concatenate([getattr(part, name)[of_part] for part, of_part in zip(parts, rows, strict=True)])
        for name in BY_POINT
    }
    return MapPoints(starts(count), count, size, **values, detector=first.detector)


def for_frames(parts: Sequence[tuple[int, MapPoints | None]]) -> MapPoints | None:
    """The points of maps put together, each given with its number of frames; frames of one without points get none."""
    known = next((points for _, points in parts if points is not None), None)
    if known is None:
        return None
    nothing = replace(known, start=np.zeros(1, np.int64), count=np.zeros(1, np.int32), size=np.ones((1, 2), np.int32))
    return joined([nothing.take(np.zeros(frames, int)) if points is None else points for frames, points in parts])
