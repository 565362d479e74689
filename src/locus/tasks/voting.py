"""Labels in 3D: the patches that see a position vote on what it is."""

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from numpy import ndarray
from scipy.spatial import KDTree

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.tasks.cosegmentation import one_scale
from locus.tasks.probe import Probe

PLACES_AT_ONCE = 4096


def vote(
    points: Float[ndarray, "n 3"],
    probabilities: Float[ndarray, "n k"],
    positions: Float[ndarray, "m 3"],
    radius: float | Float[ndarray, " m"],
) -> tuple[Float32[ndarray, "m k"], Int64[ndarray, " m"]]:
    """The mean opinion of the patches within `radius` metres of each position, and how many they are.

    A patch says how likely it is of each class; one whose point is not finite has no vote. Where there is no patch, all
    classes have 0.
    """
    radii = np.broadcast_to(np.asarray(radius, np.float64), (len(positions),))
    if not (np.isfinite(radii) & (radii > 0)).all():
        raise LocusError("a voting radius must be positive")
    known = np.isfinite(points).all(axis=1)
    opinions = probabilities[known].astype(np.float64)
    means = np.zeros((len(positions), probabilities.shape[1]), np.float32)
    counts = np.zeros(len(positions), np.int64)
    if not known.any():
        return means, counts
    tree = KDTree(points[known])
    for first in range(0, len(positions), PLACES_AT_ONCE):
        part = slice(first, first + PLACES_AT_ONCE)
        near = tree.query_ball_point(positions[part], radii[part], return_sorted=True)
        sizes = np.array([len(each) for each in near])
        owners = np.repeat(np.arange(len(near)), sizes)
        sums = np.zeros((len(near), opinions.shape[1]))
        np.add.at(sums, owners, opinions[np.concatenate(near).astype(np.int64)])
        means[part], counts[part] = sums / np.maximum(sizes, 1)[:, None], sizes
    return means, counts


def probe_votes(
    probe: Probe, seen: SceneFeatures, positions: Float[ndarray, "m 3"], radius: float | Float[ndarray, " m"]
) -> tuple[Float32[ndarray, "m k"], Int64[ndarray, " m"]]:
    """`vote` of a scene's patches with what a probe says of each: how likely it is of each of the probe's classes."""
    with torch.no_grad():
        likely = probe.probabilities(one_scale(seen.features, probe.scale)).flatten(0, 2).cpu().numpy()
    return vote(seen.points.reshape(-1, 3), likely, positions, radius)
