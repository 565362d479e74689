"""Objects: segments of surface that belong together, found in all views at once, without labels of the scene.

Two logistic curves weigh the cues of `locus.tasks.segments`: is a segment of a thing, or of floor, wall or ceiling; and
are two that touch of one thing. Segments are then joined, the likeliest pair first, by the mean over all that touch.
The curves were fitted to labelled houses, one pair of curves for each model and one for geometry and colour alone;
they stand in objects.json, which `python -m locus.evaluation.objects_fit` writes.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.sparse import csr_matrix

from locus.features.dense import SceneFeatures
from locus.files import load_json
from locus.landmarks.describe import VIEWS
from locus.scenes.scene import LabelClass
from locus.tasks.patch_labels import LabelledPatches
from locus.tasks.probe import fit_probe
from locus.tasks.segments import SurfaceSegments, membership
from locus.tasks.voxels import Voxels

FITTED = Path(__file__).with_suffix(".json")
GEOMETRY = "geometry"  # the curves for models that have none
THING, SAME = 0.4, 0.5  # probabilities at which segments are of things, and of one; chosen on houses 2000 to 2003
LEAST = 10  # voxels of an object
L2 = 0.01


@dataclass(frozen=True, eq=False)
class Curve:
    """A logistic curve."""

    weight: Float[ndarray, " c"]
    bias: float

    def __call__(self, cues: Float[ndarray, "n c"]) -> Float[ndarray, " n"]:
        return 1 / (1 + np.exp(-(cues @ self.weight + self.bias).clip(-30, 30)))

    @classmethod
    def fit(cls, cues: Float[ndarray, "n c"], true: Bool[ndarray, " n"]) -> "Curve":
        """The one that tells the true rows best, weights drawn to zero where cues are of equal spread."""
        mean, spread = cues.mean(axis=0), cues.std(axis=0) + 1e-6
        standard = torch.from_numpy((cues - mean) / spread).float()
        labels = torch.from_numpy(true.astype(np.int64)) + 1
        classes = (LabelClass(1, "no", "stuff"), LabelClass(2, "yes", "thing"))
        probe = fit_probe(LabelledPatches(standard, labels, torch.zeros_like(labels), classes, 1, 0), l2=L2)
        weight, bias = (probe.weight[1] - probe.weight[0]).numpy(), float(probe.bias[1] - probe.bias[0])
        return cls(weight / spread, float(bias - (weight / spread) @ mean))


@dataclass(frozen=True, eq=False)
class Grouping:
    """How segments are grouped: both curves, and whether they know features."""

    thing: Curve
    same: Curve
    by_features: bool

    @classmethod
    def of(cls, fingerprint: str) -> "Grouping":
        """Of a model, or of geometry and colour alone if none was fitted for it."""
        fitted = load_json(FITTED)
        name = fingerprint if fingerprint in fitted else GEOMETRY
        curves = (Curve(np.array(fitted[name][each][1:]), fitted[name][each][0]) for each in ("thing", "same"))
        return cls(*curves, name != GEOMETRY)

    @classmethod
    def fit(cls, scenes: Sequence[tuple[SurfaceSegments, Int[ndarray, " m"]]], by_features: bool) -> "Grouping":
        """From segments, and the thing that each is of, 0 for floor, wall and ceiling, -1 where it is not known."""
        things, pairs = [], []
        for segments, truth in scenes:
            a, b = truth[segments.pairs].T
            known = (a >= 0) & (b >= 0)
            things.append((segments.alone[truth >= 0], truth[truth >= 0] > 0))
            pairs.append((segments.together[known], (a == b)[known]))
        return cls(*(Curve.fit(*map(np.concatenate, zip(*each, strict=True))) for each in (things, pairs)), by_features)

    def described(self) -> dict[str, list[float]]:
        """For `FITTED`."""
        curves = {"thing": self.thing, "same": self.same}
        return {
            name: [round(value, 5) for value in (each.bias, *each.weight.tolist())] for name, each in curves.items()
        }

    def objects(self, voxels: Voxels, seen: SceneFeatures) -> "Objects":
        """The objects of a scene, the surest first."""
        segments = SurfaceSegments.of(voxels, seen if self.by_features else None)
        sure, same = self.thing(segments.alone), self.same(segments.together)
        joined = _joined(segments, sure >= THING, same)
        number = joined[segments.number]
        members = membership(number)
        size = np.asarray(members.sum(axis=1)).ravel()
        confidence = (members @ sure[segments.number]) / np.maximum(size, 1)
        views = np.diff(csr_matrix(members @ voxels.frames).indptr)
        kept = np.flatnonzero((size >= LEAST) & (views >= VIEWS))
        order = kept[np.argsort(-confidence[kept], kind="stable")]
        renumbered = np.full(len(size) + 1, -1)  # the last is what is of no object: number -1
        renumbered[order] = np.arange(len(order))
        return Objects(renumbered[number], confidence[order])


@dataclass(frozen=True, eq=False)
class Objects:
    """The things of a scene."""

    number: Int[ndarray, " voxels"]
    """Each voxel's object, -1 for none."""
    confidence: Float[ndarray, " k"]
    """The probability that it is a thing, and not floor, wall or ceiling; mean over its voxels."""

    def __len__(self) -> int:
        return len(self.confidence)


def _joined(segments: SurfaceSegments, things: Bool[ndarray, " m"], same: Float[ndarray, " p"]) -> Int[ndarray, " m"]:
    """Each segment's group, -1 for what is no thing: average linkage over the pairs that touch."""
    group = list(range(len(segments)))
    links: list[dict[int, tuple[float, int]]] = [{} for _ in group]
    waiting = []
    weighed = (same * segments.contact).tolist()
    for (a, b), total, contact in zip(segments.pairs.tolist(), weighed, segments.contact.tolist(), strict=True):
        if things[a] and things[b]:
            links[a][b] = links[b][a] = (total, contact)
            waiting.append((-total / contact, a, b))
    heapq.heapify(waiting)
    while waiting:
        negative, a, b = heapq.heappop(waiting)
        if -negative < SAME:
            break
        if b not in links[a] or -links[a][b][0] / links[a][b][1] != negative:
            continue  # one of the two has been joined with another since
        for other, (total, contact) in links[b].items():
            del links[other][b]
            if other != a:
                before = links[a].get(other, (0.0, 0))
                links[a][other] = links[other][a] = (before[0] + total, before[1] + contact)
                heapq.heappush(waiting, (-links[a][other][0] / links[a][other][1], a, other))
        links[b] = {}
        group[b] = a
    for node in range(len(group)):
        while group[node] != group[group[node]]:
            group[node] = group[group[node]]
    return np.where(things, np.unique(group, return_inverse=True)[1], -1)
