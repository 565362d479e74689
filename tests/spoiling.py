"""Ways to spoil a file, and examples with spoiled files: bytes, numbers, lines and brackets, and what is no file."""

import os
import re
import shutil
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np

from locus.checksums import FORM, PLACE, sealed
from tests.fuzzing_examples import EXAMPLES

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
