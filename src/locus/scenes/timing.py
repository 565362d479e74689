"""Things that happened at about the same time: images, depth and poses, each with clocks of their own."""

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.geometry import are_poses

TOGETHER = 0.02  # seconds between a colour image, its depth image and its pose, as in the TUM benchmark's tools
MAX_GAP = 0.2  # seconds between two poses that may be interpolated; a hand moves some centimetres in it


def mutual_nearest(a: Float[ndarray, "n"], b: Float[ndarray, "m"], limit: float) -> list[int]:
    """For each time in a, the index in b if the two are each other's nearest and within the limit, else -1."""
    if not len(a) or not len(b):
        return [-1] * len(a)
    b_of, a_of = nearest(a, b), nearest(b, a)
    good = (np.abs(a - b[b_of]) <= limit) & (a_of[b_of] == np.arange(len(a)))
    return np.where(good, b_of, -1).tolist()


def nearest(a: Float[ndarray, "n"], b: Float[ndarray, "m"]) -> Int[ndarray, "n"]:
    """For each time in a, the index of the nearest in b."""
    after = np.searchsorted(b, a).clip(1, max(len(b) - 1, 1))
    before = after - 1
    after = after.clip(max=len(b) - 1)
    return np.where(np.abs(a - b[before]) <= np.abs(a - b[after]), before, after)


def poses_at(
    times: Float[ndarray, "n"], pose_times: Float[ndarray, "m"], values: Float[ndarray, "m 7"]
) -> tuple[Float[ndarray, "n 4 4"], Bool[ndarray, "n"]]:
    """Poses between the stored ones, positions linear, rotations along the shortest arc; and where there is one.

    Stored poses are in the order of time: a position and a quaternion, x y z w. Those that are no numbers are not used.
    """
    sound = are_poses(values)
    poses = np.tile(np.eye(4), (len(times), 1, 1))
    if not sound.any():
        return poses, np.zeros(len(times), bool)
    pose_times, values = pose_times[sound], values[sound]
    after = np.searchsorted(pose_times, times).clip(max=len(pose_times) - 1)
    before = (after - 1).clip(min=0)
    gap = pose_times[after] - pose_times[before]
    between = (gap > 0) & (gap <= MAX_GAP) & (pose_times[before] <= times) & (times <= pose_times[after])
    # Elsewhere the nearest pose will do if it is near enough: both ends of the arc are that one.
    near = nearest(times, pose_times)
    before, after = np.where(between, before, near), np.where(between, after, near)
    share = np.where(between, (times - pose_times[before]) / np.where(between, gap, 1.0), 0.0)[:, None]
    rotations = Rotation.from_quat(values[:, 3:])
    arc = (rotations[before].inv() * rotations[after]).as_rotvec()
    poses[:, :3, :3] = (rotations[before] * Rotation.from_rotvec(arc * share)).as_matrix()
    poses[:, :3, 3] = (1 - share) * values[before, :3] + share * values[after, :3]
    return poses, between | (np.abs(pose_times[near] - times) <= TOGETHER)
