"""What a map holds of its landmarks and of the frames it was made from: arrays with one row each."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int8, Int32, UInt16
from numpy import ndarray

from locus.rows import Rows

MEANS = ("position", "mean", "seen_from", "seen_at", "colour")  # of a landmark's patches


@dataclass(frozen=True, eq=False)
class Landmarks(Rows):
    """Means are over `patches` patches, those near a landmark when their frame came; so more can be added to them."""

    environment: Int32[ndarray, " n"]
    """Index into the map's environments."""
    scale: Int32[ndarray, " n"]
    position: Float32[ndarray, "n 3"]
    """Mean point of its patches, metres in its environment's world."""
    radius: Float32[ndarray, " n"]
    mean: Float32[ndarray, "n dimension"]
    """Mean feature of its patches; at unit length, its embedding."""
    score: Float32[ndarray, " n"]
    """Smooth-AP_j (eq. 3), over the frames from which the landmark was chosen."""
    patches: Int32[ndarray, " n"]
    views: Int32[ndarray, " n"]
    """Frames that show it, as the map's sightings say."""
    seen_from: Float32[ndarray, "n 3"]
    """Mean unit vector towards the cameras that saw it."""
    seen_at: Float32[ndarray, "n 2"]
    """Mean position in the images, (x, y) from 0 to 1: a match at the same position may only repeat it."""
    colour: Float32[ndarray, "n 3"]
    """Mean RGB, 0 to 255."""
    votes: Int32[ndarray, "n classes"]
    """Patches of each class of the map."""

    @classmethod
    def none(cls, dimension: int) -> "Landmarks":
        """No landmarks yet, with features of this dimension."""
        shapes = declared(cls, dimension=dimension, classes=0).items()
        return cls(**{name: np.zeros((0, *shape), kind) for name, (kind, shape) in shapes})

    @property
    def embedding(self) -> Float32[ndarray, "n c"]:
        return self.mean / np.maximum(np.linalg.norm(self.mean, axis=1, keepdims=True), 1e-12)

    @property
    def worth(self) -> Float32[ndarray, " n"]:
        """What landmarks are chosen by: Smooth-AP_j, less where there are few views, of which two can agree by luck.

        Measured in docs/maps.md: so chosen, they are found again more often than by the score alone.
        """
        return (self.score * (self.views - 1) / (self.views + 1)).astype(np.float32)

    @property
    def normal(self) -> Float32[ndarray, "n 3"]:
        """The axis of the viewing cone."""
        return self.seen_from / np.maximum(np.linalg.norm(self.seen_from, axis=1, keepdims=True), 1e-12)

    @property
    def cone(self) -> Float32[ndarray, " n"]:
        """Half the opening angle, in degrees, of the cone that views were evenly spread in, had they the same mean."""
        # Unit vectors evenly spread in a cone of half-angle a have a mean of length (1 + cos a) / 2.
        length = np.linalg.norm(self.seen_from, axis=1)
        return np.degrees(np.arccos((2 * length - 1).clip(-1, 1)))

    @property
    def label(self) -> Int32[ndarray, " n"]:
        """Index of the class most patches are of; -1 where none is labelled."""
        if not self.votes.shape[1]:
            return np.full(len(self), -1, np.int32)
        return np.where(self.votes.any(axis=1), self.votes.argmax(axis=1), -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Frames(Rows):
    """The frames a map was made from."""

    environment: Int32[ndarray, " f"]
    world_from_camera: Float64[ndarray, "f 4 4"]
    chance: Float32[ndarray, "f scales"]
    """Mean similarity of its patches to the most similar landmark of its environment that is *not* where they are: what
    an image of another environment would reach."""
    surface: UInt16[ndarray, "f 60 80"]
    """Coarse depth in millimetres, 0 where it is unknown; see `locus.landmarks.coarse_depth`."""
    lens: Float32[ndarray, "f 4"]
    """fx, fy, cx, cy of that grid."""
    kind: Int8[ndarray, "f 15 20 64"]
    """Kinds of what is seen (`locus.features.kinds`), on a coarser grid, 0 where they are unknown."""

    @classmethod
    def none(cls, scales: int) -> "Frames":
        """No frames yet."""
        shapes = declared(cls, scales=scales).items()
        return cls(**{name: np.zeros((0, *shape), kind) for name, (kind, shape) in shapes})


def declared(rows: "type[Landmarks | Frames]", **sizes: int) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Of each array: its type, and its shape beside the rows; read off the annotations above."""
    kinds: dict[str, Any] = {field.name: field.type for field in fields(rows)}
    return {
        name: (kind.dtypes[0], tuple(sizes[size] if size in sizes else int(size) for size in kind.dim_str.split()[1:]))
        for name, kind in kinds.items()
    }
