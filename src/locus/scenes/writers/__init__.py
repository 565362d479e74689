"""One small file per format that scenes are written in, each with `write(scene, path, progress)`."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Literal

from locus.errors import SceneError
from locus.scenes.scene import Scene

Target = Literal["nerfstudio", "colmap", "tum", "ros2bag"]

# By format, its module. They are imported when needed: one of them needs an extra.
WRITERS: dict[str, str] = {
    "nerfstudio": "transforms",
    "colmap": "colmap_model",
    "tum": "tum_folder",
    "ros2bag": "ros2bag",
}


def export(scene: Scene, path: str | PathLike[str], to: Target | str = "nerfstudio", progress: bool = False) -> Path:
    """Write `scene` to the new folder `path`, by default in nerfstudio's format, which is also our native one.

    Frames that cannot be read are left out, with a warning that counts and names them. An interruption, or an error of
    any other kind, leaves nothing behind.
    """
    if to not in WRITERS:
        raise SceneError(f"scenes cannot be written as {to}; known are {', '.join(WRITERS)}")
    return import_module(f"{__name__}.{WRITERS[to]}").write(scene, Path(path), progress)
