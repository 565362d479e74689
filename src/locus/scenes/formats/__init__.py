"""One small file per format. A reader has two functions:

    detect(path) -> bool                  from file names alone, quickly
    read(path, allow_outside) -> Scene    opens no image; raises SceneError where the files make no sense

docs/extend.md shows how to add one.
"""

from types import ModuleType

from locus.scenes.formats import colmap, matterport, nerfstudio, replica, scannet, sevenscenes, taskonomy, tum

# In the order they are tried: a format that names its own files before one that is known by its folders. The native
# format comes first, so that a folder with a transforms.json beside other files is read as the one we write ourselves.
READERS: dict[str, ModuleType] = {
    "nerfstudio": nerfstudio,
    "tum": tum,
    "7scenes": sevenscenes,
    "matterport": matterport,
    "replica": replica,
    "scannet": scannet,
    "taskonomy": taskonomy,
    "colmap": colmap,
}
