"""The command `index`: many maps, searched together."""

from pathlib import Path
from typing import Annotated

import tyro

from locus.commands.options import say

MapPatterns = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    tyro.conf.arg(metavar="MAP...", help="Folders of maps, globs in quotes, or .txt files that list folders."),
]


def index(maps: MapPatterns, out: Path) -> int:
    """Make an index of many maps, to be searched together.

    `locus localize` and `locus retrieve` find the right maps in it, and open only those.

    Run it again to continue after it was stopped, or after maps were added or changed: finished work is kept.

    Args:
        out: The index's folder. It finds the maps by their place relative to it.
    """
    from locus.landmarks.indexing import build_index
    from locus.scenes.collection import find_scenes

    made = build_index(find_scenes(maps, "map"), out, progress=True)
    say(f"{len(made.environments)} environments of {len(made.maps)} maps, {len(made)} landmarks")
    say(f"Wrote {out}: `locus localize IMAGE --map {out}` finds images in all of them")
    return 0
