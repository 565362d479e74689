"""Spoil small sound examples of every format, and read them: each works, or is one sentence.

    python -m tests.fuzzing --count 10000 --seed 0
    python -m tests.fuzzing --seed 0 --only 4711        # one input again, with its traceback

An input is made from the seed and its number alone. Processes are forked from one that has all imported, each reads
many inputs, and may take 2 GiB more than it has and 20 s for one. What else comes than a `LocusError` of one line is a
failure; so is a message that quotes an exception's name or advice to unpickle, or one behind which memory ran out.
"""

import argparse
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np

from locus.checksums import FORM, PLACE, sealed
from locus.errors import LocusError
from tests.fuzzing_examples import EXAMPLES, written

MEMORY, SECONDS, EACH = 2**31, 20, 200
POOR = re.compile(
    r"\b[A-Z]\w*(Error|Exception)\b|pickle\.load|allow_pickle|weights_only|object at 0x|Unable to allocate"
)

NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
WORDS = [b"1e308", b"-1e308", b"NaN", b"nan", b"inf", b"Infinity", b"-Infinity", b"1e20", b"65536", b"1e12", b"1e200"]
WORDS += [b"9" * 19, b"9" * 400, b"-1", b"0", b"", b"x", b'"x"', b"null", b"[]", b"{}", b"true", b"\0", b"1e-320"]
WORDS += [b"../../outside", b"/etc/passwd", b"2147483648", b"4294967295", b"1_0", b"\xff\xfe", b"\n", b"\x1b[31m"]
FIELDS = [0, 1, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1]


def spot(rng: np.random.Generator, data: bytes) -> tuple[int, int]:
    """A stretch of some bytes, mostly near the beginning, where headers are."""
    end = len(data) if rng.random() < 0.5 else min(len(data), 300)
    start = int(rng.integers(end + 1))
    return start, min(len(data), start + int(2 ** rng.uniform(0, 10)))


def flip(rng: np.random.Generator, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        if changed:
            changed[spot(rng, data)[0] % len(changed)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(rng: np.random.Generator, data: bytes) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def leave_out(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = spot(rng, data)
    return data[:start] + data[stop:]


def repeat(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = spot(rng, data)
    return data[:start] + data[start:stop] * int(2 ** rng.uniform(1, 8)) + data[stop:]


def fill(rng: np.random.Generator, data: bytes) -> bytes:
    start, stop = spot(rng, data)
    return data[:start] + bytes([rng.choice([0, 255, 65])]) * (stop - start) + data[stop:]


def field(rng: np.random.Generator, data: bytes) -> bytes:
    """An extreme whole number or float in place of a few bytes."""
    size = int(rng.choice([1, 2, 4, 8]))
    value = int(rng.choice(np.array(FIELDS, np.uint64))) % 256**size
    packed = value.to_bytes(size, rng.choice(["little", "big"]))
    if rng.random() < 0.3:
        packed = np.array(rng.choice([np.nan, np.inf, -np.inf, 1e30, -1.0]), rng.choice(["<f4", "<f8"])).tobytes()
    start = spot(rng, data)[0]
    return data[:start] + packed + data[start + len(packed) :]


def number(rng: np.random.Generator, data: bytes) -> bytes:
    """Another word where text has a number."""
    found = list(NUMBER.finditer(data[:200_000]))
    if not found:
        return field(rng, data)
    start, stop = found[rng.integers(len(found))].span()
    return data[:start] + WORDS[rng.integers(len(WORDS))] + data[stop:]


def line(rng: np.random.Generator, data: bytes) -> bytes:
    """A line left out, doubled, moved, emptied or put into brackets; or none at the end."""
    lines = data.split(b"\n")
    k, other = (int(rng.integers(len(lines))) for _ in range(2))
    changes: list[Callable[[], object]] = [
        lambda: lines.pop(k),
        lambda: lines.insert(other, lines[k]),
        lambda: lines.__setitem__(k, b""),
        lambda: lines.__setitem__(k, lines[k][: len(lines[k]) // 2]),
        lambda: lines.__setitem__(k, b"[" * 100_000 + lines[k]),
        lambda: lines.__setitem__(slice(-1, None), [] if len(lines) > 1 else lines),
    ]
    changes[rng.integers(len(changes))]()
    return b"\n".join(lines)


def nest(rng: np.random.Generator, data: bytes) -> bytes:
    return rng.choice([b"[", b'{"a":', b"(", b"- "]).item() * 100_000 + data


def sealed_again(data: bytes) -> bytes:
    """With a checksum that fits, where it had one: a reader should not get away with that."""
    if data[512:520] == b"\x89HDF\r\n\x1a\n":
        return data[:64] + bytes(64) + data[128:]
    found = FORM.search(data)
    return sealed(data.replace(found[0], PLACE.encode(), 1)) if found else data


def inside(rng: np.random.Generator, data: bytes, change: Callable[..., bytes]) -> bytes:
    """The same of one file in a zip, with its checksum."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as changed:
        names = archive.namelist()
        chosen = names[rng.integers(len(names))]
        for name in names:
            content = archive.read(name)
            changed.writestr(name, change(rng, content) if name == chosen else content)
    return out.getvalue()


BYTES = [flip, cut, leave_out, repeat, fill, field, number, line, nest]
CHANCES = np.array([3, 1, 1, 1, 1, 3, 4, 1.5, 0.5])


class Spoiler:
    """Puts an example into a folder, with one or two of its files spoiled."""

    def __init__(self, examples: dict[str, dict[str, bytes]], root: Path, seed: int) -> None:
        self.examples, self.root, self.seed = examples, root, seed
        self.outside = root / "outside"

    def input(self, turn: int) -> tuple[str, list[str], Path]:
        """Which example it is, what was done to it, and where it is."""
        rng = np.random.default_rng([self.seed, turn])
        example = list(EXAMPLES)[turn % len(EXAMPLES)]
        folder = self.root / "input"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.outside, ignore_errors=True)
        self.outside.mkdir()
        files = self.examples[example]
        for name, content in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        names = list(files)
        weights = np.array([1.0 if name.endswith((".png", ".jpg")) else 3.0 for name in names])
        chosen = rng.choice(names, min(len(names), int(rng.integers(1, 3))), replace=False, p=weights / weights.sum())
        return example, [f"{name}: {self.spoil(rng, folder / name, files[name])}" for name in chosen], folder

    def spoil(self, rng: np.random.Generator, file: Path, content: bytes) -> str:
        if rng.random() < 0.25:
            kinds = [self.pipe, self.grown, self.swapped, self.linked, self.device, self.folder, self.gone, self.lost]
            change = kinds[rng.integers(len(kinds))]
            file.unlink()
            change(rng, file, content)
            return change.__name__
        change = BYTES[rng.choice(len(BYTES), p=CHANCES / CHANCES.sum())]
        if content.startswith(b"PK") and rng.random() < 0.7:
            content = inside(rng, content, change)
        else:
            content = change(rng, content)
        file.write_bytes(sealed_again(content))
        return change.__name__

    def pipe(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        os.mkfifo(file)

    def grown(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        """Three gigabytes that take no room on disk."""
        file.write_bytes(content)
        os.truncate(file, 3 * 2**30)

    def swapped(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        others = list(self.examples[list(EXAMPLES)[rng.integers(len(EXAMPLES))]].values())
        file.write_bytes(others[rng.integers(len(others))])

    def linked(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        (self.outside / "file").write_bytes(content)
        file.symlink_to(self.outside / "file")

    def device(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        file.symlink_to("/dev/zero")

    def folder(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        file.mkdir()

    def gone(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        pass

    def lost(self, rng: np.random.Generator, file: Path, content: bytes) -> None:
        file.symlink_to(file.with_name("nowhere"))


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
        result = outcome(EXAMPLES[example][1], folder)
        os.write(report, (json.dumps([turn, "", result]) + "\n").encode())


def results(spoiler: Spoiler, count: int) -> Iterator[tuple[int, str, str]]:
    """(number, what was done, what came of it) of each input."""
    turn = 0
    while turn < count:
        listen, report = os.pipe()
        process = os.fork()
        if not process:
            code = 1
            try:
                read_some(spoiler, range(turn, min(turn + EACH, count)), report)
                code = 0
            finally:
                os._exit(code)
        os.close(report)
        waiting, heard = "", b""
        while True:
            if not select.select([listen], [], [], SECONDS)[0]:
                os.kill(process, signal.SIGKILL)
                yield turn, waiting, f"longer than {SECONDS} s"
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


def fuzz(count: int, seed: int) -> tuple[Counter, list[str]]:
    """How often what came, and the failures, which are printed as they come."""
    with tempfile.TemporaryDirectory() as name:
        spoiler = Spoiler(written(Path(name) / "examples"), Path(name), seed)
        found, failures = Counter(), []
        for turn, done, result in results(spoiler, count):
            sound = result in ("works", "refused")
            found[result if sound else "failed"] += 1
            if not sound:
                failures.append(f"{turn} ({done}): {result}")
                print(failures[-1], flush=True)
    return found, failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    told = parser.parse_args()
    if told.only is not None:
        with tempfile.TemporaryDirectory() as name:
            example, done, folder = Spoiler(written(Path(name) / "examples"), Path(name), told.seed).input(told.only)
            print(example, done)
            EXAMPLES[example][1](folder)
            sys.exit()
    found, failures = fuzz(told.count, told.seed)
    print(", ".join(f"{count} {result}" for result, count in found.items()))
    sys.exit(bool(failures))
