"""The demo's houses: made where there are none, and checked where there are some."""

from dataclasses import dataclass
from pathlib import Path

from locus.demo.plan import TRAINED_SEED, UNSEEN_SEED, DemoFolder
from locus.errors import LocusError
from locus.houses import HouseSettings, write_houses
from locus.houses.generation import house_name
from locus.progress import track
from locus.scenes import load_scene


@dataclass(frozen=True)
class DemoHouses:
    """Folders of houses, by what they are for."""

    fitted: list[Path]
    """The model is trained on them, and PCA fitted to them."""
    unseen: list[Path]
    """Evaluated on; the first of them is mapped."""
    validation: Path
    """Chooses the checkpoint; its images are then those of a house that is not on the map."""
    found: int
    """How many of all these were there already."""


def make_houses(folder: DemoFolder, fitted: int) -> DemoHouses:
    """The demo's houses, of which `fitted` are for training and PCA."""
    plan = folder.plan
    kinds = [
        (folder.trained, range(TRAINED_SEED, TRAINED_SEED + fitted), plan.frames),
        (folder.unseen, range(UNSEEN_SEED, UNSEEN_SEED + plan.unseen + 1), plan.unseen_frames),
    ]
    there = [(path / house_name(seed), frames) for path, seeds, frames in kinds for seed in seeds]
    there = [(house, frames) for house, frames in there if house.exists()]
    for house, frames in track(there, "checking houses", len(there)):
        if wrong := _damage(house, frames):
            raise LocusError(
                f"the house in {house} is damaged ({wrong}); remove it and {folder.run}, and run the demo again"
            )
    trained, others = (
        write_houses(path, seeds, HouseSettings(frames, plan.size), progress=True) for path, seeds, frames in kinds
    )
    return DemoHouses(trained, others[:-1], others[-1], len(there))


def _damage(house: Path, frames: int) -> str | None:
    """What is wrong with a house; every file of it is read."""
    try:
        scene = load_scene(house)
        for frame in scene:
            _ = frame.image, frame.depth, frame.semantic, frame.instance
    except LocusError as error:
        return str(error)
    return None if len(scene) == frames else f"it has {len(scene)} frames, not {frames}"
