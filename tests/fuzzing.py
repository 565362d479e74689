"""Spoil small sound examples of every format, and read them: each works, or is one sentence.

    python -m tests.fuzzing --count 10000 --seed 0
    python -m tests.fuzzing --seed 0 --only 4711        # one input again, with its traceback

An input is made from the seed and its number alone. Processes are forked from one that has all imported, each reads
many inputs, and may take 2 GiB more than it has, and 20 s for one. What else comes than a `LocusError` of one line is a
failure; so is a message that quotes an exception's name or advice to unpickle, or one behind which memory ran out.
"""

import argparse
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from locus.errors import LocusError
from tests.fuzzing_examples import EXAMPLES, written
from tests.spoiling import Spoiler

MEMORY, SECONDS, EACH = 2**31, 20, 200
PATIENCE = 5  # seconds for one of computing, beside other programs
POOR = re.compile(
    r"\b[A-Z]\w*(Error|Exception)\b|pickle\.load|allow_pickle|weights_only|object at 0x|Unable to allocate"
)


def outcome(read: Callable[[Path], object], folder: Path) -> str:
    """What comes of it: `works`, `refused`, or what is wrong with that."""
    try:
        told = read(folder)
        refusals = [each for each in told if isinstance(each, LocusError)] if isinstance(told, list) else []
    except LocusError as error:
        refusals = [error]
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} at {_place(error)}"
    wrong = (fault(error, str(folder.parent)) for error in refusals)
    return next(filter(None, wrong), "refused" if refusals else "works")


def fault(error: LocusError, folder: str) -> str:
    """What is wrong with a refusal, if anything is."""
    message, cause = str(error).replace(folder, ""), error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return f"out of memory: {message}"
        cause = cause.__cause__ or cause.__context__
    return f"poor message: {message}" if "\n" in message or POOR.search(message) else ""


def _place(error: Exception) -> str:
    """The last line of the package that it passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}locus{os.sep}" in frame.filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}"


def read_some(spoiler: Spoiler, turns: range, report: int) -> None:
    """In a process of its own: inputs one after the other, and after each a line about it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)  # libraries write what they think of a file
    warnings.simplefilter("ignore")
    used = int(re.search(r"VmData:\s*(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # ty: ignore
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
    for turn in turns:
        example, done, folder = spoiler.input(turn)
        os.write(report, (json.dumps([turn, f"{example}, {'; '.join(done)}", None]) + "\n").encode())
        began = time.process_time()
        result = outcome(EXAMPLES[example][1], folder)
        if time.process_time() - began > SECONDS:
            result = f"longer than {SECONDS} s"
        os.write(report, (json.dumps([turn, "", result]) + "\n").encode())


def results(spoiler: Spoiler, turns: range) -> Iterator[tuple[int, str, str]]:
    """(number, what was done, what came of it) of each input."""
    turn = turns.start
    while turn < turns.stop:
        listen, report = os.pipe()
        process = os.fork()
        if not process:
            code = 1
            try:
                read_some(spoiler, range(turn, min(turn + EACH, turns.stop)), report)
                code = 0
            finally:
                os._exit(code)
        os.close(report)
        waiting, heard = "", b""
        while True:
            if not select.select([listen], [], [], PATIENCE * SECONDS)[0]:
                os.kill(process, signal.SIGKILL)
                yield turn, waiting, "no answer"
                turn += 1
                break
            heard += (news := os.read(listen, 65536))
            *lines, heard = heard.split(b"\n")
            for number, done, result in map(json.loads, lines):
                waiting = done or waiting
                if result is not None:
                    yield number, waiting, result
                    turn = number + 1
            if not news:
                break
        os.close(listen)
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if ended not in (0, -signal.SIGKILL):
            yield turn, waiting, f"the process ended with {ended}"
            turn += 1


def fuzz(turns: range, seed: int) -> tuple[Counter, list[str]]:
    """How often what came, and the failures, which are printed as they come."""
    with tempfile.TemporaryDirectory() as name:
        spoiler = Spoiler(written(Path(name) / "examples"), Path(name), seed)
        found, failures = Counter(), []
        for turn, done, result in results(spoiler, turns):
            sound = result in ("works", "refused")
            found[result if sound else "failed"] += 1
            if not sound:
                failures.append(f"{turn} ({done}): {result}")
                print(failures[-1], flush=True)
    return found, failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    told = parser.parse_args()
    if told.only is not None:
        with tempfile.TemporaryDirectory() as name:
            example, done, folder = Spoiler(written(Path(name) / "examples"), Path(name), told.seed).input(told.only)
            print(example, done)
            EXAMPLES[example][1](folder)
            sys.exit()
    found, failures = fuzz(range(told.first, told.first + told.count), told.seed)
    print(", ".join(f"{count} {result}" for result, count in found.items()))
    sys.exit(bool(failures))
