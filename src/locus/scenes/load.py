"""From a path to a Scene, whatever the format."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal

import tyro

from locus.errors import LocusError, SceneError
from locus.opening import admitted
from locus.scenes.formats import READERS, nerfstudio, rosbag
from locus.scenes.reading import refuse_strangers
from locus.scenes.scene import Scene
from locus.scenes.source import Source

Format = Literal[
    "nerfstudio",
    "tum",
    "7scenes",
    "matterport",
    "replica",
    "scannet",
    "taskonomy",
    "colmap",
    "rosbag",
    "rtabmap",
    "polycam",
    "record3d",
    "strayscanner",
    "video",
    "arkitscenes",
    "sens",
    "scannet++",
    "hypersim",
]


@dataclass(frozen=True)
class SceneReading:
    """How to read scenes whose format does not say how their numbers are meant, or whose files say it wrong."""

    format: Format | None = None
    """The scenes' format. Found from the files if not given."""
    pose: Literal["world_from_camera", "camera_from_world"] | None = None
    """Which way the stored pose matrices map."""
    axes: Literal["opencv", "opengl"] | None = None
    """The camera axes of the stored poses: opencv (y down, z forward) or opengl, also Blender's (y up, z backward)."""
    rotation: Literal["plain", "transposed"] | None = None
    """'transposed' if the rotation part of the stored poses was transposed by mistake."""
    intrinsics: Literal["plain", "swapped"] | None = None
    """'swapped' if fx, fy and cx, cy were exchanged by mistake."""
    depth_scale: float | None = None
    """Stored depth units per metre: 1000 for millimetres, 5000 for TUM, 1 for metres."""
    allow_outside: bool = False
    """Let a scene's files name images outside its own folder."""
    topics: Annotated[tuple[str, ...], tyro.conf.arg(name="topic"), tyro.conf.UseAppendAction] = ()
    """A topic to read of a bag that has several of a kind; may be given several times."""

    def load(self, path: str | PathLike[str]) -> Scene:
        return load_scene(path, **vars(self))


AS_STATED = SceneReading()
"""Scenes as their files describe them."""


def load_scene(
    path: str | PathLike[str],
    format: str | None = None,
    *,
    pose: Literal["world_from_camera", "camera_from_world"] | None = None,
    axes: Literal["opencv", "opengl"] | None = None,
    rotation: Literal["plain", "transposed"] | None = None,
    intrinsics: Literal["plain", "swapped"] | None = None,
    depth_scale: float | None = None,
    allow_outside: bool = False,
    topics: tuple[str, ...] = (),
) -> Scene:
    """Open posed RGB-D images. No image is read until a frame is asked for it.

    The format is found from the files unless `format` names it. The other arguments say how the stored numbers are
    meant where that is not what the format says (`locus inspect` finds out): see `locus.scenes.Convention`.
    `allow_outside` lets the scene name files outside its own folder. `topics` chooses among a bag's topics where it has
    several of a kind.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  names `..` but leaves links their own name
    if not os.path.exists(path):  # noqa: PTH110  of a name too long Path makes an error
        raise SceneError(f"{path} does not exist")
    if path.is_file() and path.name == nerfstudio.FILE:  # people also point at the file itself
        path = path.parent
    format = _checked(format, path)
    if topics and format != "rosbag":
        raise SceneError(f"{path} is read as {format}, which has no topics to choose among; leave out --topic")
    try:
        if path.is_dir():
            refuse_strangers(path, allow_outside)
        else:
            admitted(path)
        scene = rosbag.read(path, allow_outside, topics) if topics else READERS[format].read(path, allow_outside)
    except SceneError:
        raise
    except LocusError as error:
        raise SceneError(str(error)) from None
    except OSError as error:
        raise SceneError(f"{error.filename or path} cannot be read: {error.strerror}") from None
    given = {"pose": pose, "axes": axes, "rotation": rotation, "intrinsics": intrinsics, "depth_scale": depth_scale}
    convention = replace(scene.convention, **{key: value for key, value in given.items() if value is not None})
    sources, skipped = _distinct(scene.sources, dict(scene.skipped))
    if not sources:
        reasons = "".join(f"; {name}: {reason}" for name, reason in list(skipped.items())[:3])
        raise SceneError(f"{path} was opened as {scene.format} but has no frames{reasons}")
    return replace(scene, convention=convention, sources=sources, skipped=skipped, folder=path)


def is_scene(path: Path) -> bool:
    """Whether a folder or file holds a scene of any format, rather than mere images."""
    return any(reader.detect(path) for reader in READERS.values())


def _checked(format: str | None, path: Path) -> str:
    known = ", ".join(READERS)
    if format is not None:
        if format not in READERS:
            raise SceneError(f"there is no format {format}; known are {known}")
        return format
    for name, reader in READERS.items():
        if reader.detect(path):
            return name
    raise SceneError(
        f"{path} looks like none of the known formats ({known}); docs/capture/formats.md shows each one's files"
    )


def _distinct(sources: Sequence[Source], skipped: dict[str, str]) -> tuple[list[Source], dict]:
    """Frames are known by name (caches, maps, results), so a name used again is left out and counted."""
    kept: dict[str, Source] = {}
    for source in sources:
        if source.name in kept:
            skipped[f"{source.name} (again)"] = "another frame has the same name"
        else:
            kept[source.name] = source
    return list(kept.values()), skipped
