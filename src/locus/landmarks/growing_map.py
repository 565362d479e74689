"""A map that takes frames one by one, as a robot sends them, at a cost that does not grow with the map.

What a frame shows is looked for among the landmarks near its patches alone. New landmarks are chosen every `BLOCK`
frames, among the patches of these frames and earlier ones nearby that wait for another frame to show their spot.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree

from locus.features.dense import SceneFeatures, frame_features
from locus.keypoints.fusion import point_scales
from locus.landmarks.arrays import Frames
from locus.landmarks.chance import chance
from locus.landmarks.coarse_depth import coarse_depth, coarse_kinds
from locus.landmarks.describe import by_frame, choose, observed
from locus.landmarks.growing_landmarks import GrowingLandmarks
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.observations import ObservedPatches, ObservedWindows, within
from locus.landmarks.points import FramePoints, MapPoints, for_frames
from locus.landmarks.waiting import Described, WaitingPatches
from locus.model import LoCUS
from locus.scenes import Frame

if TYPE_CHECKING:
    from locus.keypoints import Detector

BLOCK = 16  # frames after which new landmarks are chosen
SAMPLED = 8  # patches of a frame that may be kept to measure the chance level,
SAMPLE = 2048  # and of all frames
SURFACES = ("surface", "lens", "kind")  # what is kept of a frame to find changes with


class GrowingMap:
    """The map of one environment while frames are added to it; `map` gives what it is by now."""

    def __init__(self, world: LandmarkMap, model: LoCUS, detector: "Detector | None" = None) -> None:
        """Begin with a map, such as `LandmarkMap.empty`. With a `detector`, frames get points."""
        world.check(model)
        if len(world.environments) != 1:
            raise MapError(f"one environment grows at a time, and this map has {', '.join(world.environments)}")
        self.model, self.detector, self._begun = model, detector, world
        self.landmarks = GrowingLandmarks(world.landmarks, world.sightings, world.radii)
        self.names, self.poses = list(world.frame_names), list(world.frames.world_from_camera)
        self._known, self._classes = set(self.names), world.classes
        self._surfaces = list(zip(*(getattr(world.frames, name) for name in SURFACES), strict=True))
        self._points = [None if world.points is None else world.points.take(np.array([n])) for n in range(len(self))]
        self._block: list[list[Described]] = []
        self._waiting = [WaitingPatches(radius) for radius in world.radii]
        self._sample = _Sample(model.dimension)

    def __len__(self) -> int:
        """How many frames it has."""
        return len(self.names)

    def update(self, frames: Iterable[Frame] | SceneFeatures) -> None:
        """Add frames, one after the other; or a scene's frames if their features are known."""
        if isinstance(frames, SceneFeatures):
            for row in range(len(frames)):
                self._add(frames.take([row]))
        else:
            for frame in frames:
                self._add(frame_features(self.model, frame, self._begun.environments[0]))

    def points(self, frame: int) -> FramePoints | None:
        """The points of a frame; None without a detector."""
        found = self._points[frame]
        return None if found is None else found.frame(0)

    def _add(self, one: SceneFeatures) -> None:
        frame, number = one.frame(0), len(self)
        if frame.name in self._known:
            raise MapError(f"frame {frame.name} is in the map already; what it shows would count twice")
        classes = tuple(dict.fromkeys([*self._classes, *(label.name for label in one.scene.classes)]))
        if classes != self._classes:
            self._classes = classes
            self.landmarks.widen(len(classes))
        ((_, found),) = ObservedWindows(one, classes, progress=False)
        found = replace(found, frame=np.full(len(found.row), number), frames=number + 1)
        described = [(found, found.features(one, scale)) for scale in range(len(self.model.radii))]
        points = None
        if self.detector is not None:
            points = MapPoints.of_scene(one, self.detector, point_scales(self.model.radii))
        self.names.append(frame.name)
        self._known.add(frame.name)
        self.poses.append(frame.world_from_camera)
        self._surfaces.append((*coarse_depth(frame), coarse_kinds(one, 0)))
        self._points.append(points)
        for scale, of_scale in enumerate(described):
            self._see(scale, *of_scale)
        self._sample.add(found.point, np.stack([features for _, features in described]))
        self._block.append(described)
        if len(self._block) == BLOCK:
            self._choose()

    def _see(self, scale: int, found: ObservedPatches, features: Float[ndarray, "n c"]) -> None:
        """Add what a frame shows of the landmarks near its patches to them."""
        rows = self.landmarks.near(scale, found.point)
        near = within(self.landmarks.position(rows), found.point, self.model.radii[scale])
        some = np.flatnonzero(np.diff(near.indptr))
        near = csr_matrix(near[some])
        self.landmarks.see(rows[some], observed(near, found, features, len(self._classes)), by_frame(near, found))

    def _choose(self) -> None:
        """New landmarks, where frames of the block and earlier ones show a spot that has none."""
        for scale, radius in enumerate(self.model.radii):
            parts = [described[scale] for described in self._block]
            parts += self._waiting[scale].taken(np.concatenate([found.point for found, _ in parts]))
            found = ObservedPatches.together([part[0] for part in parts])
            features = np.concatenate([part[1] for part in parts])
            if not len(features):
                continue
            taken = self.landmarks.position(self.landmarks.near(scale, found.point))
            new = choose(self.model, scale, found, features, len(self._classes), taken, None, 1.0, False)
            self.landmarks.append(new, by_frame(within(new.position, found.point, radius), found))
            free = np.flatnonzero(KDTree(np.concatenate([taken, new.position])).query(found.point)[0] >= radius)
            self._waiting[scale].add(found.take(free), features[free])
        self._block = []

    def map(self) -> LandmarkMap:
        """The map by now. This takes as long as the map is large, so it is not for every frame."""
        if self._block:
            self._choose()
        begun, number, scales = self._begun, len(self), range(len(self.model.radii))
        if number == len(begun.frames):
            return begun
        landmarks, sightings = self.landmarks.now(number)
        of_scale = [landmarks.take(np.flatnonzero(landmarks.scale == scale)) for scale in scales]
        level = np.array([chance(of_scale[scale], *self._sample.of(scale))[0] for scale in scales], np.float32)
        points = for_frames([(1, each) for each in self._points])
        added = number - len(begun.frames)
        made_from = {"scene": begun.environments[0], "format": "frames", "frames": added}
        made_from["points"] = 0 if points is None else int(points.count[-added:].sum())
        return replace(
            begun,
            landmarks=landmarks,
            frames=Frames(
                environment=np.zeros(number, np.int32),
                world_from_camera=np.stack(self.poses),
                chance=np.tile(level, (number, 1)),
                **{
                    name: np.stack(values)
                    for name, values in zip(SURFACES, zip(*self._surfaces, strict=True), strict=True)
                },
            ),
            sightings=sightings,
            frame_names=tuple(self.names),
            classes=self._classes,
            provenance={**begun.provenance, "scenes": [*begun.provenance.get("scenes", []), made_from]},
            points=points,
        )


class _Sample:
    """Patches of all frames, each as likely kept, by which the chance level is measured when a map is asked for."""

    def __init__(self, dimension: int) -> None:
        self._dimension, self._random, self._offered = dimension, np.random.default_rng(0), 0
        self._kept: list[tuple[ndarray, ndarray]] = []

    def add(self, points: Float[ndarray, "n 3"], features: Float32[ndarray, "scales n c"]) -> None:
        for row in self._random.permutation(len(points))[:SAMPLED]:
            self._offered += 1
            one = points[row], features[:, row]
            place = int(self._random.integers(self._offered))
            if len(self._kept) < SAMPLE:
                self._kept.append(one)
            elif place < SAMPLE:
                self._kept[place] = one

    def of(self, scale: int) -> tuple[Float[ndarray, "n 3"], Float32[ndarray, "n c"], csr_matrix]:
        """Points, features of a scale, and that all count for one and the same frame."""
        points = np.array([point for point, _ in self._kept], np.float32).reshape(-1, 3)
        features = np.array([each[scale] for _, each in self._kept], np.float32).reshape(-1, self._dimension)
        return points, features, csr_matrix(np.ones((1, len(points))))
