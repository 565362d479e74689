"""What the patches of a labelled scene show, on the grid that every method is asked about."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.evaluation.scene_patches import ScenePatches
from locus.scenes.scene import LabelClass
from locus.scenes.visibility import each_frame
from locus.tasks.patch_labels import (
    LabelledPatches,
    Targets,
    class_targets,
    majority_labels,
    object_targets,
    same_names,
)


@dataclass(frozen=True, eq=False)
class PatchTruth:
    """What the patches of a scene show."""

    targets: Targets
    labels: Int[ndarray, "frames rows columns"]
    """Ids of `classes`, 0 where a patch straddles or is unlabelled."""

    @property
    def classes(self) -> tuple[LabelClass, ...]:
        return self.targets.classes

    @classmethod
    def of(cls, patches: ScenePatches, *, objects: bool = True) -> "PatchTruth":
        """Stuff by class, and things one by one or by class, as the scene's labels say."""
        rows = labelled_rows(patches)
        targets = (object_targets if objects else class_targets)(patches.scene, [patches.indices[row] for row in rows])
        labels = np.zeros((len(patches), *patches.grid), np.int64)
        for row in rows:
            labels[row] = majority_labels(targets.of(patches.frame(row)), patches.grid)
        return cls(targets, labels)

    def labelled(self, features: Tensor, frames: Bool[ndarray, " frames"]) -> LabelledPatches:
        """The labelled patches of some frames, to fit a probe to."""
        labels = torch.from_numpy(self.labels)
        kept = (labels > 0) & torch.from_numpy(frames)[:, None, None]
        number = torch.arange(len(labels))[:, None, None].expand(labels.shape)
        return LabelledPatches(
            features[kept], labels[kept], number[kept], self.classes, len(labels), int((labels == 0).sum())
        )

    def one_hot(self, classes: Sequence[LabelClass]) -> Float[Tensor, "frames rows columns k"]:
        """The ceiling's features: which of the classes, by name, a patch shows."""
        numbered = [LabelClass(number, label.name, label.kind) for number, label in enumerate(classes, 1)]
        return F.one_hot(torch.from_numpy(same_names(self.classes, numbered)[self.labels]), len(classes) + 1).float()


def labelled_rows(patches: ScenePatches) -> list[int]:
    """Frames (rows) whose label maps can be read; the others count as unlabelled, and are told in a warning."""
    every = list(each_frame(lambda frame: (frame.semantic is None, frame.instance is None), patches.scene))
    readings = [every[index] for index in patches.indices]
    unreadable = [reading for reading in readings if isinstance(reading, LocusError)]
    if unreadable:
        warnings.warn(
            f"{patches.scene.name}: labels of {len(unreadable)} of {len(patches)} frames are left out: {unreadable[0]}",
            stacklevel=2,
        )
    return [row for row, reading in enumerate(readings) if not isinstance(reading, LocusError)]
