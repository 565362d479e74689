"""Where was this image taken? Its patches are matched to a map's landmarks, and the camera posed to fit them.

If the map has points, its landmarks say where to look, and the image's keypoints are matched with the points there.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Float32, Num
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.geometry import Camera, invert, pose_error, transform
from locus.keypoints.fusion import PlacedKeypoints
from locus.landmarks import LandmarkMap
from locus.landmarks.map_index import MapIndex
from locus.model import LoCUS
from locus.scenes.consistency import camera_doubt
from locus.scenes.patches import patch_points_camera, points_at
from locus.scenes.reading import AnyImage, as_array
from locus.scenes.scene import check_aspect
from locus.tasks.absolute_pose import absolute_pose
from locus.tasks.consensus import rigid_consensus
from locus.tasks.landmark_matches import LandmarkMatches, likely_environments, match_landmarks
from locus.tasks.localize_points import PointMatches, confidence_of, found_by_points
from locus.tasks.placed_points import query_points
from locus.tasks.probability import Evidence, inflation, probability
from locus.tasks.uncertainty import absolute_covariance, deviations, rigid_covariance

ENVIRONMENTS = 3  # that are tried, those that the most patches find landmarks of
METRES = 1.5  # radii that a point may lie from its landmark: landmarks are a radius apart
PATCHES = 1.25  # patches that a landmark may be seen from where it should be
LANDMARKS = 6  # that must agree, or there is no pose
FARTHER = 1.25  # times: depth that is so much more or less than the map's is of another unit
LEAST_RGBD, LEAST_RGB = 0.18, 0.14  # confidence, below which an image is not here (docs/maps.md)


@dataclass(frozen=True, eq=False)
class Location:
    """An answer: where the camera is, or that it is not in the map."""

    environment: str | None
    """None if the image was not taken in any environment of the map."""
    world_from_camera: Float[ndarray, "4 4"] | None
    confidence: float
    """From 0 to 1: how far the similarity of the landmarks' matches that agree with their pose is above chance, times
    the root of their share; or, if that is more, what the number of points that agree says."""
    inliers: Bool[ndarray, " n"]
    """The matches of landmarks that agree with the pose that they give."""
    matches: LandmarkMatches
    """In the environment that fits best; `landmark` are rows of the map, of an index those of `MapIndex.near`."""
    reason: str
    """Why there is no answer, in one sentence; empty if there is one."""
    covariance: Float[ndarray, "6 6"] | None = None
    """Of the pose, rotation first, in radians and metres along the camera's axes: `locus.tasks.uncertainty`."""
    evidence: Evidence | None = None
    """What speaks for the pose; None without one."""

    @property
    def probability(self) -> float | None:
        """How likely the pose is right, to 0.1 m and 5°; None without one."""
        return None if self.evidence is None else probability(self.evidence)

    points: PointMatches | None = None
    """What the pose was found from instead of landmarks, if it was."""

    @property
    def how(self) -> Literal["landmarks", "points"]:
        """What the pose was found from."""
        return "landmarks" if self.points is None else "points"

    @property
    def agreeing(self) -> Bool[ndarray, " n"]:
        """Which of the matches, of landmarks or points, agree with the pose."""
        return self.inliers if self.points is None else self.points.inliers

    @property
    def here(self) -> bool:
        return self.environment is not None

    @property
    def sentence(self) -> str:
        """Where it is, or why there is no answer."""
        if self.world_from_camera is None:
            return self.reason
        x, y, z = self.world_from_camera[:3, 3]
        where = f"in {self.environment} at ({x:.2f}, {y:.2f}, {z:.2f}) m"
        if self.covariance is not None:
            where += f" ± {max(deviations(self.covariance)[0], 0.01):.2f} m"
        agree = f"{int(self.agreeing.sum())} of {len(self.agreeing)} matches with {self.how} agree"
        right = "" if self.probability is None else f", right to 0.1 m and 5° with probability {self.probability:.2f}"
        return f"{where}: {agree}{right}"

    def described(self, truth: Float[ndarray, "4 4"] | None = None) -> dict[str, Any]:
        """For machines; with the error of the pose, where the true `world_from_camera` is known."""
        answer: dict[str, Any] = {
            "environment": self.environment,
            "confidence": round(self.confidence, 4),
            "how": self.how,
            "matches": len(self.agreeing),
            "inliers": int(self.agreeing.sum()),
            "stuck": round(self.matches.stuck, 4),
            "reason": self.reason,
        }
        if self.world_from_camera is not None:
            answer["world_from_camera"] = self.world_from_camera.tolist()
            answer["covariance"] = None if self.covariance is None else self.covariance.tolist()
            answer["probability"] = None if self.probability is None else round(self.probability, 4)
            if truth is not None:
                metres, degrees = pose_error(self.world_from_camera, truth)
                answer["error"] = {"metres": round(metres, 4), "degrees": round(degrees, 3)}
        return answer


def localize(
    world: LandmarkMap | MapIndex,
    model: LoCUS,
    image: AnyImage,
    camera: Camera,
    depth: Num[ndarray, "height width"] | None = None,
    *,
    min_confidence: float | None = None,
    seed: int = 0,
) -> Location:
    """Where an image was taken, or that it was taken elsewhere.

    Args:
        world: The map, or an index of maps, of which the most likely are opened.
        model: The model the map was made with.
        image: An array of RGB bytes, a PIL image or a file.
        camera: The image's intrinsics.
        depth: z in metres, 0 where unknown. With it the pose is found from points in space, else from pixels.
        min_confidence: Less is no answer. By default 0.18 with depth and 0.14 without (docs/maps.md).
        seed: Of the random samples. Same seed, same answer.
    """
    world.check(model)
    image = as_array(image)
    check_aspect((camera.width, camera.height), (image.shape[1], image.shape[0]), "the calibration", "the image")
    if depth is not None and not np.issubdtype(depth.dtype, np.floating):
        raise LocusError(f"depth is in metres, a float32 array, not {depth.dtype}; divide millimetres by 1000")
    if why := camera_doubt(camera):
        warnings.warn(f"camera {camera}: {why}", stacklevel=2)
    depth = None if depth is None else depth.astype(np.float32)
    features = model.features(image).cpu()
    if isinstance(world, MapIndex):
        world = world.near(features)
    placed = query_points(world, image, features)
    return localize_features(world, features, camera, depth, placed, min_confidence=min_confidence, seed=seed)


def localize_features(
    world: LandmarkMap,
    features: Float[Tensor, "scales rows columns c"],
    camera: Camera,
    depth: Float32[ndarray, "height width"] | None = None,
    placed: PlacedKeypoints | None = None,
    *,
    min_confidence: float | None = None,
    seed: int = 0,
) -> Location:
    """The same from an image's features, and, for a map with points, its keypoints: `query_points`."""
    if len(features) != len(world.radii):
        raise LocusError(f"the features have {len(features)} scales, the map {len(world.radii)}")
    grid = (features.shape[1], features.shape[2])
    points = None
    if depth is not None:
        if depth.shape != (camera.height, camera.width):
            raise LocusError(
                f"the depth map is {depth.shape[1]}×{depth.shape[0]}, the camera {camera.width}×{camera.height}"
            )
        points = patch_points_camera(depth, camera, grid)[0].reshape(-1, 3)
    least = min_confidence if min_confidence is not None else (LEAST_RGB if points is None else LEAST_RGBD)
    order = likely_environments(world, features)[:ENVIRONMENTS] if len(world.environments) > 1 else [0]
    tried = [_in_environment(world, each, features, camera, points, seed) for each in order]
    first = max(range(len(tried)), key=lambda each: (tried[each].confidence, tried[each].inliers.sum()))
    best = tried[first]
    if placed is not None and world.points is not None:
        best = _by_points(best, world, order[first], features, camera, depth, placed, seed)
    if not best.reason and best.confidence >= least:
        return best
    reason = best.reason or (
        f"not here: the best pose, in {best.environment}, has a confidence of {best.confidence:.2f}, "
        f"and {least:.2f} is needed"
    )
    if depth is not None and least > 0:
        by_colour = localize_features(world, features, camera, None, placed, seed=seed)
        reason += _depth_doubt(by_colour, world, camera, depth)
    nothing = {"environment": None, "world_from_camera": None, "covariance": None, "evidence": None}
    return replace(best, **nothing, reason=reason)


def _depth_doubt(
    location: Location, world: LandmarkMap, camera: Camera, depth: Float32[ndarray, "height width"]
) -> str:
    """How much farther than in the map things are by the depth of an image that colour alone finds, if they are."""
    if location.world_from_camera is None:
        return ""
    points, agree = location.points, location.agreeing
    pixels = (location.matches if points is None else points).pixel[agree]
    positions = world.landmarks.position[location.matches.landmark[agree]] if points is None else points.position[agree]
    expected = transform(invert(location.world_from_camera), positions)[:, 2]
    known = np.isfinite(given := points_at(depth, camera, pixels)[:, 2])
    if not known.any() or 1 / FARTHER < (ratio := float(np.median(given[known] / expected[known]))) < FARTHER:
        return ""
    found = f"; by colour alone it is in {location.environment}, but its depth is {ratio:.3g} times what the map has"
    return f"{found}: is it in metres?"


def _by_points(
    location: Location,
    world: LandmarkMap,
    environment: int,
    features: Float[Tensor, "scales rows columns c"],
    camera: Camera,
    depth: Float32[ndarray, "height width"] | None,
    placed: PlacedKeypoints,
    seed: int,
) -> Location:
    """The answer of the environment's points, if enough of them agree; else that of its landmarks."""
    found = found_by_points(world.environment(environment), features, camera, depth, placed, seed)
    if found is None:
        return location
    pose, points = found
    confidence = confidence_of(points)
    if confidence < (LEAST_RGB if depth is None else LEAST_RGBD):
        return location
    inliers, size = points.inliers, (camera.width, camera.height)
    covariance = absolute_covariance(points.pixel[inliers], points.position[inliers], camera, pose)
    kind = "points 2d-3d" if depth is None else "points 3d-3d"
    return replace(
        location,
        environment=world.environments[environment],
        world_from_camera=pose,
        confidence=max(location.confidence, confidence),
        reason="",
        covariance=inflation(kind) * covariance,
        evidence=Evidence.of(kind, inliers, points.keypoint, points.pixel, size, covariance),
        points=points,
    )


def _in_environment(
    world: LandmarkMap,
    environment: int,
    features: Float[Tensor, "scales rows columns c"],
    camera: Camera,
    points: Float[ndarray, "patches 3"] | None,
    seed: int,
) -> Location:
    """The best pose in one environment, however bad, by the finest scale, whose landmarks are the most exact."""
    finest = int(np.argmin(world.radii))
    local = world.environment(environment)
    matches = match_landmarks(local, features[finest], (camera.width, camera.height), finest)
    if points is not None:
        known = np.isfinite(points[matches.patch]).all(axis=1)
        matches = matches.take(known)
    positions = local.landmarks.position[matches.landmark].astype(np.float64)
    if points is not None:
        found = rigid_consensus(points[matches.patch], positions, METRES * world.radii[finest], seed)
    else:
        patch = max(camera.width / features.shape[2], camera.height / features.shape[1])
        found = absolute_pose(matches.pixel, positions, camera, PATCHES * patch, seed)
    rows = np.flatnonzero(world.landmarks.environment == environment)
    matches = replace(matches, landmark=rows[matches.landmark])
    agreed = len(np.unique(matches.landmark[found[1]])) if found is not None else 0
    if found is None or agreed < LANDMARKS:
        nobody = np.zeros(len(matches), bool)
        reason = f"not here: {len(matches)} matches agree on no pose (on {agreed} landmarks, {LANDMARKS} must)"
        return Location(None, None, 0.0, nobody, matches, reason)
    pose, inliers = found
    chance = float(local.frames.chance[:, finest].mean())
    above = (float(matches.similarity[inliers].mean()) - chance) / max(1 - chance, 1e-6)
    above = min(max(above, 0.0), 1.0)
    confidence = above * float(inliers.mean()) ** 0.5
    spots, size = matches.landmark, (camera.width, camera.height)
    if points is not None:
        seen = points[matches.patch[inliers]]
        covariance = rigid_covariance(seen, positions[inliers], seen[:, 2], pose, spots[inliers])
    else:
        covariance = absolute_covariance(matches.pixel[inliers], positions[inliers], camera, pose, spots[inliers])
    kind = "landmarks 2d-3d" if points is None else "landmarks 3d-3d"
    evidence = Evidence.of(kind, inliers, spots, matches.pixel, size, covariance)
    name = world.environments[environment]
    return Location(name, pose, confidence, inliers, matches, "", inflation(kind) * covariance, evidence)
