"""Where a backbone's weights come from."""

from pathlib import Path
from typing import NamedTuple

from locus.errors import WeightsError


class Located(NamedTuple):
    """A network in transformers' layout on this machine."""

    name: str
    folder: Path


def locate(name: str | Path) -> Located:
    if not Path(name).is_dir():
        raise WeightsError(f"{name} is not a folder")
    return Located(str(name), Path(name))
