"""The one door to files: regular ones only, and no larger than their readers expect.

A file may come from a stranger. A pipe would never end; a device would fill the memory, and so would a few bytes of
disk that claim to be gigabytes. So whatever LoCUS reads is opened here; and where a library opens a file by itself, the
file has been `admitted` before.
"""

import json
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from locus.checksums import verify
from locus.errors import LocusError

LARGEST = 2**31  # bytes of a file that is read as a whole, unless a reader says otherwise
LARGEST_TEXT = 2**27  # bytes of text; in memory it takes up to twelve times as many
MOST_DIGITS = 300  # of a whole number that is one; float() of a longer one would be an error, and this is infinity
MOST_LISTS = 2**23  # lists and tables in JSON, each of which takes some 70 bytes of memory and two of text
UNLIMITED = 2**63


@contextmanager
def opened(path: Path, largest: int = LARGEST) -> Generator[BinaryIO, None, None]:
    """A file to read."""
    if "\0" in str(path):
        raise LocusError(f"{str(path)!r} is no name of a file")
    if path.is_dir():
        raise LocusError(f"{path} is a folder; name a file")
    with open(path, "rb", opener=lambda *how: os.open(how[0], how[1] | getattr(os, "O_NONBLOCK", 0))) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise LocusError(f"{path} is a pipe or a device; name a file")
        if state.st_size > largest:
            raise LocusError(
                f"{path} has {state.st_size / 1e6:.0f} MB, more than the {largest / 1e6:.0f} MB that such a file may "
                "have; check what it holds, or split it"
            )
        yield file


def admitted(path: Path, largest: int = UNLIMITED) -> Path:
    """A file that a library is about to open by its name."""
    with _named(path), opened(path, largest):
        return path


def read(path: Path, largest: int = LARGEST) -> bytes:
    """The content of a file of ours, refused if it has a checksum that it does not fit."""
    with opened(path, largest) as file:
        content = file.read()
    verify(content, path)
    return content


def read_text(path: Path, largest: int = LARGEST_TEXT) -> str:
    """The text of anybody's file, without a mark of its encoding; bytes that are no text become question marks."""
    with _named(path), opened(path, largest) as file:
        return file.read().decode("utf-8-sig", "replace")


def read_json(path: Path) -> Any:
    """What anybody's JSON file says."""
    with _named(path), opened(path, LARGEST_TEXT) as file:
        return parse_json(file.read(), path)


@contextmanager
def _named(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except FileNotFoundError:
        raise LocusError(f"{path} is missing") from None
    except (OSError, ValueError) as error:  # a name with a zero in it is a ValueError
        raise LocusError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def parse_json(content: bytes | str, name: object) -> Any:
    """What JSON says; `name` is for errors."""
    brackets = (b"[", b"{") if isinstance(content, bytes) else ("[", "{")
    if sum(map(content.count, brackets)) > MOST_LISTS:  # ty: ignore[invalid-argument-type]
        raise LocusError(f"{name} holds more than {MOST_LISTS} lists and tables and is refused")
    try:
        return json.loads(content, parse_int=_whole)
    except RecursionError:
        raise LocusError(f"{name} is not readable JSON: its lists and tables nest too deep") from None
    except ValueError as error:
        raise LocusError(f"{name} is not readable JSON ({error})") from None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)
