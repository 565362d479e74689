"""Generated, furnished, labelled houses: the data everybody has. Needs the extra `houses`."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.houses.classes import CLASSES
    from locus.houses.generation import generate, write_houses, write_visits
    from locus.houses.house_settings import HouseSettings

__all__ = ["CLASSES", "HouseSettings", "generate", "write_houses", "write_visits"]

HOMES = {
    "CLASSES": "classes",
    "HouseSettings": "house_settings",
    "generate": "generation",
    "write_houses": "generation",
    "write_visits": "generation",
}
__getattr__ = attach(__name__, HOMES)
