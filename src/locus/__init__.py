"""LoCUS: features that know places."""

from locus.scenes import Frame, Scene, load_scene

__all__ = ["Frame", "Scene", "load_scene"]
__version__ = "0.1.0"
