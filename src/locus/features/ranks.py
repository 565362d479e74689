"""Feature files of several processes under torchrun: each has its own; the last to finish puts them together."""

import glob
import hashlib
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import h5py

from locus.errors import LocusError
from locus.features.feature_file import FeatureFile, Header
from locus.files import lock
from locus.opening import admitted


def share() -> tuple[int, int]:
    """This process's number and how many there are, as torchrun says."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def rank_file(out: Path, rank: int) -> Path:
    return out.with_name(f"{out.stem}.rank{rank}{out.suffix}")


def rank_files(out: Path) -> list[Path]:
    return sorted(
        path
        for path in out.parent.glob(f"{glob.escape(out.stem)}.rank*{glob.escape(out.suffix)}")
        if path.name[len(f"{out.stem}.rank") : len(path.name) - len(out.suffix)].isdigit()
    )


def digest(names: Sequence[str]) -> str:
    """What a list of images is called, so that files of another list are not taken for complete."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def merge(out: Path, header: Header, world: int, images: str) -> bool:
    """Put the files of all processes together, if this one is the last; whether all is in one file now."""
    with alone(out):
        files = rank_files(out)
        if not files:  # another process was the last, after this one had said that it was done
            return True
        if not all(_is_complete(rank_file(out, rank), images) for rank in range(world)):
            return False
        with FeatureFile(out, header) as whole:
            for file in files:
                whole.absorb(file)
    return True


def _is_complete(path: Path, images: str) -> bool:
    try:
        # No locks: its process may be about to open it.
        with h5py.File(admitted(path), "r", locking=False) as file:
            return file.attrs.get("complete") == images
    except (OSError, LocusError):  # not there yet, or being written; then that process will look again when it is done
        return False


def alone(out: Path) -> AbstractContextManager[None]:
    """One process at a time puts files together or looks what there is; the others wait."""
    return lock(out.with_name(f"{out.name}.ranks"), wait=True)
