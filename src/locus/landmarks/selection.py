"""Which patches of a scene make good landmarks: those whose own ranking of the whole scene is best (Smooth-AP_j)."""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.spatial import KDTree
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from locus.objective import smooth_ap
from locus.objective.sets import squared_distances, squared_radii
from locus.progress import track

PAIRS_AT_ONCE = 2**20


def candidates(points: Float[ndarray, "n 3"], radius: float, most: int) -> Int[ndarray, " m"]:
    """One patch of every cell of half a radius in which there is one: the nearest to the cell's centre.

    So candidates cover the surfaces once, however many frames show them. If there are more than `most`, cells are left
    out by a hash of where they are. Neither depends on the order of the patches.
    """
    known = np.flatnonzero(np.isfinite(points).all(axis=1))
    size = radius / 2
    cells = np.floor(points[known].astype(np.float64) / size).astype(np.int64)
    off = ((points[known] - (cells + 0.5) * size) ** 2).sum(axis=1)
    order = np.lexsort((*points[known].T, off, *cells.T))  # cell by cell, the nearest first, ties by their place
    cells = cells[order]
    first = np.ones(len(order), bool)
    first[1:] = (cells[1:] != cells[:-1]).any(axis=1)
    chosen, cells = known[order][first], cells[first]
    if len(chosen) > most:
        chosen = chosen[np.argsort(_hash(cells), kind="stable")[:most]]
    return chosen


def _hash(cells: Int[ndarray, "m 3"]) -> ndarray:
    """Numbers that look random and are the same for the same cell: a multiplicative hash, mixed once more."""
    primes = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
    mixed = (cells.astype(np.uint64) * primes).sum(axis=1, dtype=np.uint64)
    mixed ^= mixed >> np.uint64(32)
    return mixed * np.uint64(0xD6E8FEB86659FD93)


@torch.inference_mode()
def landmark_scores(
    features: Float[Tensor, "n c"],
    points: Float[ndarray, "n 3"],
    frames: Int[ndarray, " n"],
    landmarks: Int[ndarray, " m"],
    radius: float,
    kappa: float,
    tau: float,
    *,
    progress: bool = False,
) -> Float[ndarray, " m"]:
    """Smooth-AP_j of each candidate over all patches of the scene, in tiles.

    Its embedding is that of the landmark it would be, the mean feature of the patches within the radius. Each frame is
    ranked by the mean over the *other* frames: a landmark is to be found in frames that took no part in it.
    0 for a candidate that one frame alone shows.
    """
    if not len(landmarks):
        return np.zeros(0, np.float32)
    order = torch.from_numpy(np.argsort(frames, kind="stable"))
    sizes = np.unique(frames, return_counts=True)[1].tolist()
    positions = torch.from_numpy(points)
    patches = pad_sequence(features[order].split(sizes), batch_first=True)  # (frames, patches, c)
    places = pad_sequence(positions[order].split(sizes), batch_first=True, padding_value=math.inf)
    by_axis = places.flatten(0, 1).T.contiguous()
    inner, outer = squared_radii(radius, kappa, 1, positions)
    tiles = positions[landmarks].T.split(max(1, PAIRS_AT_ONCE // by_axis.shape[1]), dim=1)
    values = []
    for tile in track(tiles, f"landmarks of {radius:g} m", len(tiles), progress):
        # The sets of `retrieval_sets`, a row a landmark, so that each one's scores lie together.
        squared = squared_distances(tile, by_axis)
        positive = squared <= inner
        shown = positive.unflatten(1, places.shape[:2])
        sums = torch.einsum("mfp,fpc->fmc", shown.to(features.dtype), patches)
        others = functional.normalize(sums.sum(dim=0) - sums, dim=-1)
        scores = torch.einsum("fmc,fpc->mfp", others, patches).flatten(1)
        seen_again = shown.any(dim=2).sum(dim=1) > 1
        values.append(smooth_ap(scores.T, positive.T, (squared <= outer).T, tau) * seen_again)
    return torch.cat(values).numpy()


def spread(
    positions: Float[ndarray, "n 3"], scores: Float[ndarray, " n"], spacing: float, most: int | None = None
) -> Int[ndarray, " k"]:
    """The best of points that lie at least `spacing` apart, best first: non-maximum suppression in 3D.

    Equal scores are ordered by position, so the order of the points does not matter.
    """
    # Sums over frames in another order differ in their last digits, which are not to decide either.
    order = np.lexsort((*positions.round(4).T, -scores.round(5)))
    tree = KDTree(positions)
    taken: Bool[ndarray, " n"] = np.zeros(len(positions), bool)
    chosen = []
    for index in order:
        if len(chosen) == most:
            break
        if taken[index]:
            continue
        chosen.append(index)
        taken[tree.query_ball_point(positions[index], math.nextafter(spacing, 0))] = True
    return np.array(chosen, np.int64)
