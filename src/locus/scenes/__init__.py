"""Posed RGB-D in: scenes, frames, and what can be said about them from geometry alone."""

from locus.scenes.load import load_scene
from locus.scenes.scene import Convention, Frame, LabelClass, Scene, Source

__all__ = ["Convention", "Frame", "LabelClass", "Scene", "Source", "load_scene"]
