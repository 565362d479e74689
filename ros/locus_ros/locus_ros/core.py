"""Poses of a stream of images in a map, with covariances as ROS wants them. Nothing here knows ROS.

ROS writes the covariance of a pose as 6×6 numbers in the order x, y, z, rotations about the fixed x, y and z axes, all
along the axes of the frame that the pose is given in. LoCUS has the rotation first, and both along the camera's axes:
the true pose is `world_from_camera @ exp(ξ)` (`locus.tasks.uncertainty`).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, UInt8
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.errors import LocusError
from locus.geometry import Camera
from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from locus.scenes.lens import Lens
from locus.scenes.scene import check_aspect
from locus.tasks.localize import Location

TOGETHER = 15_000_000  # nanoseconds between an image and its depth, at most: half of what lies between two images


@dataclass(frozen=True, eq=False)
class StampedPose:
    """Where the camera was when an image was taken: its optical frame, in the map's."""

    stamp: int
    """Nanoseconds, the image's."""
    position: Float[ndarray, " 3"]
    """x, y, z in metres."""
    quaternion: Float[ndarray, " 4"]
    """x, y, z, w."""
    covariance: Float[ndarray, "6 6"]
    """6×6, as ROS orders it."""
    probability: float | None
    """That the pose is right to 0.1 m and 5°."""
    location: Location

    @classmethod
    def of(cls, stamp: int, location: Location) -> "StampedPose":
        pose, covariance = location.world_from_camera, location.covariance
        assert pose is not None
        assert covariance is not None
        quaternion = Rotation.from_matrix(pose[:3, :3]).as_quat()
        ordered = ros_covariance(pose, covariance)
        return cls(stamp, pose[:3, 3], quaternion, ordered, location.probability, location)


def ros_covariance(
    world_from_camera: Float[ndarray, "4 4"], covariance: Float[ndarray, "6 6"]
) -> Float[ndarray, "6 6"]:
    """A covariance of LoCUS, as ROS orders it.

    With ξ = (ω, v), the position moves by R v, and the rotation becomes R exp(ω) = exp(R ω) R: by R ω about axes that
    do not turn with the camera.
    """
    rotation = world_from_camera[:3, :3]
    jacobian = np.zeros((6, 6))
    jacobian[:3, 3:], jacobian[3:, :3] = rotation, rotation
    return jacobian @ covariance @ jacobian.T


@dataclass(frozen=True, eq=False)
class LandmarkMarkers:
    """What is drawn of a map: its finest landmarks."""

    positions: Float[ndarray, "n 3"]
    colours: Float[ndarray, "n 3"]
    """RGB, 0 to 1."""
    diameter: float

    @classmethod
    def of(cls, world: LandmarkMap) -> "LandmarkMarkers":
        finest = int(np.argmin(world.radii))
        rows = world.landmarks.scale == finest
        colours = world.landmarks.colour[rows] / 255
        return cls(world.landmarks.position[rows].astype(float), colours.astype(float), world.radii[finest])


class Tracker:
    """Images in, poses out. With `use_depth` an image waits for its depth, which may come before or after it."""

    def __init__(
        self, world: LandmarkMap, model: LoCUS, environment: str | None = None, use_depth: bool = False
    ) -> None:
        """A robot is in one environment: the map's only one, or the one that is named."""
        world.check(model)
        self.world = world.environment(world.environment_number(environment))
        self.model, self.use_depth = model, use_depth
        self.left_out = 0
        """Images for which no depth came."""
        self.reason = ""
        """Why the last image has no pose; empty if it has."""
        self._optics: tuple[Camera, Lens] | None = None
        self._image: tuple[int, ndarray] | None = None
        self._depth: tuple[int, ndarray] | None = None

    def camera(self, camera: Camera, lens: Lens) -> None:
        """The camera of the images that follow."""
        self._optics = camera, lens

    def depth(self, stamp: int, depth: Float32[ndarray, "height width"]) -> StampedPose | None:
        """z in metres, registered to the image, 0 where unknown; gives the pose of the image that waited for it."""
        self._depth = stamp, depth
        return self._together()

    def image(self, stamp: int, image: UInt8[ndarray, "height width 3"]) -> StampedPose | None:
        """Where an RGB image was taken; None if that cannot be said, or if it waits for its depth."""
        if not self.use_depth:
            return self._located(stamp, image, None)
        self.left_out += self._image is not None
        self._image = stamp, image
        return self._together()

    def _together(self) -> StampedPose | None:
        if self._image is None or self._depth is None or abs(self._image[0] - self._depth[0]) > TOGETHER:
            return None
        (stamp, image), (_, depth) = self._image, self._depth
        self._image = self._depth = None
        return self._located(stamp, image, depth)

    def _located(
        self, stamp: int, image: UInt8[ndarray, "height width 3"], depth: Float32[ndarray, "rows columns"] | None
    ) -> StampedPose | None:
        if self._optics is None:
            self.reason = "no camera_info has come yet, so the camera is not known"
            return None
        stated, lens = self._optics
        try:
            size = (image.shape[1], image.shape[0])
            check_aspect((stated.width, stated.height), size, "the camera_info", "the image")
            camera = stated.resized(*size)
            if depth is not None and depth.shape != image.shape[:2]:
                raise LocusError(f"the depth is {depth.shape[1]}×{depth.shape[0]}, the image {size[0]}×{size[1]}")
            if lens.distorts:
                image, depth = (None if each is None else lens.straighten(each, camera) for each in (image, depth))
            location = self.world.localize(self.model, image, camera, depth)
        except LocusError as error:
            self.reason = str(error)
            return None
        self.reason = location.reason
        return StampedPose.of(stamp, location) if location.here else None
