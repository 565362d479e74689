"""Landmarks: the spots of a scene that its features know best, and maps of them."""

from .growing_map import GrowingMap
from .map import LandmarkMap, MapError
from .merging import merge, session_of

__all__ = ["GrowingMap", "LandmarkMap", "MapError", "merge", "session_of"]
