"""From patches to landmarks: the best spots of a scene, and what its patches say about each."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from locus.landmarks.arrays import Landmarks, take
from locus.landmarks.observations import Patches, within
from locus.landmarks.selection import candidates, landmark_scores, spread

KAPPA, TAU = 50.0, 0.01  # of Smooth-AP_j, as in training
CANDIDATES = 8192  # at most, a scale
ELSEWHERE = 5  # radii from a spot that are another spot, beyond doubt
VIEWS = 2  # a landmark that one frame alone shows has not been found again by anything


def choose(
    patches: Patches,
    features: Float[ndarray, "n c"],
    scale: int,
    radius: float,
    classes: int,
    *,
    taken: Float[ndarray, "k 3"],
    most: int | None = None,
    progress: bool = False,
) -> Landmarks:
    """The best landmarks of one scale, a radius apart and from those that there are, best first.

    Args:
        patches: Of the scene, their labels as columns of the votes, -1 for none.
        features: Of the patches, at this scale.
        scale: Which.
        radius: Its radius.
        classes: Columns of the votes.
        taken: Where there are landmarks already.
        most: Landmarks at most.
        progress: Show a bar.
    """
    others = KDTree(taken)
    free = np.flatnonzero(others.query(patches.point)[0] >= radius)
    chosen = free[candidates(patches.point[free], radius, CANDIDATES)]
    scores = landmark_scores(
        torch.from_numpy(features), patches.point, patches.frame, chosen, radius, KAPPA, TAU, progress=progress
    )
    shown = within(patches.point[chosen], patches.point, radius)
    described = observed(shown, patches, features, classes)
    described = replace(
        described,
        scale=np.full(len(chosen), scale, np.int32),
        radius=np.full(len(chosen), radius, np.float32),
        score=scores.astype(np.float32),
    )
    # A landmark is where its patches are on average, which may be nearer to another than the patch it was chosen as.
    apart = others.query(described.position)[0] >= radius
    good = np.flatnonzero((described.views >= VIEWS) & apart)
    best = spread(described.position[good], described.worth[good], radius, most)
    return take(described, good[best])


def observed(shown: csr_matrix, patches: Patches, features: Float[ndarray, "n c"], classes: int) -> Landmarks:
    """What patches say about spots: `shown` has a row for each spot and a 1 for each of its patches.

    Spots without a patch get zeros. Environment, scale, radius and score are left 0.
    """
    count = np.diff(shown.indptr)
    share = 1 / np.maximum(count, 1)[:, None]

    def mean(values: Float[ndarray, "n k"]) -> Float[ndarray, "m k"]:
        return ((shown @ values.astype(np.float64)) * share).astype(np.float32)

    labelled = np.flatnonzero(patches.label >= 0)
    votes = csr_matrix(
        (np.ones(len(labelled)), (labelled, patches.label[labelled])), shape=(len(features), classes), dtype=np.float32
    )
    nothing = np.zeros(len(count), np.int32)
    return Landmarks(
        environment=nothing,
        scale=nothing,
        position=mean(patches.point),
        radius=nothing.astype(np.float32),
        mean=mean(features),
        score=nothing.astype(np.float32),
        patches=count.astype(np.int32),
        views=np.diff(by_frame(shown, patches.frame).indptr).astype(np.int32),
        seen_from=mean(patches.towards_camera),
        seen_at=mean(patches.seen_at),
        colour=mean(patches.colour),
        votes=(shown @ votes).toarray().astype(np.int32),
    )


def by_frame(shown: csr_matrix, frame: Int[ndarray, " n"], frames: int | None = None) -> csr_matrix:
    """How many patches of each frame show each spot: (spots, frames)."""
    frames = int(frame.max(initial=-1)) + 1 if frames is None else frames
    of_frame = csr_matrix((np.ones(len(frame), np.float32), (np.arange(len(frame)), frame)), shape=(len(frame), frames))
    return csr_matrix(shown @ of_frame)


def pooled(a: Landmarks, b: Landmarks) -> Landmarks:
    """The same landmarks after the patches of b have been added to those of a; frames of the two must differ."""
    total = np.maximum(a.patches + b.patches, 1)[:, None]

    def mean(name: str) -> Float[ndarray, "n k"]:
        weighted = getattr(a, name) * a.patches[:, None] + getattr(b, name) * b.patches[:, None]
        return (weighted / total).astype(np.float32)

    return replace(
        a,
        position=mean("position"),
        mean=mean("mean"),
        seen_from=mean("seen_from"),
        seen_at=mean("seen_at"),
        colour=mean("colour"),
        patches=a.patches + b.patches,
        views=a.views + b.views,
        votes=a.votes + b.votes,
    )


def chance(
    landmarks: Landmarks, patches: Patches, features: Float[ndarray, "n c"], frames: int
) -> Float[ndarray, " frames"]:
    """Of each frame, the mean over its patches of the similarity to the most alike landmark that is elsewhere.

    0 for a frame none of whose patches has a landmark elsewhere.
    """
    embedding = landmarks.embedding
    means = np.zeros(frames, np.float32)
    for frame in range(frames):
        own = patches.frame == frame
        apart = cdist(patches.point[own], landmarks.position) > ELSEWHERE * landmarks.radius
        similarity = np.where(apart, features[own] @ embedding.T, -np.inf)
        best = similarity.max(axis=1, initial=-np.inf)
        if np.isfinite(best).any():
            means[frame] = best[np.isfinite(best)].mean()
    return means
