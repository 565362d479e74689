"""Spots of an image exact to the pixel, alone or with LoCUS features at them, and networks that match them."""

from locus.lazy import attach

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
