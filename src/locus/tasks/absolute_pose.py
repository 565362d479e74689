"""The pose of a camera from pixels and the points of the world that they show, by PoseLib."""

import numpy as np
import poselib
from jaxtyping import Float
from numpy import ndarray

from locus.geometry import Camera, invert
from locus.tasks.consensus import Motion
from locus.tasks.five_point import poselib_camera

ITERATIONS = 2000


def absolute_pose(
    pixels: Float[ndarray, "n 2"], positions: Float[ndarray, "n 3"], camera: Camera, error: float, seed: int = 0
) -> Motion | None:
    """`world_from_camera`, and the pixels that are within `error` of where it puts their points; None if none fits."""
    if len(pixels) < 4:
        return None
    options = {"max_reproj_error": error, "max_iterations": ITERATIONS, "seed": seed}
    pose, report = poselib.estimate_absolute_pose(pixels, positions, poselib_camera(camera), options, {})
    camera_from_world = np.vstack([pose.Rt, [0, 0, 0, 1]])
    inliers = np.asarray(report["inliers"], bool)
    if not np.isfinite(camera_from_world).all() or not inliers.any():
        return None
    return invert(camera_from_world), inliers


def refined_pose(
    world_from_camera: Float[ndarray, "4 4"],
    pixels: Float[ndarray, "n 2"],
    positions: Float[ndarray, "n 3"],
    camera: Camera,
    error: float,
) -> Float[ndarray, "4 4"]:
    """The pose nearby that puts points closest to their pixels; one that is off by more than `error` hardly counts."""
    start = poselib.CameraPose()
    camera_from_world = invert(world_from_camera)
    start.R, start.t = camera_from_world[:3, :3], camera_from_world[:3, 3]
    options = {"loss_type": "CAUCHY", "loss_scale": error / 2}
    pose, _ = poselib.refine_absolute_pose(pixels, positions, start, poselib_camera(camera), options)
    found = invert(np.vstack([pose.Rt, [0, 0, 0, 1]]))
    return found if np.isfinite(found).all() else world_from_camera
