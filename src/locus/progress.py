"""How far long work is and how long the rest takes, on standard error: a bar, or lines where no terminal is."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Item = TypeVar("Item")
EVERY = 30.0  # seconds between two lines


def track(items: Iterable[Item], description: str, total: int, show: bool = True) -> Iterator[Item]:
    """The items, one by one, with a bar that says how many are done and how long the rest will take."""
    console = Console(stderr=True)
    if not show:
        yield from items
        return
    if not console.is_terminal:
        tell = now_and_then(total)
        for done, item in enumerate(items, 1):
            yield item
            tell(done, description)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(description, total=total)
        for item in items:
            yield item
            progress.advance(task)


def now_and_then(total: int, before: int = 0) -> Callable[[int, str], None]:
    """What to call, with how much is done and of what, for a plain line every half minute; `before` was done before."""
    began = said = time.monotonic()

    def tell(done: int, description: str) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= EVERY:
            said = now
            left = (total - done) * (now - began) / max(done - before, 1)
            print(f"{description}: {done} of {total}, about {duration(left)} left", file=sys.stderr, flush=True)

    return tell


def duration(seconds: float) -> str:
    """A length of time as a person would say it."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.{int(unit == 'h')}f} {unit}"
    return f"{seconds:.0f} s"
