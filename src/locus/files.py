"""Files: written so that they are there whole or not at all, locked against a second writer, told apart by content."""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import lru_cache
from glob import escape
from pathlib import Path

import numpy as np
from filelock import FileLock


@contextmanager
def atomic(path: Path) -> Generator[Path, None, None]:
    """A temporary file to write to, in `path`'s folder; it becomes `path` if all went well, and vanishes if not.

    Write to the file itself: a library that makes a temporary file of its own beside it (safetensors' `save_file`)
    leaves that one behind when the program is killed, under a name that `clear_leftovers` does not know.
    """
    if path.is_dir():  # renaming would fail at the end, with the temporary file's name in the message
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # On disk before it has its name: a power cut must not leave a name with nothing in it.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: object) -> None:
    """Content as a JSON file, indented for people."""
    with atomic(path) as file:
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def clear_leftovers(paths: Iterable[Path]) -> None:
    """Remove what `atomic` left beside files when a program was killed while it wrote them.

    Another program that writes one of them at this moment would lose its file, and say so.
    """
    for path in paths:
        for leftover in path.parent.glob(f".{escape(path.name)}.????????"):  # as mkstemp names them
            leftover.unlink(missing_ok=True)


def lock(path: Path) -> FileLock:
    """The lock of a file: one process at a time. The system lets go of it when the process ends, however it ends.

    It is a hidden file beside the other, and stays: to remove it while somebody waits for it would make two locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_name(f".{path.name}.lock"), thread_local=False)


def content_hash(*parts: object) -> str:
    """A hash of files by their bytes, of arrays by their values, of other things by what `repr` says of them.

    A file that cannot be read counts as one that is not there.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            try:
                state = part.stat()
                digest.update(_file_hash(part, state.st_size, state.st_mtime_ns))
            except OSError:
                digest.update(b"no file")
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:32]


@lru_cache(maxsize=2**16)
def _file_hash(path: Path, size: int, changed: int) -> bytes:
    """Read once in a process, and again when the size or the time of change is another."""
    return hashlib.sha256(path.read_bytes()).digest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def cache_folder() -> Path:
    """Where LoCUS keeps what it can make or fetch again: $LOCUS_CACHE, by default ~/.cache/locus."""
    return Path(os.environ.get("LOCUS_CACHE") or Path.home() / ".cache" / "locus").expanduser()
