"""Generated, furnished, labelled houses: the data everybody has."""

from locus.scenes.houses.classes import CLASSES
from locus.scenes.houses.generation import generate, write_houses

__all__ = ["CLASSES", "generate", "write_houses"]
