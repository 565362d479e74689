"""A map whose frames turn out to be elsewhere: its landmarks and points go with the frames that show them."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.sparse import csr_matrix, diags

from locus.geometry import invert
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.merging import without_twins


def corrected(world: LandmarkMap, poses: Float[ndarray, "f 4 4"]) -> LandmarkMap:
    """The map of one environment with other `world_from_camera` of its frames, such as a pose graph gives.

    A landmark moves by the mean of the motions of the frames that show it. Landmarks that drift had kept apart, and now
    are closer than their radius, become one. If the frames are at hand, building the map again is more exact.
    """
    if len(world.environments) != 1 or len(poses) != len(world.frames):
        raise MapError(f"{len(world.frames)} poses of one environment correct this map, not {len(poses)}")
    motions = poses @ invert(world.frames.world_from_camera)  # of each frame, now_from_before
    landmarks, points = world.landmarks, world.points
    shown = csr_matrix(world.sightings.T, dtype=np.float64)
    total = np.maximum(np.asarray(shown.sum(axis=1)).ravel(), 1)
    mean = (diags(1 / total) @ shown @ motions.reshape(-1, 16)).reshape(-1, 4, 4)
    turned = np.einsum("nij,nj->ni", mean[:, :3, :3], landmarks.seen_from)
    placed = np.einsum("nij,nj->ni", mean[:, :3, :3], landmarks.position) + mean[:, :3, 3]
    landmarks = replace(landmarks, position=placed.astype(np.float32), seen_from=turned.astype(np.float32))
    landmarks, sightings = without_twins(landmarks, world.sightings, world.radii)
    if points is not None:
        of_point, position = np.repeat(motions, points.count, axis=0), points.position.copy()
        before = position[points.rows]
        position[points.rows] = np.einsum("nij,nj->ni", of_point[:, :3, :3], before) + of_point[:, :3, 3]
        points = replace(points, position=position)
    frames = replace(world.frames, world_from_camera=poses)
    return replace(world, landmarks=landmarks, sightings=sightings, frames=frames, points=points)
