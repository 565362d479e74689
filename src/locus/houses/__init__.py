"""Generated, furnished, labelled houses: the data everybody has."""

from locus.houses.classes import CLASSES
from locus.houses.generation import generate, write_houses

__all__ = ["CLASSES", "generate", "write_houses"]
