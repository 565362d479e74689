"""Two views without depth: the five-point solver, and the motions that matches cannot tell apart."""

from dataclasses import dataclass

import cv2
import numpy as np
import poselib
from jaxtyping import Bool, Float
from numpy import ndarray

from locus.geometry import Camera, align, pose_error
from locus.tasks.consensus import Motion

ITERATIONS = (1000, 20_000)  # of RANSAC, least and most
EXPLAINED = 0.9  # share of the inliers that a simpler motion (a rotation, a plane's) must explain to be the answer
ROUNDS = 3  # of fitting a rotation to the rays that follow it
SAME = 3.0  # degrees between two rotations or two directions that are called the same


def five_point(
    pixels_a: Float[ndarray, "n 2"],
    pixels_b: Float[ndarray, "n 2"],
    camera_a: Camera,
    camera_b: Camera,
    threshold: float,
    seed: int,
) -> Motion | None:
    """`b_from_a` with a translation of length 1, and the matches within `threshold` pixels of their epipolar lines."""
    least, most = ITERATIONS
    options = {"max_epipolar_error": threshold, "seed": seed, "min_iterations": least, "max_iterations": most}
    pose, told = poselib.estimate_relative_pose(
        pixels_a, pixels_b, poselib_camera(camera_a), poselib_camera(camera_b), options, {}
    )
    inliers = np.array(told["inliers"], bool)
    return (_pose(pose.R, pose.t), inliers) if inliers.sum() >= 5 else None


def poselib_camera(camera: Camera) -> dict[str, object]:
    """As PoseLib wants it."""
    parameters = [camera.fx, camera.fy, camera.cx, camera.cy]
    return {"model": "PINHOLE", "width": camera.width, "height": camera.height, "params": parameters}


def directions(camera: Camera, pixels: Float[ndarray, "n 2"]) -> Float[ndarray, "n 3"]:
    """The directions that pixels look in: points at depth 1."""
    return camera.unproject(pixels, np.ones(len(pixels)))


@dataclass(frozen=True, eq=False)
class Rays:
    """Matches as directions, at depth 1, in their cameras' frames."""

    a: Float[ndarray, "n 3"]
    b: Float[ndarray, "n 3"]

    def in_front(self, b_from_a: Float[ndarray, "4 4"]) -> Bool[ndarray, " n"]:
        """Cheirality: where the two rays of a match come closest is before both cameras."""
        u, v, t = self.a @ b_from_a[:3, :3].T, self.b, b_from_a[:3, 3]
        uu, uv, vv, ut, vt = (u * u).sum(1), (u * v).sum(1), (v * v).sum(1), u @ t, v @ t
        # The least squares of |x u + t - y v|; both have the same positive denominator.
        return (uv * vt - vv * ut > 0) & (uu * vt - uv * ut > 0)

    def rotation(self, inliers: Bool[ndarray, " n"], tolerance: float) -> Motion | None:
        """The rotation that by itself carries (nearly) as many matches as are inliers of a motion, and which.

        If there is one, the matches tell nothing of a translation.
        """
        following = inliers
        a, b = (rays / np.linalg.norm(rays, axis=1, keepdims=True) for rays in (self.a, self.b))
        b_from_a = np.eye(4)
        for _ in range(ROUNDS):
            # Rays and their opposites share a centre at 0, so that the alignment is a rotation about it.
            both = [np.concatenate([rays[following], -rays[following]]) for rays in (a, b)]
            b_from_a[:3, :3] = align(*both)[:3, :3]
            following = np.linalg.norm(a @ b_from_a[:3, :3].T - b, axis=1) <= tolerance
            if following.sum() < EXPLAINED * inliers.sum():
                return None
        return b_from_a, following

    def other_plane_pose(
        self, inliers: Bool[ndarray, " n"], b_from_a: Float[ndarray, "4 4"], tolerance: float
    ) -> Float[ndarray, "4 4"] | None:
        """Another motion of which the inliers tell as much, if they lie on a plane: a homography has two.

        Only one that has them before both cameras, and is not the same as `b_from_a`.
        """
        a, b = (rays[inliers, :2] for rays in (self.a, self.b))
        homography, mask = cv2.findHomography(a, b, cv2.RANSAC, tolerance)
        if homography is None or mask.mean() < EXPLAINED:
            return None
        _, rotations, translations, _ = cv2.decomposeHomographyMat(homography, np.eye(3))
        poses = [_pose(r, t[:, 0]) for r, t in zip(rotations, translations, strict=True) if np.linalg.norm(t) > 1e-6]
        others = [
            pose for pose in poses if self.in_front(pose)[inliers].mean() >= EXPLAINED and not _same(pose, b_from_a)
        ]
        return max(others, key=lambda pose: self.in_front(pose)[inliers].sum(), default=None)


def _same(a: Float[ndarray, "4 4"], b: Float[ndarray, "4 4"]) -> bool:
    turned = pose_error(a, b)[1]
    apart = np.degrees(np.arccos(np.clip(a[:3, 3] @ b[:3, 3], -1, 1)))
    return bool(turned <= SAME and apart <= 3 * SAME)


def _pose(rotation: Float[ndarray, "3 3"], translation: Float[ndarray, " 3"]) -> Float[ndarray, "4 4"]:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, translation / max(float(np.linalg.norm(translation)), 1e-12)
    return pose
