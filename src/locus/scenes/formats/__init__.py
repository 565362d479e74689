"""One small file per format, each a `Reader`. docs/extend.md shows how to add one."""

from pathlib import Path
from typing import Protocol

from locus.scenes.formats import (
    arkitscenes,
    colmap,
    hypersim,
    matterport,
    nerfstudio,
    polycam,
    record3d,
    replica,
    rosbag,
    rtabmap,
    scannet,
    scannet_sens,
    scannetpp,
    sevenscenes,
    strayscanner,
    taskonomy,
    tum,
    videos,
)
from locus.scenes.scene import Scene


class Reader(Protocol):
    """What the module of a format has."""

    def detect(self, path: Path) -> bool:
        """Whether a folder, or a file, looks like this format: quickly, from names or a file's first bytes."""
        ...

    def read(self, path: Path, allow_outside: bool) -> Scene:
        """The scene in a folder or file. Opens no image; raises SceneError where the files make no sense."""
        ...


# In the order they are tried: a format that names its own files before one that is known by its folders. The native
# format comes first, so that a folder with a transforms.json beside other files is read as the one we write ourselves.
READERS: dict[str, Reader] = {
    "nerfstudio": nerfstudio,
    "tum": tum,
    "7scenes": sevenscenes,
    "matterport": matterport,
    "replica": replica,
    "scannet": scannet,
    "taskonomy": taskonomy,
    "colmap": colmap,
    "rtabmap": rtabmap,
    "polycam": polycam,
    "record3d": record3d,
    "strayscanner": strayscanner,
    "video": videos,
    "arkitscenes": arkitscenes,
    "sens": scannet_sens,
    "scannet++": scannetpp,
    "hypersim": hypersim,
    "rosbag": rosbag,
}
