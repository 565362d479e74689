"""More frames of one environment: what they show of its landmarks, and the new landmarks where there was none."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float32
from numpy import ndarray
from scipy.sparse import csr_matrix, hstack, identity, vstack

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
) -> tuple[Landmarks, csr_matrix]:
    """A map's landmarks with the patches of a scene of one environment, then new ones; and which its frames show.

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
    fresh, known_rows, shown_known, shown_fresh = [], [], [], []
    for scale, radius in enumerate(model.radii):
        features = found.features(seen, scale)
        rows = np.flatnonzero((landmarks.scale == scale) & (landmarks.environment == environment))
        near = within(landmarks.position[rows], found.point, radius)
        both = joined([take(landmarks, rows), observed(near, found, features, classes)])
        itself = identity(len(rows), np.int32, "csr")
        landmarks = put(landmarks, rows, pooled(both, np.arange(len(rows)), csr_matrix(hstack([itself, itself]))))
        new, of_new = choose(
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
        known_rows.append(rows)
        shown_known.append(near)
        shown_fresh.append(of_new)
    together = joined([landmarks, *fresh])
    rows = np.concatenate([*known_rows, np.arange(len(landmarks), len(together))])
    counts = by_frame(csr_matrix(vstack([*shown_known, *shown_fresh])), found.frame, len(seen))
    placed = csr_matrix((np.ones(len(rows), np.int32), (rows, np.arange(len(rows)))), (len(together), len(rows)))
    return together, csr_matrix((placed @ counts).T)


def chance_of_frames(
    landmarks: Landmarks, environment: int, seen: SceneFeatures, found: ScenePatches
) -> Float32[ndarray, "frames scales"]:
    """The chance level of a scene's frames, by its patches and the landmarks of their environment."""
    of_frame = csr_matrix(
        (np.ones(len(found.frame)), (found.frame, np.arange(len(found.frame)))), (len(seen), len(found.frame))
    )
    levels = []
    for scale in range(len(seen.features)):
        rows = np.flatnonzero((landmarks.scale == scale) & (landmarks.environment == environment))
        levels.append(chance(take(landmarks, rows), found.point, found.features(seen, scale), of_frame))
    return np.stack(levels, axis=1)
