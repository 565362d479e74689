"""The maps that are served, as one; read again when their files change."""

from collections.abc import Sequence
from pathlib import Path

from locus.errors import LocusError
from locus.landmarks import LandmarkMap, merge
from locus.landmarks.map_files import ARRAYS
from locus.model import LoCUS

State = tuple[int, int, int]


class ServedMaps:
    """`world` is all maps together, and whoever took it goes on with it: a change puts a new one in its place."""

    def __init__(self, folders: Sequence[Path], model: LoCUS) -> None:
        if not folders:
            raise LocusError("name at least one map: --map MAP, as `locus map` writes it")
        self.model = model
        self.folders = tuple(folders)
        self.problem = ""
        """Why not all that is on disk is served; empty if it is."""
        self._states = self._tried = {folder: _state(folder) for folder in self.folders}
        self.loaded = {folder: self._read(folder) for folder in self.folders}
        self.world = _together(self.loaded)

    def refresh(self) -> bool | None:
        """Read what has changed, once it has stopped changing. True if it is served now, False if it cannot be."""
        states = {folder: _state(folder) for folder in self.folders}
        settled, self._states = states == self._states, states
        if not settled or states == self._tried:
            return None
        changed = [folder for folder in self.folders if states[folder] != self._tried[folder]]
        self._tried = states
        loaded, problems = dict(self.loaded), []
        for folder in changed:
            try:
                loaded[folder] = self._read(folder)
            except LocusError as error:
                problems.append(str(error))
        try:
            self.loaded, self.world = loaded, _together(loaded)
        except LocusError as error:
            problems.append(str(error))
        self.problem = f"the map before it is served: {'; '.join(problems)}" if problems else ""
        return not problems

    def _read(self, folder: Path) -> LandmarkMap:
        world = LandmarkMap.load(folder)
        world.check(self.model)
        return world


def _together(loaded: dict[Path, LandmarkMap]) -> LandmarkMap:
    maps = list(loaded.values())
    return maps[0] if len(maps) == 1 else merge(maps)


def _state(folder: Path) -> State:
    """Changes when the map's file does, which names its points; zeros where there is none."""
    try:
        stat = (folder / ARRAYS).stat()
    except OSError:
        return (0, 0, 0)
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns)
