"""What `locus render` and `locus houses` let you choose. Needs no extra, so that the command line can name it."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from locus.errors import LocusError


@dataclass(frozen=True)
class CameraSettings:
    """Which pictures are taken."""

    frames: Annotated[int | None, tyro.conf.arg(name="frames-per-scene")] = None
    """How many frames. By default as many as show every room, or part of the floor, from several points."""
    size: tuple[int, int] = (320, 256)
    """Width and height of the images."""
    path: Literal["panorama", "walk", "handheld"] = "panorama"
    """Six headings from standing points (panorama), a smooth walk through the doors, or things from all sides by
    various lenses in a moving hand (handheld)."""
    depth_noise: bool = False
    """Give depth the errors and holes of a structured-light sensor."""

    def __post_init__(self) -> None:
        if self.frames is not None and self.frames < 1:
            raise LocusError(f"a scene needs at least one frame, not {self.frames}")


@dataclass(frozen=True)
class MeshSettings(CameraSettings):
    """How a mesh is read, and which pictures are taken of it."""

    up: Literal["y", "z"] | None = None
    """The mesh's vertical axis. By default y for GLB and glTF, z for OBJ and PLY."""
    metres_per_unit: float = 1.0
    """How many metres a unit of the mesh is."""
    seed: int = 0
    """Another seed gives other cameras."""
