"""Segments: pieces of surface that are smooth and of one colour, and what speaks for and against their belonging
together: the cues that objects are grouped by.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.sparse import csr_matrix

from locus.features.dense import SceneFeatures
from locus.tasks.voxels import Voxels

COLOUR = 1.5  # what a difference of colour counts, beside 1 - the cosine of the normals
CONVEX = 0.5  # what an edge that bulges counts, beside one that caves in: things are mostly convex
TIGHT = 2.0  # how much a segment may differ in itself, by its size
LEAST = 4  # voxels of a segment


@dataclass(frozen=True, eq=False)
class SurfaceSegments:
    """The segments of a scene, and the pairs of them that touch."""

    number: Int[ndarray, " voxels"]
    """Each voxel's segment."""
    alone: Float[ndarray, "m a"]
    """Cues of each segment."""
    pairs: Int[ndarray, "p 2"]
    together: Float[ndarray, "p b"]
    """Cues of each pair."""
    contact: Int[ndarray, " p"]
    """Voxels of two segments that touch."""

    def __len__(self) -> int:
        return len(self.alone)

    @classmethod
    def of(cls, voxels: Voxels, seen: SceneFeatures | None) -> "SurfaceSegments":
        """With cues of geometry and colour and, if they are given, of features of the finest scale and of kinds."""
        pairs = voxels.neighbours
        number = felzenszwalb(len(voxels), pairs, _differences(voxels, pairs))
        members = membership(number)
        alone = _alone_cues(voxels, members)
        touching = number[pairs]
        border = touching[:, 0] != touching[:, 1]
        found, of_pair, contact = np.unique(
            np.sort(touching[border], axis=1), axis=0, return_inverse=True, return_counts=True
        )
        together = _together_cues(voxels, members, pairs[border], found, of_pair.ravel(), contact)
        a, b = found.T
        sides = [alone[a] + alone[b], np.abs(alone[a] - alone[b])]
        if seen is not None:
            for each in (seen.features[0], *([] if seen.kinds is None else [seen.kinds])):
                features = voxels.shown(each, members)
                fa, fb = features[a], features[b]
                sides += [(fa * fb).sum(axis=1, keepdims=True), fa * fb, np.abs(fa - fb), fa + fb]
                alone = np.concatenate([alone, features], axis=1)
        return cls(number, alone, found, np.concatenate([together, *sides], axis=1), contact)


def membership(number: Int[ndarray, " n"]) -> csr_matrix:
    """(groups, n): 1 where a row is of a group; -1 is of none."""
    rows = np.flatnonzero(number >= 0)
    return csr_matrix((np.ones(len(rows)), (number[rows], rows)), (int(number.max(initial=-1)) + 1, len(number)))


def _differences(voxels: Voxels, pairs: Int[ndarray, "e 2"]) -> Float[ndarray, " e"]:
    a, b = pairs.T
    angle = 1 - (voxels.normal[a] * voxels.normal[b]).sum(axis=1)
    bulges = ((voxels.normal[b] - voxels.normal[a]) * (voxels.position[b] - voxels.position[a])).sum(axis=1) > 0
    colour = np.linalg.norm(voxels.colour[a] - voxels.colour[b], axis=1)
    return np.where(bulges, CONVEX * angle, angle) + COLOUR * colour


def felzenszwalb(count: int, pairs: Int[ndarray, "e 2"], differences: Float[ndarray, " e"]) -> Int[ndarray, " n"]:
    """Efficient graph-based segmentation (Felzenszwalb and Huttenlocher, 2004): each row's segment, counted from 0.

    Two segments are joined where they differ no more than each does in itself, with some allowance while it is small.
    """
    order = np.argsort(differences, kind="stable")
    edges = list(zip(*pairs[order].T.tolist(), differences[order].tolist(), strict=True))
    parent, size, inner = list(range(count)), [1] * count, [0.0] * count

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for a, b, difference in edges:
        a, b = root(a), root(b)
        if a != b and difference <= min(inner[a] + TIGHT / size[a], inner[b] + TIGHT / size[b]):
            parent[b], size[a], inner[a] = a, size[a] + size[b], difference
    for a, b, _ in edges:
        a, b = root(a), root(b)
        if a != b and min(size[a], size[b]) < LEAST:
            parent[b], size[a] = a, size[a] + size[b]
    return np.unique([root(node) for node in range(count)], return_inverse=True)[1]


def _alone_cues(voxels: Voxels, members: csr_matrix) -> Float[ndarray, "m 14"]:
    size = np.asarray(members.sum(axis=1))

    def mean(values: Float[ndarray, "n k"]) -> Float[ndarray, "m k"]:
        return (members @ values) / size

    normal, centre = mean(voxels.normal), mean(voxels.position)
    upright, flat = normal @ voxels.up, np.linalg.norm(normal, axis=1)
    spread = np.sqrt(np.maximum(mean(voxels.position**2) - centre**2, 0).sum(axis=1))
    low, high = bounds(voxels.height[:, None], members)[..., 0]
    below = np.percentile(voxels.height, 98) - high  # the ceiling
    many = np.log(size[:, 0])
    on_floor, on_ceiling = np.exp(-((low / 0.1) ** 2)) * upright, -np.exp(-((below / 0.1) ** 2)) * upright
    shape = [upright, np.abs(upright), flat, many, low, below, high - low, np.log(spread + 0.01), flat * many]
    return np.concatenate([np.stack([*shape, on_floor, on_ceiling], axis=1), mean(voxels.colour)], axis=1)


def bounds(values: Float[ndarray, "n k"], members: csr_matrix) -> Float[ndarray, "2 m k"]:
    """The least and the greatest values in each group, none of which may be empty."""
    ordered = values[members.indices]
    return np.stack([cut.reduceat(ordered, members.indptr[:-1], axis=0) for cut in (np.minimum, np.maximum)])


def _together_cues(
    voxels: Voxels,
    members: csr_matrix,
    border: Int[ndarray, "e 2"],
    pairs: Int[ndarray, "p 2"],
    of_pair: Int[ndarray, " e"],
    contact: Int[ndarray, " p"],
) -> Float[ndarray, "p 11"]:
    (a, b), (i, j) = border.T, pairs.T
    size = np.asarray(members.sum(axis=1)).ravel()
    normal, colour = ((members @ values) / size[:, None] for values in (voxels.normal, voxels.colour))
    flat = np.linalg.norm(normal, axis=1)
    apart = voxels.position[b] - voxels.position[a]
    apart /= np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-12)

    def mean(values: Float[ndarray, " e"]) -> Float[ndarray, " p"]:
        return np.bincount(of_pair, values, len(pairs)) / contact

    seen = csr_matrix((members @ voxels.frames) > 0, dtype=np.float64)
    both = np.asarray(seen[i].multiply(seen[j]).sum(axis=1)).ravel()
    views = np.asarray(seen.sum(axis=1)).ravel()
    smaller, larger = np.minimum(size[i], size[j]), np.maximum(size[i], size[j])
    cues = [
        np.log(contact / np.sqrt(smaller)),
        mean((voxels.normal[a] * voxels.normal[b]).sum(axis=1)),
        mean(((voxels.normal[b] - voxels.normal[a]) * apart).sum(axis=1)),
        mean(np.linalg.norm(voxels.colour[a] - voxels.colour[b], axis=1)),
        np.linalg.norm(colour[i] - colour[j], axis=1),
        both / np.maximum(views[i] + views[j] - both, 1),
        np.log(smaller),
        np.log(larger),
        (normal[i] * normal[j]).sum(axis=1),
        np.maximum(flat[i], flat[j]),
        np.minimum(flat[i], flat[j]),
    ]
    return np.stack(cues, axis=1)
