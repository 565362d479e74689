"""Runs in processes of their own, to share a batch or be killed: forked from one that has all imported, so they start
in no time."""

import multiprocessing
import os
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from locus.training import Settings, train
from locus.training.checkpoints import LAST
from locus.training.loop import Trainer

SETTINGS = Settings(
    backbone="classic",
    layer=None,
    head="linear",
    dimension=16,
    resolution=None,
    frames_per_batch=6,
    landmarks=60,
    radii=(0.3,),
    steps=6,
    validate_every=3,
    checkpoint_every=1,
    learning_rate=1e-2,
    warmup=1,
)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / LAST, weights_only=True)["head"]


def launch(
    settings: Settings, rooms: Path, out: Path, cache: Path, environment: dict[str, str] | None = None
) -> BaseProcess:
    """A run on two rooms with a third to validate on; the steps it begins are listed in `out`.steps."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "matplotlib.backends.backend_agg"])
    process = context.Process(target=_run, args=(settings, rooms, out, cache, environment or {}))
    process.start()
    return process


def begun(out: Path) -> list[int]:
    """Steps that the runs in a folder had taken whenever they began another."""
    file = out.with_suffix(".steps")
    return [int(line) for line in file.read_text().split()] if file.is_file() else []


def _run(settings: Settings, rooms: Path, out: Path, cache: Path, environment: dict[str, str]) -> None:
    os.environ |= environment
    torch.set_num_threads(1)
    learn = Trainer._learn
    listed = os.open(out.with_suffix(".steps"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def listing(self, batch):
        os.write(listed, f"{self.step}\n".encode())
        return learn(self, batch)

    Trainer._learn = listing
    train([rooms / "first", rooms / "second"], out, settings, val=[rooms / "unseen"], cache=cache)
