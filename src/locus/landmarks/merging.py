"""Several maps as one."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from scipy.sparse import block_diag, csr_matrix
from scipy.spatial import KDTree

from locus.landmarks.arrays import Landmarks, joined, put, take
from locus.landmarks.describe import pooled
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.selection import spread


def merge(maps: Sequence[LandmarkMap]) -> LandmarkMap:
    """One map of all the places of several maps.

    Places of the same name are the same world: where two of their landmarks are closer than their radius, the worthier
    one stays, and gets what was seen of the other. Places of other names stay beside one another.
    """
    if not maps:
        raise MapError("there are no maps to merge")
    first = maps[0]
    for other in maps[1:]:
        if (other.model, other.radii) != (first.model, first.radii):
            raise MapError(
                f"the maps of {', '.join(first.environments)} and of {', '.join(other.environments)} were made with "
                "different models, so their features cannot be compared"
            )
    for one, other in combinations(maps, 2):
        for name in set(one.environments) & set(other.environments):
            one.check_new(one.environment(name), other.place(other.environment(name)).frame_names)
    places, classes = (
        tuple(dict.fromkeys(name for each in maps for name in getattr(each, part)))
        for part in ("environments", "classes")
    )
    landmarks, frames = [], []
    for each in maps:
        number = np.array([places.index(name) for name in each.environments], np.int32)
        votes = np.zeros((len(each), len(classes)), np.int32)
        votes[:, [classes.index(name) for name in each.classes]] = each.landmarks.votes
        landmarks.append(replace(each.landmarks, environment=number[each.landmarks.environment], votes=votes))
        frames.append(replace(each.frames, environment=number[each.frames.environment]))
    together = joined(landmarks)
    sightings = csr_matrix(block_diag([each.sightings for each in maps]), dtype=np.int32)
    # Pooling moves landmarks a little, which may bring two closer than their radius again.
    while ((home := _homes(together, first.radii)) != np.arange(len(together))).any():
        together, sightings = _pooled(together, sightings, home)
    return LandmarkMap(
        landmarks=together,
        frames=joined(frames),
        sightings=sightings,
        frame_names=tuple(name for each in maps for name in each.frame_names),
        environments=places,
        classes=classes,
        radii=first.radii,
        model=first.model,
        provenance={
            **first.provenance,
            "scenes": [scene for each in maps for scene in each.provenance.get("scenes", [])],
        },
    )


def _homes(landmarks: Landmarks, radii: Sequence[float]) -> Int[ndarray, " n"]:
    """Where what was seen of each landmark goes: to itself, or to the nearest that stays if a worthier one is close."""
    home = np.arange(len(landmarks))
    for place in np.unique(landmarks.environment):
        for scale, radius in enumerate(radii):
            rows = np.flatnonzero((landmarks.environment == place) & (landmarks.scale == scale))
            stays = rows[spread(landmarks.position[rows], landmarks.worth[rows], radius)]
            if len(stays):
                home[rows] = stays[KDTree(landmarks.position[stays]).query(landmarks.position[rows])[1]]
    return home


def _pooled(landmarks: Landmarks, sightings: csr_matrix, home: Int[ndarray, " n"]) -> tuple[Landmarks, csr_matrix]:
    """The landmarks that stay, with the patches of those that go added to them."""
    count, stays = len(landmarks), np.unique(home)
    moved = csr_matrix((np.ones(count, np.int32), (np.arange(count), home)), shape=(count, count))
    sightings = csr_matrix((sightings @ moved)[:, stays])
    goes = np.flatnonzero(home != np.arange(count))
    grown = np.isin(stays, home[goes])
    while len(goes):
        into, first = np.unique(home[goes], return_index=True)  # one for each that stays, then the next
        landmarks = put(landmarks, into, pooled(take(landmarks, into), take(landmarks, goes[first])))
        goes = np.delete(goes, first)
    landmarks = take(landmarks, stays)
    # A frame may show several that became one, so views cannot be summed up.
    views = np.where(grown, np.diff(sightings.tocsc().indptr), landmarks.views).astype(np.int32)
    return replace(landmarks, views=views), sightings
