"""The command `cache`: list, clear."""

import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from locus.commands.options import say
from locus.files import cache_folder

PARTS = ("tokens", "evaluation", "weights")
DAY = 86400.0


@dataclass(frozen=True)
class ListCache:
    """Show what is kept, how large it is, and how long ago it was last used."""

    def run(self) -> int:
        table = Table("what", "files", "MB", "days ago", box=None, padding=(0, 2, 0, 0))
        total = 0
        for part in PARTS:
            for folder in _inside(part):
                count, size, days = _measured(folder)
                if count:
                    table.add_row(escape(f"{part}: {folder.name}"), str(count), f"{size / 1e6:.1f}", f"{days:.1f}")
                    total += size
        if table.row_count:
            Console(soft_wrap=True).print(table)
        say(f"{total / 1e6:.1f} MB in {cache_folder()}")
        return 0


@dataclass(frozen=True)
class ClearCache:
    """Remove what is kept, all of it or what was not used for some time. It is made or fetched again when needed."""

    what: Annotated[
        Literal["tokens", "evaluation", "weights", "all"], tyro.conf.Positional, tyro.conf.arg(metavar="WHAT")
    ]
    """tokens: of frozen backbones, with points and overlap; evaluation: parts measured before; weights: of networks;
    all: all three."""
    unused: float = 0.0
    """Days for which something must not have been used to be removed. By default everything is."""

    def run(self) -> int:
        removed = freed = 0
        for part in PARTS if self.what == "all" else (self.what,):
            for folder in _inside(part):
                # Weights go as a whole: half of a network is of no use.
                whole = part == "weights" or not self.unused
                for item in [folder] if whole else [path for path in folder.rglob("*") if path.is_file()]:
                    count, size, days = _measured(item)
                    if days >= self.unused:
                        shutil.rmtree(item) if whole else item.unlink(missing_ok=True)
                        removed, freed = removed + count, freed + size
        say(f"Removed {removed} files, {freed / 1e6:.1f} MB, from {cache_folder()}")
        return 0


def _inside(part: str) -> Iterator[Path]:
    """The folders of a part: one a backbone, a benchmark or a network."""
    return (folder for folder in sorted((cache_folder() / part).glob("*")) if folder.is_dir())


def _measured(item: Path) -> tuple[int, int, float]:
    """How many files a folder holds, their bytes, and the days since one was read (if that is noted) or written."""
    states = []
    for file in (item, *item.rglob("*")):
        with suppress(FileNotFoundError):  # another process wrote it a moment ago, under another name
            states.append(file.stat())
    files = [state for state in states if stat.S_ISREG(state.st_mode)]
    used = max((max(state.st_atime, state.st_mtime) for state in files), default=0.0)
    since = max(0.0, time.time() - used)  # a clock that was set back makes files of the future
    return len(files), sum(state.st_size for state in files), since / DAY


CacheAction = Annotated[ListCache, tyro.conf.subcommand("list")] | Annotated[ClearCache, tyro.conf.subcommand("clear")]


def cache(action: Annotated[CacheAction, tyro.conf.arg(name="")]) -> int:
    """List or clear what LoCUS keeps to save time.

    Tokens of frames, finished parts of evaluations, and weights, all in $LOCUS_CACHE (by default ~/.cache/locus) unless
    a command was told another folder.
    """
    return action.run()
