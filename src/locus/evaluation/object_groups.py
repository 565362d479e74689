"""Objects: are the things of a scene found as such, its rooms told apart, and things known again on a later visit?

*Groups*: objects against the labelled things, on voxels. *Rooms*: against the plan of a generated house, which
`locus houses` writes beside its folder. *Again*: each labelled thing of a house is looked for among those of a visit of
the same house (NAME-visit-NUMBER), which moved some things and changed the light.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.sparse import csr_matrix

from locus.evaluation.methods import Competitor, ModelMethod
from locus.evaluation.outcome import Benchmark, Outcome
from locus.evaluation.scene_patches import EvaluationError, ScenePatches, grid_of
from locus.evaluation.table import Cell, Column, Table
from locus.features.dense import SceneFeatures, scene_features
from locus.files import load_json
from locus.geometry import transform
from locus.scenes import Scene
from locus.scenes.collection import find_scenes, open_scenes
from locus.tasks.objects import GEOMETRY, LEAST, Grouping
from locus.tasks.rooms import rooms
from locus.tasks.same_thing import thing_size
from locus.tasks.segments import SurfaceSegments, bounds, membership
from locus.tasks.voxels import Voxels, voxels

OVERLAPS = (0.25, 0.5)  # intersection over union at which an object is a thing
STEP = 2  # pixels between those whose labels vote for a voxel's


class GeometryAlone(Competitor):
    """No features: geometry and colour."""

    label = "geometry and colour alone"
    fingerprint: ClassVar[str] = GEOMETRY


@dataclass(frozen=True)
class ObjectGroups(Benchmark):
    """Are the things of a scene found as such, its rooms told apart, and things known again on a later visit?

    The word `geometry` groups without features. Scenes named HOUSE-visit-NUMBER are later visits of HOUSE.
    """

    curves: tuple[str, ...] = ()
    """Labelled scenes that every method's grouping is fitted to. By default the groupings that come with LoCUS."""

    name = "objects"
    together = True

    def words(self, given: Sequence[str]) -> Mapping[str, Callable[[], Competitor]]:
        """Geometry alone."""
        return {"geometry": GeometryAlone}

    def check(self, patches: ScenePatches) -> None:
        """Refuse a scene without things."""
        if patches.frame(0).instance is None:
            raise EvaluationError(f"{patches.scene.name} has no labelled things, which objects are compared with")

    def measure(self, method: Competitor, scenes: Sequence[ScenePatches]) -> dict[str, Any]:
        """Groups and rooms of every scene, and things known again between visits."""
        grouping = self.grouping(method)
        found = {patches.scene.name: _Looked(method, patches.scene) for patches in scenes}
        visits = {name: match[1] for name in found if (match := re.fullmatch(r"(.+)-visit-\d+", name))}
        groups = {name: each.groups(grouping) for name, each in found.items() if name not in visits}
        again = [
            thing
            for later, first in visits.items()
            if first in found
            for thing in _known_again(found[first], found[later])
        ]
        rooms = [each.room_agreement for name, each in found.items() if name not in visits]
        return {"groups": groups, "again": again, "rooms": [value for value in rooms if value is not None]}

    def grouping(self, method: Competitor) -> Grouping:
        """Fitted for this method, to the same scenes as for all others."""
        if not self.curves:
            grouping = Grouping.of(method.fingerprint)
            if grouping.by_features != isinstance(method, ModelMethod):
                raise EvaluationError(
                    f"no grouping by {method.label} comes with LoCUS: fit one, with --curves SCENE..."
                )
            return grouping
        return fitted(method, [_Looked(method, scene) for scene in _opened(self.curves)])

    def tables(self, outcome: Outcome) -> list[Table]:
        """One of each kind."""
        columns = [*(Column(f"AP at IoU {overlap:g}") for overlap in OVERLAPS), Column("V-measure")]
        columns += [Column("rooms, ARI"), Column("known again"), Column("known again, moved")]

        def cells(method: Competitor) -> list[Cell] | None:
            if not outcome.of(method.label):
                return None
            measured = outcome.of(method.label)[0].measured
            groups = list(measured["groups"].values())
            ranked = [[pair for group in groups for pair in group["ranked"][at]] for at in range(len(OVERLAPS))]
            truths = sum(group["things"] for group in groups)
            moved = [thing["right"] for thing in measured["again"] if thing["moved"]]
            every = [thing["right"] for thing in measured["again"]]
            return [
                *(ranked_precision(pairs, truths) for pairs in ranked),
                float(np.mean([group["v"] for group in groups])) if groups else None,
                float(np.mean(measured["rooms"])) if measured["rooms"] else None,
                float(np.mean(every)) if every else None,
                float(np.mean(moved)) if moved else None,
            ]

        measured = outcome.parts[0].measured
        notes = [
            f"Scenes: {len(measured['groups'])}, with {sum(each['things'] for each in measured['groups'].values())} "
            f"things of at least {LEAST} voxels. AP: objects of all scenes, the surest first. V-measure: over the "
            "voxels of things. Rooms: adjusted Rand index of all voxels inside the plan's rooms, mean over scenes.",
            f"Known again: the most similar thing of a later visit is the same, of {len(measured['again'])} things, "
            f"{sum(thing['moved'] for thing in measured['again'])} of them moved; things as labelled.",
        ]
        return [Table("Objects and rooms", columns, outcome.rows(cells), notes)]


class _Looked:
    """A scene as a method sees it, and what is true of it."""

    def __init__(self, method: Competitor, scene: Scene) -> None:
        self.scene = scene
        if isinstance(method, ModelMethod):
            seen, self.scale = scene_features(method.model, scene, method.cache), method.scale(0.6)
            self.seen = seen if method.model.source else replace(seen, kinds=None)  # baselines are made, not loaded
        else:
            self.seen, self.scale = _without_features(scene), None
        self.voxels, self.things = surfaces(scene, self.seen.grid)

    def groups(self, grouping: Grouping) -> dict[str, Any]:
        """How objects and things agree."""
        objects = grouping.objects(self.voxels, self.seen)
        ids, truth = np.unique(self.things, return_inverse=True)
        counts = np.bincount(truth)
        both = np.zeros((len(objects) + 1, len(ids)))
        np.add.at(both, (objects.number, truth), 1)
        overlap = both[:-1] / (both[:-1].sum(axis=1, keepdims=True) + counts - both[:-1])
        counted = (ids > 0) & (counts >= LEAST)
        on_things = self.things > 0
        return {
            "things": int(counted.sum()),
            "ranked": [
                list(zip(objects.confidence.tolist(), matched(overlap[:, counted], least), strict=True))
                for least in OVERLAPS
            ],
            "v": v_measure(self.things[on_things], objects.number[on_things]),
        }

    @property
    def room_agreement(self) -> float | None:
        """Of rooms and plan; None where the plan is not known."""
        told = _beside(self.scene).get("rooms")
        if told is None:
            return None
        corners = np.array([room["inner"] for room in told])
        x, y = self.voxels.position[:, :1], self.voxels.position[:, 1:2]
        inside = (x > corners[:, 0]) & (y > corners[:, 1]) & (x < corners[:, 2]) & (y < corners[:, 3])
        known = inside.any(axis=1)
        return adjusted_rand(inside.argmax(axis=1)[known], rooms(self.voxels, self.seen).number[known])

    def described(self) -> tuple[Int[ndarray, " k"], Float[ndarray, "k c"]]:
        """The things of at least so many voxels, and what each is known by: features, kinds and size, or its shape."""
        ids, counts = np.unique(self.things[self.things > 0], return_counts=True)
        ids = ids[counts >= LEAST]
        number = np.searchsorted(ids, self.things).clip(max=len(ids) - 1)
        members = membership(np.where(ids[number] == self.things, number, -1))
        if self.scale is not None:
            features = self.voxels.shown(self.seen.features[self.scale], members)
            if self.seen.kinds is None:
                return ids, features
            parts = np.split(members.indices, members.indptr[1:-1])
            sizes = np.array([thing_size(self.voxels.position[part], self.voxels.up) for part in parts])
            return ids, np.concatenate([features, self.voxels.shown(self.seen.kinds, members), sizes], axis=1)
        low, high = bounds(self.voxels.position, members)
        colour = (members @ self.voxels.colour) / (size := np.asarray(members.sum(axis=1)))
        return ids, np.concatenate([np.sort(high - low, axis=1), np.log(size) / 4, colour * 2], axis=1)


def _known_again(first: _Looked, later: _Looked) -> list[dict[str, bool]]:
    changes = _beside(later.scene).get("changes", [])
    moved = {change["instance"] for change in changes if change["change"] == "moved"}
    (before, asked), (after, offered) = first.described(), later.described()
    nearest = np.linalg.norm(asked[:, None] - offered[None], axis=-1).argmin(axis=1)
    return [
        {"right": bool(after[found] == thing), "moved": int(thing) in moved}
        for thing, found in zip(before, nearest, strict=True)
        if thing in after
    ]


def fitted(method: Competitor, scenes: Sequence[_Looked]) -> Grouping:
    """A grouping fitted to labelled scenes."""
    by_features = isinstance(method, ModelMethod)
    labelled = []
    for each in scenes:
        segments = SurfaceSegments.of(each.voxels, each.seen if by_features else None)
        ids, truth = np.unique(each.things, return_inverse=True)
        votes = np.zeros((len(segments), len(ids)))
        np.add.at(votes, (segments.number, truth), 1)
        labelled.append((segments, ids[votes.argmax(axis=1)]))
    return Grouping.fit(labelled, by_features)


@lru_cache(maxsize=1)
def _opened(patterns: tuple[str, ...]) -> list[Scene]:
    """Once for all methods, as their surfaces are the same."""
    return open_scenes(find_scenes(patterns))


@lru_cache(maxsize=32)
def surfaces(scene: Scene, grid: tuple[int, int]) -> tuple[Voxels, Int[ndarray, " n"]]:
    """The voxels of a scene, and the thing that most pixels of each show, 0 for none."""
    found = voxels(_without_features(scene, grid))
    things = [label.id for label in scene.classes if label.kind == "thing"]
    rows, labels = [], []
    for frame in scene:
        if frame.semantic is None or frame.instance is None:
            raise EvaluationError(f"{scene.name}: frame {frame.name} has no labelled things")
        pixels = frame.camera.pixel_grid()[::STEP, ::STEP]
        depth = np.where(frame.depth > 0, frame.depth, np.nan)[::STEP, ::STEP]
        points = transform(frame.world_from_camera, frame.camera.unproject(pixels, depth))
        rows.append(found.rows(points.reshape(-1, 3)))
        labels.append(np.where(np.isin(frame.semantic, things), frame.instance, 0)[::STEP, ::STEP].ravel())
    rows, labels = np.concatenate(rows), np.concatenate(labels)
    votes = csr_matrix((np.ones((rows >= 0).sum()), (rows[rows >= 0], labels[rows >= 0])))
    votes.resize(len(found), votes.shape[1])
    return found, np.asarray(votes.argmax(axis=1)).ravel()


def _without_features(scene: Scene, grid: tuple[int, int] | None = None) -> SceneFeatures:
    camera = scene[0].camera
    rows, columns = grid or grid_of(camera.width, camera.height)
    points, features = (
        np.zeros((len(scene), rows, columns, 3), np.float32),
        torch.zeros(1, len(scene), rows, columns, 1),
    )
    return SceneFeatures(scene, list(range(len(scene))), points, features)


def _beside(scene: Scene) -> dict[str, Any]:
    """What the generator of a house tells beside its folder."""
    told = None if scene.folder is None else scene.folder.with_name(f"{scene.folder.name}.json")
    return load_json(told) if told is not None and told.is_file() else {}


def matched(overlap: Float[ndarray, "objects things"], least: float) -> list[bool]:
    """Which objects, the surest first, are the first that overlap a thing so well."""
    free: Bool[ndarray, " things"] = np.ones(overlap.shape[1], bool)
    right = []
    for row in overlap:
        best = int(np.where(free, row, -1).argmax()) if free.any() else -1
        right.append(best >= 0 and row[best] >= least)
        if right[-1]:
            free[best] = False
    return [bool(each) for each in right]


def ranked_precision(pairs: Sequence[tuple[float, bool]], truths: int) -> float:
    """Average precision of (confidence, right), over so many true things."""
    right = np.array([each for _, each in sorted(pairs, key=lambda pair: -pair[0])], float)
    return float((right * right.cumsum() / np.arange(1, len(right) + 1)).sum() / max(truths, 1))


def _table_of(a: Int[ndarray, " n"], b: Int[ndarray, " n"]) -> Float[ndarray, "k l"]:
    rows, columns = (np.unique(each, return_inverse=True)[1] for each in (a, b))
    return csr_matrix((np.ones(len(a)), (rows, columns))).toarray()


def v_measure(truth: Int[ndarray, " n"], groups: Int[ndarray, " n"]) -> float:
    """The harmonic mean of homogeneity and completeness (Rosenberg and Hirschberg, 2007)."""
    table = _table_of(truth, groups)

    def entropy(counts: Float[ndarray, "*k"]) -> float:
        shares = counts[counts > 0] / len(truth)
        return float(-(shares * np.log(shares)).sum())

    whole, own, other = entropy(table), entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    return 1.0 if own + other == 0 else 2 * (own + other - whole) / (own + other)


def adjusted_rand(truth: Int[ndarray, " n"], groups: Int[ndarray, " n"]) -> float:
    """Pairs told apart or kept together rightly, beyond chance (Hubert and Arabie, 1985)."""
    table = _table_of(truth, groups)

    def pairs(counts: Float[ndarray, "*k"]) -> float:
        return float((counts * (counts - 1) / 2).sum())

    together, own, other = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    chance = own * other / max(pairs(np.array([float(len(truth))])), 1)
    most = (own + other) / 2
    return 1.0 if most == chance else (together - chance) / (most - chance)
