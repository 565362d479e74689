"""LoCUS: features that know places.

Parts are imported when first used, so that one of them can be had without what the others need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locus import backbones, errors, model, objective, scenes, training, viz
    from locus.extraction import extract
    from locus.landmarks import LandmarkMap
    from locus.model import LoCUS
    from locus.scenes import Frame, Scene, load_scene

__all__ = [
    "Frame",
    "LandmarkMap",
    "LoCUS",
    "Scene",
    "backbones",
    "errors",
    "extract",
    "load_scene",
    "model",
    "objective",
    "scenes",
    "training",
    "viz",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("backbones", "errors", "model", "objective", "scenes", "training", "viz"):
        return import_module(f"locus.{name}")
    if name == "LandmarkMap":
        return import_module("locus.landmarks").LandmarkMap
    if name == "LoCUS":
        return import_module("locus.model").LoCUS
    if name in ("Frame", "Scene", "load_scene"):
        return getattr(import_module("locus.scenes"), name)
    if name == "extract":
        return import_module("locus.extraction").extract
    raise AttributeError(f"module 'locus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
