"""Posed RGB-D in: scenes, frames, and what can be said about them from geometry alone."""

from locus.scenes.covisibility import overlap
from locus.scenes.inspection import Inspection, inspect
from locus.scenes.load import SceneReading, load_scene
from locus.scenes.patches import patch_points
from locus.scenes.scene import Convention, Frame, LabelClass, Scene
from locus.scenes.source import FileSource, Source
from locus.scenes.writers import export

__all__ = [
    "Convention",
    "FileSource",
    "Frame",
    "Inspection",
    "LabelClass",
    "Scene",
    "SceneReading",
    "Source",
    "export",
    "inspect",
    "load_scene",
    "overlap",
    "patch_points",
]
