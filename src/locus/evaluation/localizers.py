"""Ways to localize, which `locus eval localization` compares: maps of half the frames, and answers about the others."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from locus.evaluation.methods import ModelMethod
from locus.evaluation.true_map import TrueMap
from locus.features.dense import SceneFeatures
from locus.geometry import transform
from locus.keypoints import Detector, Glue, Keypoints, detector, glue
from locus.keypoints.fusion import PlacedKeypoints, point_scales
from locus.landmarks import LandmarkMap
from locus.model import load
from locus.scenes.patches import patch_points, points_at
from locus.tasks.depth_surfaces import on_surfaces
from locus.tasks.landmark_matches import likely_environments
from locus.tasks.localize import Location, localize_features
from locus.tasks.localize_points import PointMatches, confidence_of, pose_of_points, similar_frames
from locus.tasks.placed_points import placed_points, point_detector
from locus.tasks.sparse_depth import triangulated

WITH_DEPTH = "with depth"
ALIKED = 1024  # keypoints of an image


class MapWay(ModelMethod):
    """A model whose maps are made or asked in a way of their own."""

    way: str

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}, {self.way}", load(name))

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self.way}"


class LandmarksAlone(MapWay):
    """A model's landmarks without points."""

    way = "landmarks alone"


class Sparse(MapWay):
    """A model's landmarks and points, in a map that is made without depth: from colour and poses alone."""

    way = "map without depth"


class Hloc(ModelMethod):
    """The way of hloc: a model names the frames, ALIKED and LightGlue match them."""

    def __init__(self, name: str) -> None:
        super().__init__(f"ALIKED + LightGlue, frames of {name}", load(name))
        self.detector: Detector = detector("aliked", ALIKED)
        self.glue: Glue = glue("aliked")

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} hloc {self.detector.fingerprint} {self.glue.fingerprint}"


def ask(
    world: LandmarkMap,
    seen: SceneFeatures,
    row: int,
    kind: str,
    seed: int = 0,
    placed: PlacedKeypoints | None = None,
) -> Location:
    """Where a frame was taken, however unsure; an answer is what reaches the least confidence of its kind."""
    frame = seen.frame(row)
    depth = frame.depth if kind == WITH_DEPTH else None
    return localize_features(world, seen.features[:, row], frame.camera, depth, placed, min_confidence=0.0, seed=seed)


class LandmarkLocalizer:
    """By landmarks alone."""

    def __init__(self, method: ModelMethod) -> None:
        self.model = method.model

    def build(self, seen: SceneFeatures) -> LandmarkMap:
        """The map of some frames."""
        return LandmarkMap.build(self.model, seen)

    def ask(self, world: LandmarkMap, seen: SceneFeatures, row: int, kind: str, seed: int) -> Location:
        """Where another frame was taken, however unsure."""
        return ask(world, seen, row, kind, seed)


class PointLocalizer(LandmarkLocalizer):
    """By landmarks and points. The keypoints of an image are found once."""

    def __init__(self, method: ModelMethod) -> None:
        super().__init__(method)
        self._placed: dict[tuple[str, int], PlacedKeypoints] = {}

    def build(self, seen: SceneFeatures) -> LandmarkMap:
        return LandmarkMap.build(self.model, seen, detector=point_detector())

    def ask(self, world: LandmarkMap, seen: SceneFeatures, row: int, kind: str, seed: int) -> Location:
        return ask(world, seen, row, kind, seed, self.placed(seen, row))

    def placed(self, seen: SceneFeatures, row: int) -> PlacedKeypoints:
        """Our keypoints of a frame."""
        key = seen.scene.name, seen.indices[row]
        if key not in self._placed:
            self._placed[key] = placed_points(seen.frame(row).image, seen.features[point_scales(self.model.radii), row])
        return self._placed[key]


class SparseLocalizer(PointLocalizer):
    """The depth of the frames that make the map is found from these frames; queries take no part in it."""

    def build(self, seen: SceneFeatures) -> LandmarkMap:
        part = replace(seen.scene, sources=[seen.scene.sources[index] for index in seen.indices])
        placed = [self.placed(seen, row) for row in range(len(seen))]
        found = on_surfaces(part, triangulated(part, placed))
        points = np.stack([patch_points(frame, seen.grid)[0].astype(np.float32) for frame in found])
        return super().build(SceneFeatures(found, list(range(len(seen))), points, seen.features))


class HlocLocalizer(PointLocalizer):
    """Other keypoints and another matcher: in the frames that ours would match, with the same solver."""

    def __init__(self, method: Hloc) -> None:
        super().__init__(method)
        self._detector, self._glue = method.detector, method.glue
        self._mapped: dict[tuple[str, str], tuple[Keypoints, Float[ndarray, "n 3"]]] = {}
        self._matched: dict[tuple[LandmarkMap, str, str], tuple[PointMatches, Float[ndarray, "n 3"]]] = {}

    def build(self, seen: SceneFeatures) -> LandmarkMap:
        for row in range(len(seen)):
            frame, (found, points) = seen.frame(row), self._keypoints(seen, row)
            known = np.flatnonzero(np.isfinite(points).all(axis=1))
            world = transform(frame.world_from_camera, points[known])
            self._mapped[seen.scene.name, frame.name] = found[known], world
        return super().build(seen)

    def ask(self, world: LandmarkMap, seen: SceneFeatures, row: int, kind: str, seed: int) -> Location:
        number = likely_environments(world, seen.features[:, row])[0]
        local, frame = world.environment(number), seen.frame(row)
        matches, points = self._matches(local, seen, row)
        found = pose_of_points(
            matches.pixel, matches.position, frame.camera, points if kind == WITH_DEPTH else None, seed
        )
        location = ask(local, seen, row, kind, seed)
        if found is None:
            return replace(location, environment=None, world_from_camera=None, confidence=0.0)
        matches = replace(matches, inliers=found[1])
        answer = {"environment": local.environments[0], "world_from_camera": found[0], "points": matches}
        # The covariance and evidence of the location are those of landmarks.
        return replace(location, **answer, confidence=confidence_of(matches), covariance=None, evidence=None)

    def _matches(self, local: LandmarkMap, seen: SceneFeatures, row: int) -> tuple[PointMatches, Float[ndarray, "n 3"]]:
        """A query's matches, made once, and the points of its keypoints in the camera's frame."""
        key = local, seen.scene.name, seen.frame(row).name
        if key not in self._matched:
            query, points = self._keypoints(seen, row)
            parts = []
            for number, _ in similar_frames(local, seen.features[:, row], self.placed(seen, row)):
                there, positions = self._mapped[local.environments[0], local.frame_names[number]]
                pairs, likely = self._glue.match(query, there)
                parts.append((number, pairs[:, 0], positions[pairs[:, 1]], likely))
            matches = PointMatches.pooled(query.pixels, parts)
            self._matched[key] = matches, points[matches.keypoint]
        return self._matched[key]

    def _keypoints(self, seen: SceneFeatures, row: int) -> tuple[Keypoints, Float[ndarray, "n 3"]]:
        """Of a frame, and their points in its camera's frame, NaN where there is none."""
        frame = seen.frame(row)
        found = self._detector.detect(frame.image)
        return found, points_at(frame.depth, frame.camera, found.pixels)


def localizer(method: ModelMethod) -> LandmarkLocalizer:
    """How a method localizes: with points, unless it is asked for landmarks alone, or is not about images."""
    if isinstance(method, Hloc):
        return HlocLocalizer(method)
    if isinstance(method, Sparse):
        return SparseLocalizer(method)
    return LandmarkLocalizer(method) if isinstance(method, LandmarksAlone | TrueMap) else PointLocalizer(method)
