"""Files: written so that they are there whole or not at all, locked against a second writer, told apart by content.

Every output is made under another name beside its own (`atomic`, `atomic_folder`), written to disk, renamed, and the
folder that names it written to disk too. While it is made, the system holds a lock for it, and lets go when the process
ends, however it ends: so what a killed process left is known, and removed by the next that writes there.
"""

import hashlib
import json
import mmap
import os
import re
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from locus.checksums import PLACE, sealed, verify
from locus.errors import LocusError
from locus.opening import LARGEST_TEXT, UNLIMITED, opened, parse_json, read

MANIFEST = "checksums.json"
PARTIAL = re.compile(r"\..+\.[0-9a-f]{8}\.locus-partial")
LOCK = re.compile(r"\.(.+)\.locus-lock")


class BusyError(LocusError):
    """Something that another process is writing."""


@contextmanager
def atomic(path: Path) -> Generator[Path, None, None]:
    """A temporary file to write to, in `path`'s folder; it becomes `path` if all went well, and vanishes if not.

    Write to the file itself: a library that makes a temporary file of its own beside it (safetensors' `save_file`)
    leaves that one behind when the program is killed, under a name that nobody knows.
    """
    if path.is_dir():
        raise LocusError(f"{path} is a folder; name a file")
    with temporary_name(path) as temporary:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        _sync(temporary)  # before it has its name: a power cut must not leave a name with nothing in it
        temporary.replace(path)
        _sync(path.parent)


@contextmanager
def atomic_folder(path: Path, replace: bool = False) -> Generator[Path, None, None]:
    """An empty folder to fill, beside the new folder `path`, which it becomes if all went well; it vanishes if not.

    Checksums of all that is in it are put with it (`still_sound`). `replace` waits for another writer, and takes the
    place of what is there.
    """
    clear_leftovers(path.parent)
    with temporary_name(path) as temporary, lock(path, wait=replace):
        if path.exists() and not replace:
            raise LocusError(f"{path} exists already; choose another folder or remove it first")
        temporary.mkdir()
        yield temporary
        files = sorted(file for file in temporary.rglob("*") if file.is_file())
        hashes = {file.relative_to(temporary).as_posix(): content_hash(file) for file in files}
        (temporary / MANIFEST).write_bytes(_sealed_json({"files": hashes}))
        for item in (*temporary.rglob("*"), temporary):
            _sync(item)
        if path.exists():
            with temporary_name(path) as old:
                path.rename(old)
        temporary.rename(path)
        _sync(path.parent)


@contextmanager
def temporary_name(path: Path) -> Generator[Path, None, None]:
    """A name beside `path` for what is to become it, locked while it is used, and free in the end.

    Errors about it name `path`.
    """
    # Not all of a long name: with what is added it must not be longer than a name may be.
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.locus-partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_once(path.parent)
        with lock(temporary):
            try:
                yield temporary
            finally:
                _remove(temporary)
    except OSError as error:
        if error.errno is None or not _about(error.filename, path, temporary):
            raise
        where = f" ({error.filename})" if error.filename is not None and Path(error.filename) in path.parents else ""
        raise LocusError(f"{path} cannot be written: {error.strerror}{where}{cache_advice(path)}") from error


def _about(file: object, path: Path, temporary: Path) -> bool:
    """Whether an error is about what is written: then it names that, a folder above it or, on a full disk, nothing."""
    return file is None or temporary.name in str(file) or Path(str(file)) in (path, *path.parents)


def _sync(item: Path) -> None:
    if os.name == "nt" and item.is_dir():
        return  # it has no such thing
    handle = os.open(item, os.O_RDONLY if item.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(item: Path) -> None:
    if item.is_dir():
        shutil.rmtree(item, ignore_errors=True)
    else:
        item.unlink(missing_ok=True)


def clear_leftovers(folder: Path) -> None:
    """Remove what processes that are gone left in a folder when they were killed while they wrote there."""
    there = [item.name for item in folder.iterdir()] if folder.is_dir() else []
    locked = {match[1] for match in map(LOCK.fullmatch, there) if match}
    for name in locked | {name for name in there if PARTIAL.fullmatch(name)}:
        with suppress(BusyError, OSError), lock(folder / name):  # which goes, too
            if PARTIAL.fullmatch(name):
                _remove(folder / name)


def clear_once(folder: Path) -> None:
    """The same, but only once in a process: a folder of a hundred thousand files takes long to look through."""
    _clear_in(folder, os.getpid())


@cache
def _clear_in(folder: Path, process: int) -> None:
    clear_leftovers(folder)


def lock_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.locus-lock")


@contextmanager
def lock(path: Path, wait: bool = False) -> Generator[None, None, None]:
    """One process at a time; another one waits, or meets a sentence. It is a hidden file beside the other.

    A folder that was made for it goes with it, if it is still empty.
    """
    made = not path.parent.exists()
    held = FileLock(lock_file(path), timeout=-1 if wait else 0, thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held.acquire()
    except Timeout:
        raise BusyError(f"another process is writing {path}; wait for it, or choose another name") from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        yield
    finally:
        with suppress(OSError):  # who waits for it notices, and makes a new one
            Path(held.lock_file).unlink()
        held.release()
        if made:
            with suppress(OSError):
                path.parent.rmdir()


def verified(path: Path) -> bool:
    """Whether a file has a checksum; an error if it does not fit. It is looked through where it is, and not loaded."""
    with opened(path, UNLIMITED) as file:
        if not os.fstat(file.fileno()).st_size:
            return False  # there is nothing to map
        return verify(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), path)


def write_json(path: Path, content: object) -> None:
    """Content as a JSON file, indented for people, as others read it."""
    with atomic(path) as file:
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def save_json(path: Path, content: dict[str, Any]) -> None:
    """Content as a JSON file of our own, with a checksum."""
    with atomic(path) as file:
        file.write_bytes(_sealed_json(content))


def _sealed_json(content: dict[str, Any]) -> bytes:
    return sealed((json.dumps({"checksum": PLACE, **content}, indent=1) + "\n").encode())


def load_json(path: Path) -> dict[str, Any]:
    """What `save_json` wrote."""
    content = parse_json(read(path, LARGEST_TEXT), path)
    if not isinstance(content, dict):
        raise LocusError(f"{path} does not hold what LoCUS writes there; restore it or make it again")
    content.pop("checksum", None)
    return content


def still_sound(folder: Path) -> dict[str, bool]:
    """Whether each file of a folder made with `atomic_folder` is there as it was."""
    stated = load_json(folder / MANIFEST).get("files")
    if not isinstance(stated, dict):
        raise LocusError(f"{folder / MANIFEST} lists no files; restore it, or write the folder again")
    return {name: content_hash(folder / name) == then for name, then in stated.items()}


def content_hash(*parts: object) -> str:
    """A hash of files by their bytes, of arrays by their values, of other things by what `repr` says of them.

    A file that cannot be read counts as one that is not there.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            try:
                state = part.stat()
                digest.update(_file_hash(part, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))
            except (OSError, ValueError):  # a name with a zero in it
                digest.update(b"no file")
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:32]


@lru_cache(maxsize=2**16)
def _file_hash(path: Path, *state: int) -> bytes:
    """Read once in a process, and again when the file is another, by the time that the system itself keeps too."""
    digest = hashlib.sha256()
    with opened(path, UNLIMITED) as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.digest()


def cache_folder() -> Path:
    """Where LoCUS keeps what it can make or fetch again: $LOCUS_CACHE, by default ~/.cache/locus."""
    return Path(os.environ.get("LOCUS_CACHE") or Path.home() / ".cache" / "locus").expanduser()


def cache_advice(file: str | Path) -> str:
    """What to do about a file that could not be written, if it belongs to that folder."""
    inside = cache_folder() in (Path(file), *Path(file).parents)
    return "; let $LOCUS_CACHE name a folder that can be written" if inside else ""
