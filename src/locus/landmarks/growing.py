"""More frames of one environment: what they show of its landmarks, and new landmarks where there was none."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float32
from numpy import ndarray
from scipy.sparse import csr_matrix, hstack, identity

from locus.features.dense import SceneFeatures
from locus.landmarks.arrays import Landmarks
from locus.landmarks.chance import chance
from locus.landmarks.describe import by_frame, choose, observed, pooled
from locus.landmarks.observations import ObservedPatches, within
from locus.model import LoCUS
from locus.rows import joined


def grown(
    landmarks: Landmarks,
    environment: int,
    model: LoCUS,
    seen: SceneFeatures,
    found: ObservedPatches,
    most: int | None,
    share: float,
    progress: bool,
) -> Landmarks:
    """A map's landmarks with the patches of a scene of one environment added to them, then at `most` so many new ones.

    Labels of the patches are columns of the landmarks' votes, -1 for none. `share` is what part of a recording these
    frames are: they get as much of the candidates.
    """
    classes, fresh = landmarks.votes.shape[1], []
    for scale, radius in enumerate(model.radii):
        features = found.features(seen, scale)
        rows = np.flatnonzero((landmarks.scale == scale) & (landmarks.environment == environment))
        near = within(landmarks.position[rows], found.point, radius)
        both = joined([landmarks, observed(near, found, features, classes)])
        added = csr_matrix((np.ones(len(rows), np.int32), (rows, np.arange(len(rows)))), (len(landmarks), len(rows)))
        into = csr_matrix(hstack([identity(len(landmarks), np.int32), added]))
        landmarks = pooled(both, np.arange(len(landmarks)), into)
        new = choose(model, scale, found, features, classes, landmarks.position[rows], most, share, progress)
        fresh.append(replace(new, environment=np.full(len(new), environment, np.int32)))
    return joined([landmarks, *fresh])


def best(landmarks: Landmarks, known: int, most: int | None) -> Landmarks:
    """Of the landmarks after the first `known`, the best of each scale, `most` at most, in their order."""
    if most is None:
        return landmarks
    rows = np.arange(known, len(landmarks))
    rows = rows[np.argsort(-landmarks.worth[rows], kind="stable")]
    kept = [rows[landmarks.scale[rows] == scale][:most] for scale in np.unique(landmarks.scale[rows])]
    return landmarks.take(np.concatenate([np.arange(known), *map(np.sort, kept)]))


def looked_for(
    landmarks: Landmarks, environment: int, radii: Sequence[float], seen: SceneFeatures, found: ObservedPatches
) -> tuple[csr_matrix, Float32[ndarray, "frames scales"]]:
    """Which landmarks the frames of a scene of one environment show, (frames, landmarks), and their chance level."""
    sightings, levels = csr_matrix((len(landmarks), len(seen)), dtype=np.int32), []
    of_frame = by_frame(identity(len(found.row), format="csr"), found).T
    for scale, radius in enumerate(radii):
        rows = np.flatnonzero((landmarks.scale == scale) & (landmarks.environment == environment))
        some = landmarks.take(rows)
        shown = by_frame(within(some.position, found.point, radius), found).tocoo()
        sightings += csr_matrix((shown.data, (rows[shown.row], shown.col)), sightings.shape)
        levels.append(chance(some, found.point, found.features(seen, scale), csr_matrix(of_frame)))
    return csr_matrix(sightings.T), np.stack(levels, axis=1)
