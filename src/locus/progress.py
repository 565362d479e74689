"""Progress bars for long work, on standard error, with the time left, only where a person watches; and durations."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Item = TypeVar("Item")


def track(items: Iterable[Item], description: str, total: int, show: bool = True) -> Iterator[Item]:
    """The items, one by one, with a bar that says how many are done and how long the rest will take."""
    if not show:
        yield from items
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total)
        for item in items:
            yield item
            progress.advance(task)


def duration(seconds: float) -> str:
    """A length of time as a person would say it."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.{int(unit == 'h')}f} {unit}"
    return f"{seconds:.0f} s"
