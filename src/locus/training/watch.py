"""What a person at a terminal sees of a run."""

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from locus.progress import duration, now_and_then
from locus.training.loop import Step, Trainer


class Watcher:
    """A progress bar with the loss and the last validation, on standard error."""

    def __init__(self, wanted: bool, first: bool) -> None:
        """`wanted` in all processes of a run; the first one shows it."""
        self.wanted, self.shown = wanted, wanted and first
        self.console = Console(stderr=True)

    def say(self, sentence: str) -> None:
        if self.shown:
            self.console.print(sentence, highlight=False, markup=False)

    def estimate(self, trainer: Trainer) -> None:
        """Say how long the run will take, before it starts; all processes of it take part."""
        left = trainer.settings.steps - trainer.step
        if not self.wanted or left <= 0:
            return
        seconds = trainer.seconds_a_step()
        if seconds is not None:
            self.say(f"{left} steps of about {seconds:.2g} s: {duration(left * seconds)}, and validation")

    @contextmanager
    def bar(self, trainer: Trainer) -> Generator[Callable[[Step], None], None, None]:
        """A bar for the rest of a run; call it after each step."""
        if not self.shown:
            yield lambda step: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        shown = self.console.is_terminal
        tell = now_and_then(trainer.settings.steps, trainer.step)
        with Progress(*columns, TimeRemainingColumn(), console=self.console, disable=not shown) as progress:
            task = progress.add_task("training", total=trainer.settings.steps, completed=trainer.step)

            def advance(step: Step) -> None:
                words = "" if math.isnan(step.loss) else f"loss {step.loss:.3f}"
                said = f"{words}  best validation AP {trainer.best:.3f}"
                progress.update(task, completed=step.step, description=said)
                if not shown:
                    tell(step.step, said)
                if step.metrics:
                    validation, train = step.metrics["validation"], step.metrics["train"]
                    self.say(
                        f"step {step.step}: cross-view AP validation {validation['cross-view']:.3f}, "
                        f"train {train['cross-view']:.3f}; all pairs validation {validation['all pairs']:.3f}"
                    )

            yield advance
