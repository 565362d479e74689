"""Landmarks: the spots of a scene that its features know best, and maps of them."""

from .map import LandmarkMap, MapError
from .merging import merge, session_of

__all__ = ["LandmarkMap", "MapError", "merge", "session_of"]
