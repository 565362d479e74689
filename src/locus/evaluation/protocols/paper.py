"""The paper's three tables in its own protocol, from Matterport3D and SparsePlanes' pairs of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from locus.evaluation.outcome import Benchmark, Outcome
from locus.evaluation.protocols.sparse_planes import SparsePlanes
from locus.evaluation.published import RELATIVE_POSE
from locus.evaluation.retrieval import Retrieval
from locus.evaluation.scene_patches import EvaluationError
from locus.evaluation.segmentation import Segmentation
from locus.evaluation.table import Table
from locus.opening import read_text
from locus.scenes import Scene, SceneReading

LEVEL = "_i1_"  # in the names of images whose camera is neither tilted up nor down; the authors take no others
SIZE = "Every model sees images of its own size, not of 320×256 pixels."
DEPTH = "Depth is Matterport3D's own; the authors render it anew from the mesh."


@dataclass(frozen=True)
class PaperRetrieval(Retrieval):
    """Table 1, of level images."""

    def load(self, path: Path, reading: SceneReading) -> Scene:
        return _level(super().load(path, reading))


@dataclass(frozen=True)
class PaperSegmentation(Segmentation):
    """Table 2, of level images; the probe is fitted to the images that it is scored on, as the authors do."""

    def load(self, path: Path, reading: SceneReading) -> Scene:
        return _level(super().load(path, reading))


def _level(scene: Scene) -> Scene:
    kept = [source for source in scene.sources if LEVEL in source.name]
    if not kept:
        raise EvaluationError(f"{scene.name} has no level image, whose names are PANORAMA{LEVEL}0.jpg and the like")
    return replace(scene, sources=kept)


@dataclass(frozen=True)
class PaperTable:
    """One of the three: what it is measured by, on which scenes, and how that deviates from the paper."""

    benchmark: Benchmark
    scenes: Mapping[str, Sequence[Path]]
    deviations: tuple[str, ...]

    def tables(self, outcome: Outcome) -> list[Table]:
        """The benchmark's, the first with the deviations below it; the paper's own figures come last."""
        first, *others = self.benchmark.tables(outcome)
        said = [f"Deviates from the paper: {deviation}" for deviation in self.deviations]
        more = [RELATIVE_POSE] if isinstance(self.benchmark, SparsePlanes) else []
        return [replace(first, notes=[*first.notes, *said]), *others, *more]


def paper_tables(matterport: Path, pairs: Path, batches: int) -> list[PaperTable]:
    """All three.

    Args:
        matterport: A folder of houses, with the authors' train_scenes.txt, val_scenes.txt and test_scenes.txt.
        pairs: SparsePlanes' folder.
        batches: Of each house, for the first table.
    """
    seen, unseen = houses(matterport, "train"), houses(matterport, "val")
    return [
        PaperTable(
            PaperRetrieval(batches=batches),
            {"unseen": unseen, "training": seen},
            (f"{batches} fixed batches of 16 overlapping images a house, not a pass over all images.", SIZE, DEPTH),
        ),
        PaperTable(
            PaperSegmentation(split="same-images"),
            {"unseen": houses(matterport, "test")},
            (
                "Counted in patches of one object, not in pixels; unlabelled ones are left out, not a class.",
                "The probe is fitted until it converges (L-BFGS), not for 1000 epochs of Adam.",
                SIZE,
            ),
        ),
        PaperTable(
            SparsePlanes(rule="paper"),
            {"unseen": [pairs]},
            ("RANSAC is PoseLib's; SuperPoint keeps its 256 dimensions, and is not reduced to 64.", SIZE),
        ),
    ]


def houses(matterport: Path, part: str) -> list[Path]:
    """The houses of a split."""
    file = matterport / f"{part}_scenes.txt"
    if not file.is_file():
        raise EvaluationError(
            f"{file} is missing: the names of the {part} houses, one a line, as the paper's code has them"
        )
    folders = [matterport / name for name in read_text(file).split()]
    missing = [folder for folder in folders if not folder.is_dir()]
    if missing:
        raise EvaluationError(f"{file} names {len(folders)} houses, of which {len(missing)} are missing: {missing[0]}")
    return folders
