"""Several maps as one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import block_diag, csr_matrix

from locus.landmarks.arrays import joined, take
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.selection import spread


def merge(maps: Sequence[LandmarkMap]) -> LandmarkMap:
    """One map of all the places of several maps.

    Places of the same name are the same world: where two of their landmarks are closer than their radius, the worthier
    one stays. Places of other names stay beside one another.
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
    kept = []
    for place in range(len(places)):
        for scale, radius in enumerate(first.radii):
            rows = np.flatnonzero((together.environment == place) & (together.scale == scale))
            kept.append(rows[spread(together.position[rows], together.worth[rows], radius)])
    rows = np.sort(np.concatenate(kept))
    return LandmarkMap(
        landmarks=take(together, rows),
        frames=joined(frames),
        sightings=csr_matrix(csr_matrix(block_diag([each.sightings for each in maps]))[:, rows], dtype=np.int32),
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
