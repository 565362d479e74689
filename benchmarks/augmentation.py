"""Does augmentation help on unseen places? Runs at equal steps, without it and with each kind, over several seeds.

    python benchmarks/augmentation.py --scenes SCENE... --val SCENE... --out DIR [--steps N] [--seeds 0 1 2] ...

`copies` are augmented pictures in the cache, `token noise` is added to cached tokens, `live` augments every frame anew
each time it is drawn; the rest of the settings are those of `locus train`. AP is exact and cross-view, of the last step
and of the best validation, mean over seeds and, after ±, half the distance between the extreme ones; "gain" is that of
the last step over the run of the same seed without augmentation. Seconds are the median of the steps run now: runs are
kept in DIR, and the same command goes on with them.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from locus.training import PRESETS, Settings, Summary, train
from locus.training.loop import Step, Trainer

DEFAULT = replace(PRESETS["default"], steps=200, copies=4, token_noise=0.2)


def main(
    scenes: tuple[str, ...],
    val: tuple[str, ...],
    out: Path,
    cache: Path | None = None,
    seeds: tuple[int, ...] = (0, 1, 2),
    settings: Annotated[Settings, tyro.conf.arg(name="")] = DEFAULT,
) -> None:
    none = replace(settings, copies=0, token_noise=0.0, live=False)
    ways = {
        "none": none,
        "copies": replace(none, copies=settings.copies),
        "token noise": replace(none, token_noise=settings.token_noise),
        "live": replace(none, live=True),
    }
    runs: dict[str, list[Summary]] = {}
    seconds: dict[str, list[float]] = {}
    # Seed by seed, so that the table is fair, if not sharp, whenever this is stopped.
    for seed in seeds:
        for way, told in ways.items():
            durations = seconds.setdefault(way, [])
            Trainer.run = clocked(durations)
            folder = out / f"{way.replace(' ', '-')}-s{seed}"
            summary = train(scenes, folder, replace(told, seed=seed), val=val, cache=cache, progress=True)
            if not summary.finished:  # Ctrl-C
                return
            runs.setdefault(way, []).append(summary)
        show(runs, seconds, settings.steps)


RUN = Trainer.run


def clocked(durations: list[float]) -> Callable[[Trainer], Iterator[Step]]:
    """A trainer's `run` that notes how long every step takes."""

    def timed(self: Trainer) -> Iterator[Step]:
        began = time.perf_counter()
        for step in RUN(self):
            durations.append(time.perf_counter() - began)
            yield step
            began = time.perf_counter()

    return timed


def show(runs: dict[str, list[Summary]], seconds: dict[str, list[float]], steps: int) -> None:
    columns = ("augmentation", "unseen", "gain", "best unseen", "training places", "s a step")
    table = Table(*columns, box=None, title=f"cross-view AP after {steps} steps", title_justify="left")
    for way, summaries in runs.items():
        last = [summary.metrics[-1]["unseen"]["cross-view"] for summary in summaries]
        without = [summary.metrics[-1]["unseen"]["cross-view"] for summary in runs["none"]]
        table.add_row(
            way,
            spread(last),
            spread([a - b for a, b in zip(last, without, strict=True)]),
            spread([summary.best["unseen"]["cross-view"] for summary in summaries]),
            spread([summary.metrics[-1]["train"]["cross-view"] for summary in summaries]),
            f"{statistics.median(seconds[way]):.2f}" if seconds[way] else "",
        )
    Console(width=120).print(table)


def spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f} ± {(max(values) - min(values)) / 2:.3f}"


if __name__ == "__main__":
    tyro.cli(main)
