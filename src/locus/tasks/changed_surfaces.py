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
GAP = 0.3  # metres between parts of one thing, at most
LEAST = 4  # voxels of a surface worth a look
MOSTLY = 0.3  # of a surface that a frame must see, or see through, to be named as evidence
# Fitted to the surfaces that the houses of seeds 4000 to 4005 showed (docs/changes.md): what speaks for a change.
OFFSET, BY_SIZE, BY_FRAMES, BY_DOUBT = -4.0, 1.0, 1.5, -6.0


@dataclass(frozen=True, eq=False)
class ChangedSurface:
    """A surface that is there on one visit, and not on the other."""

    points: Float[ndarray, "n 3"]
    """One a voxel, metres in the environment's world."""
    shown_by: Int[ndarray, " a"]
    """Frames of its own visit that see most of it, best first."""
    missed_by: Int[ndarray, " b"]
    """Frames of the other visit that see through it, best first."""
    probability: float
    """That it is a change, and not an error of depth or pose."""

    @property
    def box(self) -> Float[ndarray, " 6"]:
        """Its least and its greatest corner."""
        return np.concatenate([self.points.min(axis=0), self.points.max(axis=0)])


def changed_surfaces(mine: Frames, other: Frames) -> list[ChangedSurface]:
    """The surfaces which the frames of one visit see, and those of another see through, in one world; large ones first.

    A point counts if its own visit does not contradict itself there, and the other hardly sees anything there.
    """
    points = surface_points(mine)
    own, later = votes(points, mine), votes(points, other)
    seen, through = count(own)
    still, missed = count(later)
    apart = KDTree(surface_points(other)).query(points)[0] > APART
    rows = np.flatnonzero((missed > 0) & (2 * still <= missed) & (3 * through <= seen) & apart)
    if not len(rows):
        return []
    tree = KDTree(points[rows])
    pieces, piece = connected_components(tree.sparse_distance_matrix(tree, GAP))
    found = [rows[piece == number] for number in range(pieces)]
    surfaces = [_surface(points, part, own, later) for part in found if len(part) >= LEAST]
    return sorted(surfaces, key=lambda surface: -len(surface.points))


def count(said: Votes) -> tuple[Int[ndarray, " n"], Int[ndarray, " n"]]:
    """How many frames see each point, and how many see through it."""
    return np.asarray(said.seen.sum(axis=0)).ravel(), np.asarray(said.through.sum(axis=0)).ravel()


def _surface(points: Float[ndarray, "n 3"], part: Int[ndarray, " k"], own: Votes, later: Votes) -> ChangedSurface:
    missed_by = _named(later.through, part)
    doubt = (later.seen[:, part].sum() + own.through[:, part].sum()) / len(part)
    evidence = OFFSET + BY_SIZE * np.log(len(part)) + BY_FRAMES * np.log1p(len(missed_by)) + BY_DOUBT * doubt
    return ChangedSurface(points[part], _named(own.seen, part), missed_by, float(expit(evidence)))


def _named(said: csr_matrix, part: Int[ndarray, " k"]) -> Int[ndarray, " frames"]:
    """The frames that say it of most of a surface, those that say it of more first."""
    share = np.asarray(said[:, part].sum(axis=1)).ravel() / len(part)
    order = np.argsort(-share, kind="stable")
    return order[share[order] >= MOSTLY]
