"""More frames of one environment: what they show of its landmarks, and new landmarks where there was none."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float32
from numpy import ndarray
from scipy.sparse import csr_matrix, hstack, identity

from locus.features.dense import SceneFeatures
from locus.landmarks.arrays import Landmarks, joined, put, take
from locus.landmarks.chance import chance
from locus.landmarks.describe import by_frame, choose, observed, pooled
from locus.landmarks.observations import ScenePatches, within
from locus.model import LoCUS


def grown(
    landmarks: Landmarks,
    environment: int,
    model: LoCUS,
    seen: SceneFeatures,
    found: ScenePatches,
    *,
    most: int | None,
    progress: bool,
) -> Landmarks:
    """A map's landmarks with the patches of a scene of one environment added to them, then the new ones.

    Args:
        landmarks: With a column of votes for each class that the patches may have.
        environment: The number of the one that the scene is of.
        model: Whose features they are.
        seen: The scene.
        found: Its patches, their labels as columns of the votes, -1 for none.
        most: New landmarks at most, of each scale.
        progress: Show bars.
    """
    classes = landmarks.votes.shape[1]
    fresh = []
    for scale, radius in enumerate(model.radii):
        features = found.features(seen, scale)
        rows = np.flatnonzero((landmarks.scale == scale) & (landmarks.environment == environment))
        near = within(landmarks.position[rows], found.point, radius)
        both = joined([take(landmarks, rows), observed(near, found, features, classes)])
        itself = identity(len(rows), np.int32, "csr")
        landmarks = put(landmarks, rows, pooled(both, np.arange(len(rows)), csr_matrix(hstack([itself, itself]))))
        new = choose(
            found,
            features,
            scale,
            radius,
            classes,
            kappa=model.kappa,
            tau=model.tau,
            taken=landmarks.position[rows],
            most=most,
            progress=progress,
        )
        fresh.append(replace(new, environment=np.full(len(new), environment, np.int32)))
    return joined([landmarks, *fresh])


def looked_for(
    landmarks: Landmarks, environment: int, radii: Sequence[float], seen: SceneFeatures, found: ScenePatches
) -> tuple[csr_matrix, Float32[ndarray, "frames scales"]]:
    """Which landmarks the frames of a scene of one environment show, (frames, landmarks), and their chance level."""
    sightings, levels = csr_matrix((len(landmarks), len(seen)), dtype=np.int32), []
    of_frame = by_frame(identity(len(found.row), format="csr"), found).T
    for scale, radius in enumerate(radii):
        rows = np.flatnonzero((landmarks.scale == scale) & (landmarks.environment == environment))
        some = take(landmarks, rows)
        shown = by_frame(within(some.position, found.point, radius), found).tocoo()
        sightings += csr_matrix((shown.data, (rows[shown.row], shown.col)), sightings.shape)
        levels.append(chance(some, found.point, found.features(seen, scale), csr_matrix(of_frame)))
    return csr_matrix(sightings.T), np.stack(levels, axis=1)
