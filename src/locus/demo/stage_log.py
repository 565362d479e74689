"""What a person at the console sees: each stage says what it does, then its result and how long it took."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from locus.progress import duration


class StageLog:
    """`with stages("title") as say: say("its result")`."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.done: list[tuple[str, str, str]] = []  # title, result, and how long it took
        self.console = Console(soft_wrap=True, highlight=False)

    @contextmanager
    def __call__(self, title: str) -> Generator[Callable[[str], None], None, None]:
        self.console.print(f"[bold]{len(self.done) + 1}/{self.count} {escape(title)}[/bold]")
        began, said = time.perf_counter(), []
        yield said.append
        result, took = " ".join(said), duration(time.perf_counter() - began)
        self.console.print(f"    {escape(result)} [dim]({took})[/dim]")
        self.done.append((title, result, took))


def program() -> str:
    """The `locus` of this Python, as it can be typed: by name where that finds it, else where it lies."""
    own = shutil.which("locus", path=str(Path(sys.executable).parent))
    if own is None:
        return f"{shlex.quote(sys.executable)} -m locus"
    if own == shutil.which("locus"):
        return "locus"
    return shlex.quote(os.path.relpath(own) if Path(own).is_relative_to(Path.cwd()) else own)
