"""The command `check`: are files still what was written?"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import tyro

from locus.checksums import verify
from locus.commands.options import say, some
from locus.errors import LocusError
from locus.features.journal import recover, verify_pages
from locus.files import MANIFEST, still_sound, verified
from locus.opening import opened

SOUND, UNKNOWN = "sound", "no checksum"
# What a folder is, by a file that it has.
KINDS = {"map.safetensors": "map", "index.json": "index", "training.json": "run", "model.safetensors": "model"}
KINDS |= {"houses.json": "houses"}


def check(paths: Annotated[tuple[Path, ...], tyro.conf.Positional, some("PATH")]) -> int:
    """Verify by their checksums that files of LoCUS are undamaged.

    These are maps, models, runs, probes, feature files, scenes and houses written by LoCUS, and its caches. Prints a
    line for each file given, or each folder that holds such files, and for each damaged file in it. Exits with 1 if one
    is damaged. Files of earlier versions have no checksum, so nothing can be said about them.

    Args:
        paths: Files that LoCUS wrote, or folders that hold some, also further below.
    """
    if not paths:
        raise LocusError("name what to check: a map, a model, a run, a scene, a file, or a folder that holds some")
    damaged = 0
    for path in paths:
        things = list(_things(path))
        if not things:
            raise LocusError(f"{path} holds nothing that LoCUS writes; name a map, a model, a run, a scene or a file")
        for thing, states in things:
            wrong = {name: state for name, state in states.items() if state not in (SOUND, UNKNOWN)}
            damaged += len(wrong)
            counts = [(SOUND, list(states.values()).count(SOUND)), ("damaged", len(wrong))]
            counts.append((UNKNOWN, len(states) - sum(count for _, count in counts)))
            say(f"{thing}: {', '.join(f'{count} {what}' for what, count in counts if count)}")
            for reason in wrong.values():
                say(f"  {reason}")
    return int(damaged > 0)


def _things(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A file, or each folder that has files of ours, with the state of each."""
    if not path.is_dir():
        yield str(path), {path.name: _state(path, CHECKS.get(path.suffix, verified))}
        return
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        folder = Path(place)
        if MANIFEST in names:
            folders.clear()
            yield f"{folder} (written whole)", _states_of_whole(folder)
        elif ours := sorted(name for name in names if Path(name).suffix in CHECKS and not name.startswith(".")):
            kind = next((f" ({kind})" for name, kind in KINDS.items() if name in names), "")
            yield f"{folder}{kind}", {name: _state(folder / name, CHECKS[Path(name).suffix]) for name in ours}


def _states_of_whole(folder: Path) -> dict[str, str]:
    """Of a folder with checksums of all that was put in it."""
    try:
        states = still_sound(folder)
    except (LocusError, OSError) as error:
        return {MANIFEST: str(error)}
    return {name: SOUND if sound else f"{folder / name} is missing or damaged" for name, sound in states.items()}


def _state(path: Path, has_checksum: Callable[[Path], bool]) -> str:
    try:
        return SOUND if has_checksum(path) else UNKNOWN
    except (LocusError, OSError) as error:
        return str(error)


def _feature_file(path: Path) -> bool:
    recover(path)
    return verify_pages(path)


def _lines(path: Path) -> bool:
    with opened(path) as file:
        states = [verify(line.rstrip(b"\n"), path) for line in file]
    return all(states)


CHECKS: dict[str, Callable[[Path], bool]] = {
    **dict.fromkeys((".safetensors", ".json", ".ply", ".npy", ".npz", ".pt", ".faiss", ".lists"), verified),
    ".h5": _feature_file,
    ".jsonl": _lines,
}
