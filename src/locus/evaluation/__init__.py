"""Benchmarks, one file each, and what they share: methods, patches of scenes, tables, the report."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.evaluation.correspondence import Correspondence
    from locus.evaluation.landmark_recall import LandmarkRecall
    from locus.evaluation.localization import Localization
    from locus.evaluation.object_groups import ObjectGroups
    from locus.evaluation.pose import RelativePoses
    from locus.evaluation.regions import Regions
    from locus.evaluation.retrieval import Retrieval
    from locus.evaluation.reuse import Reuse
    from locus.evaluation.runner import run
    from locus.evaluation.segmentation import Segmentation
    from locus.evaluation.specs import MethodOptions, methods_of
    from locus.evaluation.yardstick import Yardstick

HOMES = {
    "Correspondence": "correspondence",
    "LandmarkRecall": "landmark_recall",
    "Localization": "localization",
    "MethodOptions": "specs",
    "ObjectGroups": "object_groups",
    "Regions": "regions",
    "RelativePoses": "pose",
    "Retrieval": "retrieval",
    "Reuse": "reuse",
    "Segmentation": "segmentation",
    "Yardstick": "yardstick",
    "methods_of": "specs",
    "run": "runner",
}
__all__ = [
    "Correspondence",
    "LandmarkRecall",
    "Localization",
    "MethodOptions",
    "ObjectGroups",
    "Regions",
    "RelativePoses",
    "Retrieval",
    "Reuse",
    "Segmentation",
    "Yardstick",
    "methods_of",
    "run",
]
__getattr__ = attach(__name__, HOMES)
