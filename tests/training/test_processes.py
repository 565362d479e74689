"""Several processes that share a run, and a run that is killed again and again."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from locus.model import LoCUS
from locus.training.checkpoints import BEST, LAST, METRICS, load_state, read_metrics
from tests.training.launching import SETTINGS, begun, launch, weights


@pytest.mark.parametrize("change", [{}, {"embedding": "mean", "radii": (0.3, 0.6)}], ids=["patch", "mean"])
def test_two_processes_equal_one(run, rooms, cache, tmp_path, change):
    settings = replace(SETTINGS, steps=20, validate_every=1, checkpoint_every=10, **change)
    assert_equal(run(settings, out="one").metrics, shared(settings, 2, rooms, tmp_path / "two", cache))


def test_processes_without_a_frame_of_an_environment_or_of_the_batch_take_part(run, rooms, cache, tiny, tmp_path):
    settings = replace(
        SETTINGS,
        backbone=str(tiny),
        layer=1,
        head="blocks",
        blocks=1,
        frames_per_batch=4,
        environments_per_batch=2,
        steps=4,
        validate_every=1,
        learning_rate=1e-3,
    )
    assert_equal(run(settings, out="one").metrics, shared(settings, 5, rooms, tmp_path / "five", cache))


def shared(settings, count, rooms, out, cache):
    """The metrics of a run that several processes share."""
    workers = []
    for rank in range(count):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1"}
        place["MASTER_PORT"] = str(20000 + os.getpid() % 20000)
        workers.append(launch(settings, rooms, out, cache, place))
    for worker in workers:
        worker.join(240)
    assert [worker.exitcode for worker in workers] == [0] * count
    return read_metrics(out / METRICS)


def assert_equal(one, several):
    """The same loss at every step, and the same precision."""
    for a, b in zip(one, several, strict=True):
        assert a.get("loss", 0) == pytest.approx(b.get("loss", 0), abs=1e-5)
        assert a["validation"]["cross-view"] == pytest.approx(b["validation"]["cross-view"], abs=1e-4)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_run_loses_only_the_steps_since_its_last_checkpoint(rooms, cache, tmp_path, kills):
    every = 5
    # Steps enough that the run is not over before it is killed for the last time.
    settings = replace(SETTINGS, steps=8 * every * kills, validate_every=12 * every, checkpoint_every=every)
    whole, out = tmp_path / "whole", tmp_path / "killed"
    began = time.monotonic()
    process = launch(settings, rooms, whole, cache)
    wait_for_checkpoints(whole, 1)
    starting = time.monotonic() - began
    process.join()
    running = time.monotonic() - began - starting
    rng = np.random.default_rng(0)
    for kill in range(kills):
        before = len(begun(out))
        reached = load_state(out / LAST).step if kill else 0
        process = launch(settings, rooms, out, cache)
        if kill and rng.random() < 0.25:
            time.sleep(rng.uniform(0, starting))  # most likely before its first step
        else:
            wait_for_checkpoints(out, 1 if kill == 0 else int(rng.integers(3)))
            time.sleep(rng.uniform(0, running / (4 * kills)))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        state = load_state(out / LAST)
        steps = begun(out)[before:]
        if steps:
            assert steps[0] == reached
            assert steps == list(range(reached, reached + len(steps)))
            assert steps[-1] // every * every <= state.step <= steps[-1] + 1
        else:
            assert state.step == reached
        load_state(out / BEST)
        LoCUS.from_pretrained(out)
    assert reached < settings.steps
    process = launch(settings, rooms, out, cache)
    process.join()
    assert process.exitcode == 0
    for name, weight in weights(whole).items():
        assert torch.equal(weight, weights(out)[name])
    assert (whole / METRICS).read_bytes() == (out / METRICS).read_bytes()
    assert (whole / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()
    files = [{str(file.relative_to(run)) for file in run.rglob("*") if file.is_file()} for run in (whole, out)]
    assert {name for name in files[0] ^ files[1] if "tensorboard" not in name} == set()


def wait_for_checkpoints(out: Path, count: int) -> None:
    """Until a run has written its last checkpoint anew so many times."""

    def version() -> tuple[int, int]:
        try:
            state = (out / LAST).stat()
        except FileNotFoundError:
            return 0, 0
        return state.st_ino, state.st_mtime_ns

    for _ in range(count):
        now, deadline = version(), time.monotonic() + 120
        while version() == now and time.monotonic() < deadline:
            time.sleep(0.001)
