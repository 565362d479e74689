"""What the patches of labelled scenes show: the truth that a linear probe is fitted to and scored against."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int, Int32, Int64
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.scenes import Frame, Scene
from locus.scenes.scene import LabelClass
from locus.tasks.cosegmentation import one_scale

INSTANCES = 2**32  # that a class may have
SHARE = 0.5  # a patch is of a class if more than this share of its pixels is; others straddle, and are left out


@dataclass(frozen=True, eq=False)
class Targets:
    """What is to be told apart in a scene: its classes, or its single objects; ids from 1, 0 is unlabelled."""

    classes: tuple[LabelClass, ...]
    objects: dict[tuple[int, int], int] | None = None
    """Of (class id, instance id), with 0 for the instance of stuff, the id that stands for it; None: classes."""

    def of(self, frame: Frame) -> Int32[ndarray, "height width"]:
        """A frame's map of ids; of a frame without labels, all 0."""
        if frame.semantic is None:
            return np.zeros((frame.camera.height, frame.camera.width), np.int32)
        if self.objects is None:
            return frame.semantic
        stuff = [label for label, instance in self.objects if not instance]
        pairs, inverse = np.unique(_pairs(frame, stuff), return_inverse=True)
        ids = [self.objects.get(divmod(int(pair), INSTANCES), 0) for pair in pairs]
        return np.array(ids, np.int32)[inverse].reshape(frame.semantic.shape)


def labelled_frames(scene: Scene) -> Scene:
    """Those of a scene's frames that have labels."""
    kept = [source for source, frame in zip(scene.sources, scene, strict=True) if frame.semantic is not None]
    return replace(scene, sources=kept)


def class_targets(scene: Scene, indices: Sequence[int] | None = None) -> Targets:
    """The scene's semantic classes; only frames of `indices` are read, up to the first that has labels."""
    indices = range(len(scene)) if indices is None else indices
    if not scene.classes or all(scene[index].semantic is None for index in indices):
        raise LocusError(f"{scene.name} has no labels: there is nothing to learn classes from")
    return Targets(tuple(scene.classes))


def object_targets(scene: Scene, indices: Sequence[int] | None = None) -> Targets:
    """The paper's: stuff by its class, each thing by itself, named `sofa 12`; only frames of `indices` are read."""
    indices = range(len(scene)) if indices is None else indices
    class_targets(scene, indices)
    stuff = [label.id for label in scene.classes if label.kind == "stuff"]
    frames = (frame for frame in map(scene.__getitem__, indices) if frame.semantic is not None)
    pairs = np.unique(np.concatenate([np.unique(_pairs(frame, stuff)) for frame in frames]))
    found = (divmod(int(pair), INSTANCES) for pair in pairs)
    known = {label.id: label for label in scene.classes}
    # A thing whose pixels have no instance cannot be told from its like, so it is unlabelled.
    found = [(label, instance) for label, instance in found if label and (instance or label in stuff)]
    classes = [
        LabelClass(number, known[label].name + (f" {instance}" if instance else ""), known[label].kind)
        for number, (label, instance) in enumerate(found, 1)
    ]
    return Targets(tuple(classes), {pair: number for number, pair in enumerate(found, 1)})


def _pairs(frame: Frame, stuff: Sequence[int]) -> Int64[ndarray, "height width"]:
    """Class and instance of each pixel as one number."""
    if frame.semantic is None or frame.instance is None:
        raise LocusError(f"frame {frame.name} has no instance labels, which tell objects apart")
    instance = np.where(np.isin(frame.semantic, stuff), 0, frame.instance)
    return frame.semantic.astype(np.int64) * INSTANCES + instance


def majority_labels(
    labels: Int[ndarray, "height width"], grid: tuple[int, int], share: float = SHARE
) -> Int32[ndarray, "rows columns"]:
    """The id that more than `share` of a patch's pixels have, 0 (unlabelled) where none does.

    A pixel belongs to the patch its centre lies in. Unlabelled pixels count among a patch's pixels.
    """
    if not 0 <= share < 1:
        raise LocusError(f"the share of a patch that one label must exceed is from 0 to below 1, not {share:g}")
    ids, compact = np.unique(labels, return_inverse=True)
    rows, columns = (
        (np.arange(size) * 2 + 1) * patches // (2 * size) for size, patches in zip(labels.shape, grid, strict=True)
    )
    patch = rows[:, None] * grid[1] + columns
    cells = np.bincount(
        (patch * len(ids) + compact.reshape(labels.shape)).ravel(), minlength=grid[0] * grid[1] * len(ids)
    )
    counts = cells.reshape(-1, len(ids))
    most = counts.argmax(axis=1)
    clear = counts.max(axis=1) > share * counts.sum(axis=1)
    return np.where(clear, ids[most], 0).reshape(grid).astype(np.int32)


@dataclass(frozen=True, eq=False)
class LabelledPatches:
    """Patches whose class is known, of one or several scenes."""

    features: Float[Tensor, "n c"]
    labels: Int64[Tensor, " n"]
    """Ids of `classes`."""
    frames: Int64[Tensor, " n"]
    """Which frame each is from, counted on over all scenes: to keep frames apart for scoring."""
    classes: tuple[LabelClass, ...]
    count: int
    """Of frames, those without a labelled patch too."""
    left_out: int
    """Patches that straddle classes, or are unlabelled."""

    def where(self, frames: Sequence[int]) -> "LabelledPatches":
        """Those of some frames alone."""
        kept = torch.isin(self.frames, torch.as_tensor(list(frames), dtype=torch.int64))
        return replace(self, features=self.features[kept], labels=self.labels[kept], frames=self.frames[kept])


def labelled_patches(
    seen: SceneFeatures, targets: Targets | None = None, scale: int = 0, share: float = SHARE
) -> LabelledPatches:
    """The patches of a scene that show one class of `targets`, by default the scene's semantic classes."""
    targets = class_targets(seen.scene) if targets is None else targets
    labels = np.stack([majority_labels(targets.of(seen.frame(row)), seen.grid, share) for row in range(len(seen))])
    ids = torch.from_numpy(labels.astype(np.int64))
    known = ids > 0
    frames = torch.arange(len(seen))[:, None, None].expand(ids.shape)
    features = one_scale(seen.features, scale)[known]
    return LabelledPatches(features, ids[known], frames[known], targets.classes, len(seen), int((~known).sum()))


def merged(parts: Sequence[LabelledPatches]) -> LabelledPatches:
    """Patches of several scenes; classes are the same where their names are, whatever each scene's ids.

    So objects of several scenes do not go together: `sofa 12` is another one in each.
    """
    kinds = {label.name: label.kind for part in parts for label in part.classes}
    classes = tuple(LabelClass(number, name, kinds[name]) for number, name in enumerate(sorted(kinds), 1))
    labels, frames, first = [], [], 0
    for part in parts:
        labels.append(torch.from_numpy(same_names(part.classes, classes))[part.labels])
        frames.append(part.frames + first)
        first += part.count
    return LabelledPatches(
        torch.cat([part.features for part in parts]),
        torch.cat(labels),
        torch.cat(frames),
        classes,
        first,
        sum(part.left_out for part in parts),
    )


def same_names(given: Sequence[LabelClass], wanted: Sequence[LabelClass]) -> Int64[ndarray, " ids"]:
    """A table from the ids of one list of classes to those of another, by name; 0 where the other has it not."""
    ids = {label.name: label.id for label in wanted}
    table = np.zeros(1 + max((label.id for label in given), default=0), np.int64)
    for label in given:
        table[label.id] = ids.get(label.name, 0)
    return table
