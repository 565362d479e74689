"""A map brought up to date: what has gone leaves it, and the session that saw so is merged into it."""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.ndimage import binary_dilation
from scipy.spatial import KDTree

from locus.geometry import invert, transform
from locus.landmarks import LandmarkMap, merge
from locus.landmarks.arrays import Frames, Landmarks
from locus.landmarks.coarse_depth import COLUMNS, ROWS, UNIT, grid_camera
from locus.landmarks.points import BY_POINT, MapPoints, starts
from locus.scenes.visibility import hidden_beyond
from locus.tasks.seen_through import surface_points
from locus.tasks.session_changes import SessionChanges

NEAR = 0.1  # metres from a surface to the keypoints on it
STALE = 0.5  # of what a landmark stood on is gone: so it goes


def updated(world: LandmarkMap, found: SessionChanges) -> LandmarkMap:
    """The whole map with the session merged. Landmarks weigh less by the share of their surface that is gone.

    Those that lost half of it go, and so do keypoints on what is gone. What the map's frames said of all spots that
    have changed is forgotten, so that a third session is compared with the second there.
    """
    here = world.environment_number(found.world.environments[0])
    gone = np.concatenate([np.zeros((0, 3)), *(each.before.points for each in found.changes if each.before)])
    new = np.concatenate([np.zeros((0, 3)), *(each.after.points for each in found.changes if each.after)])
    landmarks, points = world.landmarks, world.points
    lost = np.zeros(len(landmarks))
    rows = np.flatnonzero(landmarks.environment == here)
    lost[rows] = lost_share(landmarks.take(rows), surface_points(found.world.frames), gone)
    left = np.round(landmarks.patches * (1 - lost)).astype(np.int32)
    stays = np.flatnonzero((lost < STALE) & (left > 0))
    if points is not None:
        elsewhere = np.repeat(world.frames.environment, points.count) != here
        points = _only(points, elsewhere | (distance(points.position[points.rows], gone) > NEAR))
    kept = replace(
        world,
        landmarks=replace(landmarks, patches=left).take(stays),
        sightings=world.sightings[:, stays],
        frames=_forgotten(world.frames, here, np.concatenate([gone, new])),
        points=points,
    )
    return merge([kept, found.later])


def lost_share(
    landmarks: Landmarks, surface: Float[ndarray, "n 3"], gone: Float[ndarray, "m 3"]
) -> Float[ndarray, " k"]:
    """How much of the surface within its radius each landmark has lost."""
    there, of_it = (
        np.array(KDTree(spots).query_ball_point(landmarks.position, landmarks.radius, return_length=True), float)
        for spots in (surface, gone)
    )
    return of_it / np.maximum(there, 1)


def distance(points: Float[ndarray, "m 3"], spots: Float[ndarray, "n 3"]) -> Float[ndarray, " m"]:
    """From each point to the nearest spot; infinite where there is none."""
    return KDTree(spots).query(points)[0] if len(spots) else np.full(len(points), np.inf)


def _only(points: MapPoints, stays: Bool[ndarray, " m"]) -> MapPoints:
    """Some of the points of all frames, which stand one frame after the other."""
    frame = np.repeat(np.arange(len(points)), points.count)[stays]
    count = np.bincount(frame, minlength=len(points)).astype(np.int32)
    values = {name: getattr(points, name)[points.rows[stays]] for name in BY_POINT}
    return replace(points, start=starts(count), count=count, **values)


def _forgotten(frames: Frames, here: int, spots: Float[ndarray, "n 3"]) -> Frames:
    """Frames of one environment without the depth of rays that reach, or pass, what has changed."""
    surface = frames.surface.copy()
    for row in np.flatnonzero((frames.environment == here) & surface.any(axis=(1, 2))):
        pixels, z = grid_camera(frames.lens[row]).project(transform(invert(frames.world_from_camera[row]), spots))
        inside = (z > 0) & ((pixels >= 0) & (pixels < (COLUMNS, ROWS))).all(axis=1)
        x, y = pixels[inside].astype(int).T
        reached = np.zeros((ROWS, COLUMNS), bool)
        reached[y, x] = z[inside] <= hidden_beyond(surface[row, y, x] * UNIT)
        surface[row][binary_dilation(reached, np.ones((3, 3)))] = 0
    return replace(frames, surface=surface)
