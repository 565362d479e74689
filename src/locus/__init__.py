"""LoCUS: features that know places."""

import os
from typing import TYPE_CHECKING

from locus.lazy import attach

# Threads of OpenMP spin while they wait for each other, and beside other work that makes them several times slower
# (docs/troubleshooting.md). It reads this when torch is loaded; what a user has said about it stands.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & os.environ.keys():
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

if TYPE_CHECKING:
    from locus import (
        backbones,
        errors,
        evaluation,
        features,
        houses,
        keypoints,
        landmarks,
        model,
        objective,
        render,
        scenes,
        tasks,
        training,
    )
    from locus.features.extraction import extract
    from locus.geometry import Camera
    from locus.landmarks import LandmarkMap
    from locus.model import LoCUS
    from locus.scenes import Frame, Scene, load_scene

__all__ = [
    "Camera",
    "Frame",
    "LandmarkMap",
    "LoCUS",
    "Scene",
    "backbones",
    "errors",
    "evaluation",
    "extract",
    "features",
    "houses",
    "keypoints",
    "landmarks",
    "load_scene",
    "model",
    "objective",
    "render",
    "scenes",
    "tasks",
    "training",
]
__version__ = "0.2.0"

HOMES = {
    "Camera": "geometry",
    "Frame": "scenes",
    "LandmarkMap": "landmarks",
    "LoCUS": "model",
    "Scene": "scenes",
    "extract": "features.extraction",
    "load_scene": "scenes",
}
__getattr__ = attach(__name__, {name: HOMES.get(name, name) for name in __all__})


def __dir__() -> list[str]:
    return __all__
