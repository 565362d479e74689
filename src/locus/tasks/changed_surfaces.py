"""Surfaces of one visit that frames of another see through: what has gone, or, the other way round, what is new."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.special import expit

from locus.landmarks.arrays import Frames
from locus.tasks.seen_through import Votes, surface_points, votes

APART = 0.15  # metres from any surface of the other visit, at least: nearer ones may be the same, seen with errors
GAP = 0.4  # metres between parts of one thing, at most
LEAST = 4  # voxels of a surface worth a look
FRAMES = 2  # at least, that show it, and that see through it
MOSTLY = 0.3  # of a surface that a frame must see, or see through, to be named as evidence
# A logistic fit to visits of houses 4006 to 4008 that were misaligned by up to 0.12 m and 1.5°; see
# `python benchmarks/changes_fit.py`, which fits it to others.
OFFSET, BY_DISTANCE, BY_FRAMES = -5.9, 16.5, 1.3


@dataclass(frozen=True, eq=False)
class ChangedSurface:
    """A surface that is there on one visit, and not on the other."""

    points: Float[ndarray, "n 3"]
    """One a voxel, metres in the environment's world."""
    shown_by: Int[ndarray, " a"]
    """Frames of its own visit that see most of it, best first."""
    missed_by: Int[ndarray, " b"]
    """Frames of the other visit that see through it, best first."""
    evidence: tuple[float, float]
    """Logarithms of its distance from the other visit's surfaces, beside the least, and of the frames that miss it."""

    @property
    def probability(self) -> float:
        """That it is a change, and not an error of depth or pose."""
        return float(expit(OFFSET + BY_DISTANCE * self.evidence[0] + BY_FRAMES * self.evidence[1]))

    @property
    def box(self) -> Float[ndarray, " 6"]:
        """Its least and its greatest corner."""
        return np.concatenate([self.points.min(axis=0), self.points.max(axis=0)])


def changed_surfaces(mine: Frames, other: Frames) -> list[ChangedSurface]:
    """The surfaces which the frames of one visit see, and those of another see through, in one world; large ones first.

    A point counts if its own visit does not contradict itself there, and the other hardly sees anything there or near.
    """
    points = surface_points(mine)
    own, later = votes(points, mine), votes(points, other)
    seen, through = count(own)
    still, missed = count(later)
    apart = KDTree(surface_points(other)).query(points)[0]
    rows = np.flatnonzero((missed > 0) & (2 * still <= missed) & (3 * through <= seen) & (apart > APART))
    if not len(rows):
        return []
    tree = KDTree(points[rows])
    pieces, piece = connected_components(tree.sparse_distance_matrix(tree, GAP))
    found = [rows[piece == number] for number in range(pieces)]
    surfaces = [_surface(points, part, own, later, apart) for part in found if len(part) >= LEAST]
    witnessed = [each for each in surfaces if min(len(each.shown_by), len(each.missed_by)) >= FRAMES]
    return sorted(witnessed, key=lambda surface: -len(surface.points))


def count(said: Votes) -> tuple[Int[ndarray, " n"], Int[ndarray, " n"]]:
    """How many frames see each point, and how many see through it."""
    return np.asarray(said.seen.sum(axis=0)).ravel(), np.asarray(said.through.sum(axis=0)).ravel()


def _surface(
    points: Float[ndarray, "n 3"], part: Int[ndarray, " k"], own: Votes, later: Votes, apart: Float[ndarray, " n"]
) -> ChangedSurface:
    missed_by = _named(later.through, part)
    evidence = float(np.log(apart[part].mean() / APART)), float(np.log(max(len(missed_by), 1)))
    return ChangedSurface(points[part], _named(own.seen, part), missed_by, evidence)


def _named(said: csr_matrix, part: Int[ndarray, " k"]) -> Int[ndarray, " frames"]:
    """The frames that say it of most of a surface, those that say it of more first."""
    share = np.asarray(said[:, part].sum(axis=1)).ravel() / len(part)
    order = np.argsort(-share, kind="stable")
    return order[share[order] >= MOSTLY]
