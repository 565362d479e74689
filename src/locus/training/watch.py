"""What a person at a terminal sees of a run."""

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from locus.training.loop import Step, Trainer

TRIED = 5  # steps from which the time of a run is estimated


class Watcher:
    """A progress bar with the loss and the last validation, on standard error."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.console = Console(stderr=True)

    def say(self, sentence: str) -> None:
        if self.shown:
            self.console.print(sentence, highlight=False, markup=False)

    @contextmanager
    def bar(self, trainer: Trainer) -> Generator[Callable[[Step], None], None, None]:
        """A bar for the rest of a run; call it after each step."""
        if not self.shown:
            yield lambda step: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, TimeRemainingColumn(), console=self.console) as progress:
            task = progress.add_task("training", total=trainer.settings.steps, completed=trainer.step)
            first, began = trainer.step, time.monotonic()

            def advance(step: Step) -> None:
                words = "" if math.isnan(step.loss) else f"loss {step.loss:.3f}"
                best = f"best unseen AP {trainer.best:.3f}"
                progress.update(task, completed=step.step, description=f"{words}  {best}")
                if step.step == first + TRIED:
                    left = (trainer.settings.steps - step.step) * (time.monotonic() - began) / TRIED
                    self.say(
                        f"about {left / 60:.0f} min for the rest of {trainer.settings.steps} steps, and validation"
                    )
                if step.metrics:
                    unseen, train = step.metrics["unseen"], step.metrics["train"]
                    self.say(
                        f"step {step.step}: cross-view AP unseen {unseen['cross-view']:.3f}, "
                        f"train {train['cross-view']:.3f}; all pairs unseen {unseen['all pairs']:.3f}"
                    )

            yield advance
