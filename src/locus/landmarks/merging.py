"""Several maps as one."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, islice

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.sparse import block_diag, csr_matrix
from scipy.spatial import KDTree

from locus.geometry import transform
from locus.landmarks.arrays import Landmarks
from locus.landmarks.chance import with_chance_raised
from locus.landmarks.describe import pooled, views
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.points import for_frames
from locus.landmarks.selection import spread
from locus.rows import joined


def merge(maps: Sequence[LandmarkMap]) -> LandmarkMap:
    """One map of all the environments of several maps.

    Environments of the same name are the same world: where two of their landmarks are closer than their radius, the
    worthier one stays, and gets what was seen of the other. Environments of other names stay beside one another.
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
            one.check_new(one.environment_number(name), other.environment(other.environment_number(name)).frame_names)
    environments, classes = (
        tuple(dict.fromkeys(name for each in maps for name in getattr(each, part)))
        for part in ("environments", "classes")
    )
    landmarks, frames = [], []
    for each in maps:
        number = np.array([environments.index(name) for name in each.environments], np.int32)
        votes = np.zeros((len(each), len(classes)), np.int32)
        votes[:, [classes.index(name) for name in each.classes]] = each.landmarks.votes
        landmarks.append(replace(each.landmarks, environment=number[each.landmarks.environment], votes=votes))
        frames.append(replace(each.frames, environment=number[each.frames.environment]))
    together = joined(landmarks)
    sightings = csr_matrix(block_diag([each.sightings for each in maps]), dtype=np.int32)
    together, sightings = without_twins(together, sightings, first.radii)
    merged = LandmarkMap(
        landmarks=together,
        frames=joined(frames),
        sightings=sightings,
        frame_names=tuple(name for each in maps for name in each.frame_names),
        environments=environments,
        classes=classes,
        radii=first.radii,
        model=first.model,
        provenance={
            **first.provenance,
            "scenes": [scene for each in maps for scene in each.provenance.get("scenes", [])],
            "fingerprints": {scene: name for each in maps for scene, name in each.fingerprints.items()},
        },
        points=for_frames([(len(each.frames), each.points) for each in maps]),
    )
    for name in environments:
        parts = [each for each in maps if name in each.environments]
        if len(parts) > 1:
            merged = with_chance_raised(merged, name, parts)
    return merged


def session_of(world: LandmarkMap, environment: str, session: str, a_from_b: Float[ndarray, "4 4"]) -> LandmarkMap:
    """The map of one recording as a session of an environment of another map, ready to be merged with that.

    `a_from_b` carries its coordinates to those of the environment; the session's name is put before its frames' names.
    """
    if len(world.environments) != 1:
        raise MapError(f"a session is of one environment, and this map has {', '.join(world.environments)}")
    landmarks, frames, points = world.landmarks, world.frames, world.points
    turned = (landmarks.seen_from @ a_from_b[:3, :3].T).astype(np.float32)
    made_from = [
        {**scene, "session of": environment, "a_from_b": a_from_b.tolist()} for scene in world.provenance["scenes"]
    ]
    return replace(
        world,
        landmarks=replace(landmarks, position=transform(a_from_b, landmarks.position), seen_from=turned),
        frames=replace(frames, world_from_camera=a_from_b @ frames.world_from_camera),
        frame_names=tuple(f"{session}/{name}" for name in world.frame_names),
        environments=(environment,),
        provenance={**world.provenance, "scenes": made_from},
        points=None if points is None else replace(points, position=transform(a_from_b, points.position)),
    )


def trajectories(world: LandmarkMap) -> dict[tuple[str, str], dict[str, Float[ndarray, "4 4"]]]:
    """The poses of each recording's frames, by environment and scene: sessions of one environment in one world."""
    scenes = world.provenance.get("scenes", [])
    if sum(scene.get("frames", 0) for scene in scenes) != len(world.frames):
        raise MapError("the map does not say which frames are of which recording; build it again")
    found: dict[tuple[str, str], dict[str, ndarray]] = {}
    frames = iter(zip(world.frames.environment, world.frame_names, world.frames.world_from_camera, strict=True))
    for scene in scenes:
        for environment, name, pose in islice(frames, scene["frames"]):
            of_scene = found.setdefault((world.environments[environment], scene["scene"]), {})
            of_scene[name.removeprefix(f"{scene['scene']}/")] = pose
    return found


def without_twins(landmarks: Landmarks, sightings: csr_matrix, radii: Sequence[float]) -> tuple[Landmarks, csr_matrix]:
    """The landmarks, with sightings, of which none is closer than its radius to another: those that are become one."""
    # Pooling moves landmarks a little, which may bring two closer than their radius again.
    while ((home := _homes(landmarks, radii)) != np.arange(len(landmarks))).any():
        landmarks, sightings = _pooled(landmarks, sightings, home)
    return landmarks, sightings


def _homes(landmarks: Landmarks, radii: Sequence[float]) -> Int[ndarray, " n"]:
    """Where what was seen of each landmark goes: to itself, or to the nearest that stays if a worthier one is close."""
    home = np.arange(len(landmarks))
    for environment in np.unique(landmarks.environment):
        for scale, radius in enumerate(radii):
            rows = np.flatnonzero((landmarks.environment == environment) & (landmarks.scale == scale))
            stays = rows[spread(landmarks.position[rows], landmarks.worth[rows], radius)]
            if len(stays):
                home[rows] = stays[KDTree(landmarks.position[stays]).query(landmarks.position[rows])[1]]
    return home


def _pooled(landmarks: Landmarks, sightings: csr_matrix, home: Int[ndarray, " n"]) -> tuple[Landmarks, csr_matrix]:
    """The landmarks that stay, with the patches of those that go.

    A frame shows what several became as often as it shows the one it shows most: the others' patches may be the same.
    """
    stays, row = np.unique(home, return_inverse=True)
    into = csr_matrix((np.ones(len(home), np.int32), (row, np.arange(len(home)))), (len(stays), len(home)))
    shown = sightings.tocoo()
    order = np.lexsort((-shown.data, row[shown.col], shown.row))  # by frame and landmark, the most first
    frame, column = shown.row[order], row[shown.col][order]
    most = np.unique(np.stack([frame, column]), axis=1, return_index=True)[1]
    kept = (shown.data[order][most], (frame[most], column[most]))
    sightings = csr_matrix(kept, (sightings.shape[0], len(stays)))
    return replace(pooled(landmarks, stays, into), views=views(sightings)), sightings
