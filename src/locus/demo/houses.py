"""The demo's houses: made where there are none, and looked through where there are some."""

from collections.abc import Iterator
from pathlib import Path

from locus.demo.plan import Folder
from locus.errors import LocusError
from locus.houses import HouseSettings, write_houses
from locus.houses.generation import house_name
from locus.progress import track
from locus.scenes import load_scene


def make(folder: Path, seeds: range, frames: int, size: tuple[int, int], demo: Folder) -> tuple[list[Path], int]:
    """The folders of these seeds' houses, and how many of them were there already."""
    before = [each for seed in seeds if (each := folder / house_name(seed)).exists()]
    for house in track(before, "looking through houses", len(before)):
        if wrong := next(_damages(house, frames), None):
            raise LocusError(
                f"the house in {house} is damaged ({wrong}); remove it and {demo.run}, and run the demo again"
            )
    return write_houses(folder, seeds, HouseSettings(frames, size), progress=True), len(before)


def _damages(house: Path, frames: int) -> Iterator[str]:
    """What is wrong with a house; every file of it is read."""
    try:
        scene = load_scene(house)
        if len(scene) != frames:
            yield f"it has {len(scene)} frames, not {frames}"
        for frame in scene:
            _ = frame.image, frame.depth, frame.semantic, frame.instance
    except LocusError as error:
        yield str(error)
