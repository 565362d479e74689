"""Many scenes: from paths, globs and list files to scenes under distinct names."""

import glob
from collections.abc import Sequence
from pathlib import Path

from locus.errors import SceneError
from locus.opening import read_text
from locus.scenes.load import AS_STATED, SceneReading, is_scene
from locus.scenes.scene import Scene


def find_scenes(given: Sequence[str | Path], kind: str = "scene") -> list[Path]:
    """Paths of scenes, or of folders of another kind: as they are, globs expanded, and the lines of `.txt` lists.

    Those lines are relative to the list. A JSON file of a folder's name beside it tells about that scene, and is passed
    over: a shell's `house-*` names it too.
    """
    found: list[Path] = []
    for each in given:
        path = Path(each)
        if path.suffix == ".txt" and path.is_file():
            lines = [line.strip() for line in read_text(path).splitlines()]
            found += [path.parent / line for line in lines if line and not line.startswith("#")]
        elif path.suffix == ".json" and path.with_suffix("").is_dir():
            continue
        elif path.exists():
            found.append(path)
        else:
            matches = sorted(glob.glob(str(each)))  # noqa: PTH207  a pattern may be absolute
            if not matches:
                raise SceneError(f"{each} is no {kind}, no list of {kind}s, and matches nothing")
            found += [Path(match) for match in matches if Path(match).is_dir() or is_scene(Path(match))]
    return list(dict.fromkeys(found))


def open_scenes(paths: Sequence[Path], reading: SceneReading = AS_STATED) -> list[Scene]:
    """Scenes under their own names."""
    scenes = [reading.load(path) for path in paths]
    refuse_namesakes(scenes)
    return scenes


def refuse_namesakes(scenes: Sequence[Scene]) -> None:
    """Two scenes of one name would be taken for one environment."""
    names: dict[str, Path | None] = {}
    for scene in scenes:
        if scene.name in names:
            raise SceneError(f"{names[scene.name]} and {scene.folder} have the same name; rename one")
        names[scene.name] = scene.folder
