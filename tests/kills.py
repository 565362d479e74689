"""Kill commands at random moments, run them again, and compare: equal results, and nothing left behind.

One in five is asked to end (SIGTERM), and must tidy up at once. A service is asked for an answer meanwhile, and
ends only when it is told to.

    python -m tests.kills --kills 1000 --seed 0

Imports take seconds, so one process has them done, runs no network itself, and forks one process for every command.
"""

import argparse
import json
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import httpx2
import numpy as np

from locus.cli import main
from locus.landmarks import LandmarkMap
from locus.tasks import placed_points
from locus.training.checkpoints import METRICS, read_metrics
from tests.landmarks.places import Scattered
from tests.scenes import layouts, room

TRAIN = """--backbone classic --layer None --head linear --dimension 16 --resolution None --frames-per-batch 6
 --landmarks 60 --radii 0.3 --steps 4 --validate-every 2 --checkpoint-every 1 --warmup 1"""


@dataclass(frozen=True)
class Job:
    """A command, in words that are formatted with the folders `data`, `here` and `cache`, and what it leaves."""

    words: str
    result: Callable[[Path], dict[str, Any]]
    """What must be equal, by name, from the folder `here`."""
    before: str = ""
    """A command that makes what this one adds to, run once."""


def content(folder: Path) -> dict[str, Any]:
    """Every file, byte by byte."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def left(folder: Path) -> set[Path]:
    """What is half-written."""
    return {file for file in folder.rglob(".*") if "locus-partial" in file.name}


def features(folder: Path) -> dict[str, Any]:
    """What a feature file holds; where in the file depends on how often it was opened."""
    found: dict[str, Any] = {"files": sorted(content(folder))}
    with h5py.File(folder / "f.h5") as file:
        file.visititems(lambda name, item: found.update({name: item[:].tobytes()} if hasattr(item, "shape") else {}))
    return found


def run_folder(folder: Path) -> dict[str, Any]:
    """A run's model and its metrics, without times; the other files by name."""
    found = {name: value for name, value in content(folder).items() if "tensorboard" not in name}
    measured = read_metrics(folder / "r" / METRICS)
    rows = [{key: value for key, value in row.items() if "second" not in key} for row in measured]
    keep = {name: value if name.endswith("model.safetensors") else b"" for name, value in found.items()}
    return {**keep, "metrics": rows}


JOBS = {
    "extract": Job("extract {data}/a --model classic --batch 2 --out {here}/f.h5", features),
    "extract hloc": Job("extract {data}/a --model classic --layout hloc --out {here}/f.h5", features),
    "convert": Job("convert {data}/a --out {here}/c", content),
    "houses": Job("houses {here}/h --frames-per-scene 3 --size 32 24", content),
    "train": Job(f"train {{data}}/a --val {{data}}/b --out {{here}}/r --cache {{cache}} {TRAIN}", run_folder),
    "map": Job("map {data}/a --model classic --out {here}/m --cache {cache}", content),
    "map --add": Job(
        "map {data}/b --model classic --out {here}/m --cache {cache} --add",
        content,
        before="map {data}/a --model classic --out {here}/m --cache {cache}",
    ),
    "serve": Job(
        "serve --map {here}/m --model classic --port 0",
        content,
        before="map {data}/a --model classic --out {here}/m --cache {cache}",
    ),
}


class Killer:
    """Runs jobs in a folder of its own, with a cache of its own."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.rng = root, np.random.default_rng(seed)
        self.data = root / "data"
        for turn, name in enumerate("ab"):
            shots = room.shots(8)
            for shot in shots:
                shot.image = np.roll(shot.image, turn, axis=2)
            (self.data / name).mkdir(parents=True)
            layouts.nerfstudio(self.data / name, shots)
        self.expected: dict[str, tuple[dict[str, Any], set[str], float]] = {}

    def start(self, words: str, where: Path) -> int:
        """A process that runs a command; its id."""
        (where / "here").mkdir(parents=True, exist_ok=True)
        filled = words.format(data=self.data, here=where / "here", cache=where / "cache").split()
        (where / "printed").write_text("")
        if process := os.fork():
            return process
        os.environ["LOCUS_CACHE"] = str(where / "cache")
        (where / "tmp").mkdir(exist_ok=True)
        tempfile.tempdir = str(where / "tmp")
        with (where / "printed").open("ab") as printed:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
        placed_points.detector_or_reason = lambda: (Scattered(), "")  # without weights to download
        try:
            code = main(filled)
            for thread in threading.enumerate():  # as the interpreter does when it ends
                if thread is not threading.main_thread() and not thread.daemon:
                    thread.join(10)
            os._exit(code)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(99)

    def finish(self, words: str, where: Path) -> int:
        """Run a command to its end, a service until it has answered; the exit code."""
        process = self.start(words, where)
        if words.startswith("serve"):
            self.ask(where, threading.Event())
            os.kill(process, signal.SIGTERM)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def ask(self, where: Path, gone: threading.Event) -> None:
        """Have the service that was started last localize an image, unless it is gone before."""
        while not (urls := re.findall(r"http://[\d.]+:\d+", (where / "printed").read_text())):
            if gone.wait(0.02):
                return
        image = next((self.data / "a").rglob("*.png")).read_bytes()
        stated = {
            "width": room.WIDTH,
            "height": room.HEIGHT,
            "fx": room.FX,
            "fy": room.FY,
            "cx": room.CX,
            "cy": room.CY,
        }
        form = {"files": {"image": image}, "data": {"intrinsics": json.dumps(stated)}}
        with suppress(httpx2.TransportError):  # it was killed meanwhile
            answer = httpx2.post(f"{urls[0]}/localize", **form, timeout=60)
            assert answer.status_code == 200, answer.text
            return
        assert gone.wait(60), "the service broke off"

    def state(self, job: Job, where: Path) -> tuple[dict[str, Any], set[str]]:
        """The results, and the names of files in the cache."""
        return job.result(where / "here"), set(content(where / "cache")) if (where / "cache").exists() else set()

    def expect(self, name: str) -> None:
        """Do it once without a kill."""
        job, where = JOBS[name], self.root / f"whole {name}".replace(" ", "-")
        if job.before:
            assert self.finish(job.before, where) == 0
            shutil.copytree(where / "here", self.root / f"before {name}")
            shutil.rmtree(where / "cache")
        began = time.perf_counter()
        code = self.finish(job.words, where)
        assert code == 0, f"{name}: {(where / 'printed').read_text()}"
        self.expected[name] = *self.state(job, where), time.perf_counter() - began

    def trial(self, name: str) -> int:
        """Kill a command up to three times, run it again, and compare; how many kills came while it was running."""
        job = JOBS[name]
        if name not in self.expected:
            self.expect(name)
        result, cached, seconds = self.expected[name]
        where = self.root / "trial"
        shutil.rmtree(where, ignore_errors=True)
        if job.before:
            shutil.copytree(self.root / f"before {name}", where / "here")
        landed = 0
        for _ in range(self.rng.integers(1, 4)):
            before = left(where)
            process, gone = self.start(job.words, where), threading.Event()
            asking = threading.Thread(target=self.ask, args=(where, gone))
            if name == "serve":
                asking.start()
            time.sleep(self.rng.uniform(0, 1.1 * seconds))
            asked = self.rng.random() < 0.2
            os.kill(process, signal.SIGTERM if asked else signal.SIGKILL)
            landed += os.waitpid(process, 0)[1] != 0
            gone.set()
            if name == "serve":
                asking.join()
            assert not (asked and left(where) - before), f"{name}: {left(where)} after SIGTERM"
            if name == "map --add" and len(LandmarkMap.load(where / "here" / "m").environments) == 2:
                break  # it is done; adding the same again would be another map
        else:
            code = self.finish(job.words, where)
            done = name in ("map", "convert") and " already; " in (where / "printed").read_text()
            assert code == 0 or done, f"{name}: {code} {(where / 'printed').read_text()}"
        again, cached_again = self.state(job, where)
        assert sorted(again) == sorted(result), f"{name}: {set(again) ^ set(result)}"
        different = [key for key in result if again[key] != result[key]]
        assert not different, f"{name}: {different}"
        new = {each for each in cached_again ^ cached if not each.startswith("weights")}  # fetched when first used
        assert not new, f"{name}: {new}"
        assert not content(where / "tmp"), f"{name}: {set(content(where / 'tmp'))} are left"
        return landed


def kill(kills: int, seed: int, jobs: list[str]) -> None:
    """So many kills over some commands, while they are running."""
    with tempfile.TemporaryDirectory() as folder:
        killer, done, turns = Killer(Path(folder), seed), dict.fromkeys(jobs, 0), list(jobs)
        while turns or sum(done.values()) < kills:
            # Each once, then each for as long as the others: a house takes a hundred times as long as a copy.
            rates = np.array([1 / killer.expected[job][2] for job in jobs if job in killer.expected])
            job = turns.pop(0) if turns else jobs[killer.rng.choice(len(jobs), p=rates / rates.sum())]
            done[job] += killer.trial(job)
        counts = ", ".join(f"{job} {count}" for job, count in done.items())
        print(f"{sum(done.values())} kills ({counts}): all results equal, nothing left")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=JOBS)
    told = parser.parse_args()
    kill(told.kills, told.seed, told.jobs)
