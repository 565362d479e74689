"""Where was this image taken? Its patches are matched to a map's landmarks, and the camera posed to fit them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import poselib
from jaxtyping import Bool, Float, Float32, Int, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.geometry import Camera, invert, pose_error
from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from locus.scenes.patches import patch_centres, patch_points_camera
from locus.scenes.scene import check_aspect
from locus.tasks.consensus import Motion, rigid_consensus
from locus.tasks.five_point import poselib_camera
from locus.tasks.matching import stuck_mask

ENVIRONMENTS = 3  # that are tried, those that the most patches find landmarks of
METRES = 1.5  # radii that a point may lie from its landmark: landmarks are a radius apart
PATCHES = 1.25  # patches that a landmark may be seen from where it should be
LANDMARKS = 6  # that must agree, or there is no pose
ITERATIONS = 2000
LEAST_RGBD, LEAST_RGB = 0.18, 0.14  # confidence, below which an image is not here (docs/maps.md)


@dataclass(frozen=True, eq=False)
class LandmarkMatches:
    """Patches of an image, each with its most similar landmark."""

    patch: Int[ndarray, " n"]
    """Row-major in the grid."""
    landmark: Int[ndarray, " n"]
    similarity: Float[ndarray, " n"]
    pixel: Float[ndarray, "n 2"]
    stuck_mask: Bool[ndarray, " n"]
    """Whether it sits (nearly) where its landmark was in the map's images: `locus.tasks.matching.stuck_mask`."""

    def __len__(self) -> int:
        return len(self.patch)

    @property
    def stuck(self) -> float:
        """The share of stuck matches. A share far above that of random positions shows a bias of the features."""
        return float(self.stuck_mask.mean()) if len(self) else 0.0


@dataclass(frozen=True, eq=False)
class Location:
    """An answer: where the camera is, or that it is not in the map."""

    environment: str | None
    """None if the image was not taken in any environment of the map."""
    world_from_camera: Float[ndarray, "4 4"] | None
    confidence: float
    """From 0 to 1: how far the similarity of the matches that agree with the pose is above chance, times the root of
    their share."""
    inliers: Bool[ndarray, " n"]
    matches: LandmarkMatches
    """In the environment that fits best; `landmark` are rows of the map."""
    reason: str
    """Why there is no answer, in one sentence; empty if there is one."""

    @property
    def here(self) -> bool:
        return self.environment is not None

    @property
    def sentence(self) -> str:
        """Where it is, or why there is no answer."""
        if self.world_from_camera is None:
            return self.reason
        x, y, z = self.world_from_camera[:3, 3]
        agree = f"{int(self.inliers.sum())} of {len(self.matches)} matches agree"
        return f"in {self.environment} at ({x:.2f}, {y:.2f}, {z:.2f}) m: {agree}, confidence {self.confidence:.2f}"

    def described(self, truth: Float[ndarray, "4 4"] | None = None) -> dict[str, Any]:
        """For machines; with the error of the pose, where the true `world_from_camera` is known."""
        answer: dict[str, Any] = {
            "environment": self.environment,
            "confidence": round(self.confidence, 4),
            "matches": len(self.matches),
            "inliers": int(self.inliers.sum()),
            "stuck": round(self.matches.stuck, 4),
            "reason": self.reason,
        }
        if self.world_from_camera is not None:
            answer["world_from_camera"] = self.world_from_camera.tolist()
            if truth is not None:
                metres, degrees = pose_error(self.world_from_camera, truth)
                answer["error"] = {"metres": round(metres, 4), "degrees": round(degrees, 3)}
        return answer


def match_landmarks(
    world: LandmarkMap, features: Float[Tensor, "rows columns c"], size: tuple[int, int], scale: int = 0
) -> LandmarkMatches:
    """Every patch of an image of `size` (width, height) with its most similar landmark of one scale."""
    rows, columns = features.shape[:2]
    found = world.search(features.flatten(0, 1), 1, scale)
    similarity, landmark = (each.ravel() for each in found)  # empty if the map has no landmark of the scale
    patch = np.arange(len(landmark))
    at = patch_centres((rows, columns), 1, 1).reshape(-1, 2)[patch]
    stuck = stuck_mask(world.landmarks.seen_at[landmark], at, (rows, columns))
    return LandmarkMatches(patch, landmark, similarity, at * size, stuck)


def likely_environments(world: LandmarkMap, features: Float[Tensor, "scales rows columns c"]) -> list[int]:
    """The environments of a map, the likeliest first: by how many patches, of all scales, find a landmark in each."""
    count = np.zeros(len(world.environments))
    for scale, of_scale in enumerate(features):
        landmark = world.search(of_scale.flatten(0, 1), 1, scale)[1]
        count += np.bincount(world.landmarks.environment[landmark.ravel()], minlength=len(count))
    return np.argsort(-count, kind="stable").tolist()


def localize(
    world: LandmarkMap,
    model: LoCUS,
    image: UInt8[ndarray, "height width 3"],
    camera: Camera,
    depth: Float32[ndarray, "height width"] | None = None,
    *,
    min_confidence: float | None = None,
    seed: int = 0,
) -> Location:
    """Where an image was taken, or that it was taken elsewhere.

    Args:
        world: The map.
        model: The model the map was made with.
        image: RGB.
        camera: The image's intrinsics.
        depth: z in metres, 0 where unknown. With it the pose is found from points in space, else from pixels.
        min_confidence: Less is no answer. By default 0.18 with depth and 0.14 without (docs/maps.md).
        seed: Of the random samples. Same seed, same answer.
    """
    world.check(model)
    check_aspect((camera.width, camera.height), (image.shape[1], image.shape[0]), "the calibration", "the image")
    features = model.features(image).cpu()
    return localize_features(world, features, camera, depth, min_confidence=min_confidence, seed=seed)


def localize_features(
    world: LandmarkMap,
    features: Float[Tensor, "scales rows columns c"],
    camera: Camera,
    depth: Float32[ndarray, "height width"] | None = None,
    *,
    min_confidence: float | None = None,
    seed: int = 0,
) -> Location:
    """The same from an image's features."""
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
    best = max(tried, key=lambda location: (location.confidence, location.inliers.sum()))
    if best.reason or best.confidence >= least:
        return best
    reason = (
        f"not here: the best pose, in {best.environment}, has a confidence of {best.confidence:.2f}, "
        f"and {least:.2f} is needed"
    )
    return replace(best, environment=None, world_from_camera=None, reason=reason)


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
        matches = LandmarkMatches(**{name: values[known] for name, values in vars(matches).items()})
    positions = local.landmarks.position[matches.landmark].astype(np.float64)
    if points is not None:
        found = rigid_consensus(points[matches.patch], positions, METRES * world.radii[finest], seed)
    else:
        patch = max(camera.width / features.shape[2], camera.height / features.shape[1])
        found = _from_pixels(matches.pixel, positions, camera, PATCHES * patch, seed)
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
    return Location(world.environments[environment], pose, above * float(inliers.mean()) ** 0.5, inliers, matches, "")


def _from_pixels(
    pixels: Float[ndarray, "n 2"], positions: Float[ndarray, "n 3"], camera: Camera, error: float, seed: int
) -> Motion | None:
    if len(pixels) < 4:
        return None
    options = {"max_reproj_error": error, "max_iterations": ITERATIONS, "seed": seed}
    pose, report = poselib.estimate_absolute_pose(pixels, positions, poselib_camera(camera), options, {})
    camera_from_world = np.vstack([pose.Rt, [0, 0, 0, 1]])
    inliers = np.asarray(report["inliers"], bool)
    if not np.isfinite(camera_from_world).all() or not inliers.any():
        return None
    return invert(camera_from_world), inliers
