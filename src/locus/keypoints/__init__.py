"""Spots of an image exact to the pixel, alone or with LoCUS features at them, and networks that match them."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.keypoints.detection import Detector, Keypoints, detector
    from locus.keypoints.fusion import fuse, sample
    from locus.keypoints.lightglue import Glue, glue

__all__ = ["Detector", "Glue", "Keypoints", "detector", "fuse", "glue", "sample"]

__getattr__ = attach(
    __name__,
    {
        "Detector": "detection",
        "Glue": "lightglue",
        "Keypoints": "detection",
        "detector": "detection",
        "fuse": "fusion",
        "glue": "lightglue",
        "sample": "fusion",
    },
)
