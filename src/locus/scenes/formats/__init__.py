"""One small file per format. A reader has two functions:

    detect(path) -> bool                  from file names alone, quickly
    read(path, allow_outside) -> Scene    opens no image; raises SceneError where the files make no sense

CONTRIBUTING.md shows how to add one.
"""

from types import ModuleType

from locus.scenes.formats import (
    nerfstudio,
)

# In the order they are tried: a format that names its own files before one that is known by its folders.
READERS: dict[str, ModuleType] = {
    "nerfstudio": nerfstudio,
}
