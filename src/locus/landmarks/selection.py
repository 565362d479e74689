"""Which patches of a scene make good landmarks: those whose own ranking of the whole scene is best (Smooth-AP_j)."""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.spatial import KDTree
from torch import Tensor

from locus.objective import retrieval_sets, smooth_ap
from locus.progress import track

PAIRS_AT_ONCE = 2**22
FEW = 64  # positives a landmark up to which the definition is faster than the curves
BELOW = 20  # sigma(-20) is 2e-9


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
    """Smooth-AP_j of each candidate over all patches of the scene in other frames than its own, in tiles.

    0 for a candidate that no other frame shows.
    """
    positions, of_frame = torch.from_numpy(np.ascontiguousarray(points)), torch.from_numpy(frames)
    environment = torch.zeros(len(points), dtype=torch.int64)
    tiles = torch.from_numpy(landmarks).split(max(1, PAIRS_AT_ONCE // max(1, len(points))))
    values = []
    for tile in track(tiles, f"landmarks of {radius:g} m", len(tiles), progress):
        positive, universe = retrieval_sets(positions, environment, of_frame, tile, radius, kappa, True)
        scores = features @ features[tile].T
        few = positive.sum() <= FEW * len(tile)
        values.append((_smooth_ap_of_few if few else smooth_ap)(scores, positive, universe, tau))
    return torch.cat(values).double().numpy() if values else np.zeros(0)


def _smooth_ap_of_few(
    scores: Float[Tensor, "n m"], positive: Bool[Tensor, "n m"], universe: Bool[Tensor, "n m"], tau: float
) -> Float[Tensor, " m"]:
    """`smooth_ap` by its definition, which is faster than curves where a landmark has few positives.

    A patch that scores far below a positive takes no part in its rank.
    """
    values = torch.zeros(scores.shape[1])
    rows = scores.masked_fill(~universe, -math.inf).T.contiguous().numpy()
    for landmark, (ranked, own) in enumerate(zip(rows, positive.T.contiguous().numpy(), strict=True)):
        if own.any():
            # Sorted, because a sum's last digits depend on its order, and that of the frames is not to count.
            found = torch.from_numpy(np.sort(ranked[own]))
            near = torch.from_numpy(np.sort(ranked[ranked > float(found[0]) - BELOW * tau]))
            # A pair is not ranked against itself, which sigma(0) stands for in both sums.
            among = 0.5 + torch.sigmoid((found - found[:, None]) / tau).sum(dim=1)
            values[landmark] = (among / (0.5 + torch.sigmoid((near - found[:, None]) / tau).sum(dim=1))).mean()
    return values


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
