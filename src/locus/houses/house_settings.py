"""What `locus houses` lets you choose."""

from dataclasses import dataclass
from pathlib import Path

from locus.render.camera_settings import CameraSettings


@dataclass(frozen=True)
class HouseSettings(CameraSettings):
    """Which pictures are taken of a house, and what is mixed into it. Same seed and settings, same bytes."""

    models: Path | None = None
    """A folder of OBJ or GLB furniture to mix in; a file's name tells its kind."""
    textures: Path | None = None
    """A folder of photographs to use as materials and wall pictures."""
