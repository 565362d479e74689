"""Which patches serve as landmarks (paper, "Sampling positions")."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from .checks import Number
from .sets import squared_distances

CANDIDATES = 2  # landmarks drawn for each one wanted: some are seen once only
PAIRS_AT_ONCE = 2**22

Sampling = Literal["patches", "space"]


def draw_landmarks(
    positions: Float[Tensor, "n 3"],
    environments: Int[Tensor, " n"],
    frames: Int[Tensor, " n"],
    radius: Number,
    count: int,
    rng: "np.random.Generator",
    sampling: Sampling = "patches",
) -> Int[Tensor, " m"]:
    """Patches that serve as landmarks: each is seen in another frame too, within the radius.

    Uniformly over all patches; or uniformly in the visible volume, where a landmark is the patch nearest to the point
    drawn, if that lies within the radius: most points are in the empty air.
    """
    known = torch.isfinite(positions).all(dim=1).nonzero()[:, 0].numpy()
    if not len(known):
        return torch.zeros(0, dtype=torch.int64)
    wanted = CANDIDATES * count
    if sampling == "patches":
        candidates = rng.choice(known, min(wanted, len(known)), replace=False)
    else:
        candidates = _near_points_in_space(positions[known].numpy(), known, wanted, radius, rng)
    chosen = torch.from_numpy(candidates)
    seen_again = torch.zeros(len(chosen), dtype=torch.bool)
    at_once = max(1, PAIRS_AT_ONCE // len(positions))  # nothing of size n × m is held
    for part in torch.arange(len(chosen)).split(at_once):
        some = chosen[part]
        squared = squared_distances(positions.T, positions[some].T.contiguous())
        apart = (frames[:, None] != frames[some]) & (environments[:, None] == environments[some])
        seen_again[part] = ((squared <= radius**2) & apart).any(dim=0)
    return chosen[seen_again][:count]


def _near_points_in_space(
    points: Float[ndarray, "n 3"], patches: Int[ndarray, " n"], count: int, radius: Number, rng: "np.random.Generator"
) -> Int[ndarray, " m"]:
    from scipy.spatial import KDTree

    drawn = rng.uniform(points.min(axis=0), points.max(axis=0), (count, 3))
    distance, nearest = KDTree(points).query(drawn, distance_upper_bound=radius)
    return rng.permutation(np.unique(patches[nearest[np.isfinite(distance)]]))  # in no order: the first are taken
