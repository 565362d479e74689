"""What a scene's frames say about points of the world: which patches show each of them, and what they look like."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree

from locus.features.dense import SceneFeatures, StreamedFeatures
from locus.progress import track
from locus.rows import Rows, joined
from locus.scenes.patches import patch_centres


@dataclass(frozen=True, eq=False)
class ObservedPatches(Rows):
    """The patches of a scene that have a point of the world, one row each."""

    row: Int[ndarray, " n"]
    """Which of all patches of the scene it is, frames one after the other."""
    frame: Int[ndarray, " n"]
    point: Float[ndarray, "n 3"]
    towards_camera: Float[ndarray, "n 3"]
    """Unit vectors from the point to the camera that saw it."""
    seen_at: Float[ndarray, "n 2"]
    """Where in its image it is, (x, y) from 0 to 1."""
    colour: Float[ndarray, "n 3"]
    label: Int[ndarray, " n"]
    """Class ids of the scene, 0 where unlabelled."""
    frames: int
    """How many the scene has; some may have no such patch."""

    def features(self, seen: SceneFeatures, scale: int) -> Float[ndarray, "n c"]:
        return seen.features[scale].flatten(0, 2).numpy()[self.row]

    @classmethod
    def together(cls, parts: "Sequence[ObservedPatches]") -> "ObservedPatches":
        """The patches of all parts, whose frames are numbered alike."""
        return replace(joined(parts), frames=max(part.frames for part in parts))


def patches(seen: SceneFeatures, progress: bool = False) -> ObservedPatches:
    """The patches of a scene, with the colours and labels of its frames."""
    rows, columns = seen.grid
    known = np.isfinite(seen.points).all(axis=-1)
    towards = np.zeros_like(seen.points)
    colour = np.zeros_like(seen.points)
    label = np.zeros(known.shape, np.int32)
    for index in track(range(len(seen)), "colours and labels", len(seen), progress):
        frame = seen.frame(index)
        colour[index] = cv2.resize(frame.image, (columns, rows), interpolation=cv2.INTER_AREA)
        if (semantic := frame.semantic) is not None:
            y, x = (
                ((np.arange(n) + 0.5) * size / n).astype(int) for n, size in zip(seen.grid, semantic.shape, strict=True)
            )
            label[index] = semantic[np.ix_(y, x)]
        towards[index] = frame.world_from_camera[:3, 3] - seen.points[index]
    towards = towards[known]
    return ObservedPatches(
        row=np.flatnonzero(known),
        frame=np.nonzero(known)[0],
        point=seen.points[known],
        towards_camera=towards / np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-9),
        seen_at=np.broadcast_to(patch_centres(seen.grid, 1, 1), (len(seen), rows, columns, 2))[known],
        colour=colour[known],
        label=label[known],
        frames=len(seen),
    )


class ObservedWindows:
    """The windows of a scene, each with its patches, whose labels are columns of a map's classes, -1 for none.

    It can be gone through several times; what does not fit into memory is read again each time.
    """

    def __init__(self, seen: SceneFeatures | StreamedFeatures, classes: Sequence[str], progress: bool) -> None:
        self.seen, self.progress = seen, progress
        self.columns = {label.id: classes.index(label.name) for label in seen.scene.classes}
        self.kept = [(seen, self._patches(seen))] if isinstance(seen, SceneFeatures) else None

    def __iter__(self) -> Iterator[tuple[SceneFeatures, ObservedPatches]]:
        return iter(self.kept or ((window, self._patches(window)) for window in self.seen.windows()))

    def _patches(self, window: SceneFeatures) -> ObservedPatches:
        found = patches(window, self.progress)
        ids, inverse = np.unique(found.label, return_inverse=True)
        return replace(found, label=np.array([self.columns.get(int(each), -1) for each in ids], np.int32)[inverse])


def within(centres: Float[ndarray, "m 3"], points: Float[ndarray, "n 3"], radius: float) -> csr_matrix:
    """One row a centre, one column a point: 1 where the point lies within the radius of the centre."""
    found = KDTree(points).query_ball_point(centres, radius, return_sorted=True) if len(centres) else []
    counts = np.fromiter((len(each) for each in found), np.int64, len(centres))
    columns = np.concatenate([np.asarray(each, np.int64) for each in found]) if counts.sum() else np.zeros(0, np.int64)
    starts = np.concatenate([[0], counts.cumsum()])
    return csr_matrix((np.ones(len(columns), np.float32), columns, starts), shape=(len(centres), len(points)))
