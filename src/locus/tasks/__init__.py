"""What the features are for: matching, pose, localization, retrieval, co-segmentation, segmentation, finding."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.tasks import cosegmentation, frame_ranking, instances, localize, matching, probe, relative_pose

__all__ = ["cosegmentation", "frame_ranking", "instances", "localize", "matching", "probe", "relative_pose"]

__getattr__ = attach(__name__, {name: name for name in __all__})
