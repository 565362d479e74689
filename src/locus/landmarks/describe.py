"""From patches to landmarks: the best spots of a scene, and what its patches say about each."""

from dataclasses import replace
from math import ceil

import numpy as np
import torch
from jaxtyping import Float, Int, Int32
from numpy import ndarray
from scipy.sparse import csc_matrix, csr_matrix
from scipy.spatial import KDTree

from locus.landmarks.arrays import MEANS, Landmarks
from locus.landmarks.observations import ObservedPatches, within
from locus.landmarks.selection import candidates, landmark_scores, spread
from locus.model import LoCUS

CANDIDATES = 8192  # at most, a scale
VIEWS = 2  # a landmark that one frame alone shows has not been found again by anything


def choose(
    model: LoCUS,
    scale: int,
    patches: ObservedPatches,
    features: Float[ndarray, "n c"],
    classes: int,
    taken: Float[ndarray, "k 3"],
    most: int | None,
    share: float,
    progress: bool,
) -> Landmarks:
    """The best landmarks of one scale, a radius apart and from those that are `taken`, best first; `most` at most.

    They are scored with the kappa and tau that the model was trained with. `share` of all candidates are tried.
    """
    radius = model.radii[scale]
    others = KDTree(taken)
    free = np.flatnonzero(others.query(patches.point)[0] >= radius)
    chosen = free[candidates(patches.point[free], radius, ceil(share * CANDIDATES))]
    of_patches = (torch.from_numpy(features), patches.point, patches.frame)
    scores = landmark_scores(*of_patches, chosen, radius, model.kappa, model.tau, progress=progress)
    shown = within(patches.point[chosen], patches.point, radius)
    described = replace(
        observed(shown, patches, features, classes),
        scale=np.full(len(chosen), scale, np.int32),
        radius=np.full(len(chosen), radius, np.float32),
        score=scores.astype(np.float32),
    )
    # A landmark is where its patches are on average, which may be nearer to another than the patch it was chosen as.
    apart = others.query(described.position)[0] >= radius
    good = np.flatnonzero((described.views >= VIEWS) & apart)
    best = described.take(good[spread(described.position[good], described.worth[good], radius, most)])
    # So it is also seen from there, and not from where the patch was.
    best = replace(best, views=views(by_frame(within(best.position, patches.point, radius), patches).T))
    return best.take(np.flatnonzero(best.views >= VIEWS))


def observed(shown: csr_matrix, patches: ObservedPatches, features: Float[ndarray, "n c"], classes: int) -> Landmarks:
    """What patches say about spots: `shown` has a row for each spot and a 1 for each of its patches.

    Spots without a patch get zeros. Environment, scale, radius and score are left 0.
    """
    count = np.diff(shown.indptr)
    share = 1 / np.maximum(count, 1)[:, None]
    labelled = np.flatnonzero(patches.label >= 0)
    votes = csr_matrix(
        (np.ones(len(labelled)), (labelled, patches.label[labelled])), shape=(len(features), classes), dtype=np.float32
    )
    nothing = np.zeros(len(count), np.int32)
    of_patches = (patches.point, features, patches.towards_camera, patches.seen_at, patches.colour)
    means = [((shown @ values.astype(np.float64)) * share).astype(np.float32) for values in of_patches]
    return Landmarks(
        environment=nothing,
        scale=nothing,
        radius=nothing.astype(np.float32),
        score=nothing.astype(np.float32),
        patches=count.astype(np.int32),
        views=views(by_frame(shown, patches).T),
        votes=(shown @ votes).toarray().astype(np.int32),
        **dict(zip(MEANS, means, strict=True)),
    )


def by_frame(shown: csr_matrix, patches: ObservedPatches) -> csr_matrix:
    """How many patches of each frame show each spot: (spots, frames)."""
    count = len(patches.frame)
    of_frame = csr_matrix((np.ones(count, np.int32), (np.arange(count), patches.frame)), (count, patches.frames))
    return csr_matrix(shown @ of_frame, dtype=np.int32)


def views(sightings: csr_matrix | csc_matrix) -> Int32[ndarray, " landmarks"]:
    """How many frames show each landmark, from a map's sightings (frames, landmarks)."""
    return np.diff(sightings.tocsc().indptr).astype(np.int32)


def pooled(landmarks: Landmarks, stays: Int[ndarray, " k"], into: csr_matrix) -> Landmarks:
    """The landmarks that stay, with the patches of others: row i of `into` has a 1 for all that become the i-th.

    Their views are left as they were: a frame may show several that become one.
    """
    total = np.maximum(into @ landmarks.patches, 1)[:, None]

    def mean(values: Float[ndarray, "n d"]) -> Float[ndarray, "k d"]:
        return (into @ (values * landmarks.patches[:, None].astype(np.float64)) / total).astype(np.float32)

    sums = {name: into @ getattr(landmarks, name) for name in ("patches", "votes")}
    return replace(landmarks.take(stays), **sums, **{name: mean(getattr(landmarks, name)) for name in MEANS})
