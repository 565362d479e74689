"""A file that changes from one whole state to the next, whatever happens in between.

HDF5 overwrites its own tables where they lie, so a process that is killed while it writes leaves a file that nothing
opens. `JournaledFile` is handed to h5py in the file's place. It keeps what HDF5 writes in memory until `commit`, which

1. writes what is new behind the old end of the file, where nobody looks yet;
2. writes the changed pages of the old part to a journal beside the file, and gives it its name when it is whole;
3. changes these pages in the file itself.

Killed before 2 is done, the file is as it was. Killed later, the journal finishes the work when the file is next opened
here. That a journal belongs to the file and not to one that took its place is told by the file's first bytes.
"""

import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import Timeout

from locus.errors import LocusError
from locus.files import atomic, clear_leftovers, lock

PAGE = 4096
MAGIC = b"LOCUSJ01"
IDENTITY = 64  # the file's first bytes, never changed after it was made


def journal_of(path: Path) -> Path:
    return path.with_name(path.name + ".journal")


def recover(path: Path) -> None:
    """Finish what a killed process began, before the file is read."""
    if journal_of(path).exists():
        JournaledFile(path).close()


class JournaledFile(io.RawIOBase):
    """The file as HDF5 sees it: what is on disk, overlaid with what has been written since the last commit."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._lock = lock(path)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise LocusError(f"another process has {path} open; wait for it or choose another file") from None
        try:
            self._file = path.open("r+b", buffering=0)
        except OSError:
            self._lock.release()
            raise
        self._identity = self._file.read(IDENTITY)
        self._recover()
        self._whole = True  # the journal is not needed
        self._position = 0
        self._start(self._file.seek(0, os.SEEK_END))

    def _recover(self) -> None:
        """Finish what a killed process began. Doing it twice does no harm."""
        journal = journal_of(self.path)
        clear_leftovers([journal])
        if not journal.exists():
            return
        content = journal.read_bytes()
        magic, checksum, body = content[:8], content[8:12], content[12:]
        if magic == MAGIC and checksum == _checksum(body) and body[:IDENTITY] == self._identity:
            _apply(self._file, _pages(body[IDENTITY:]))

    def _start(self, end: int) -> None:
        self._old_end = self._end = end
        self._changed: dict[int, bytearray] = {}  # pages of the old part, by their offset
        self._tail = bytearray()  # everything behind it

    def commit(self) -> None:
        """Make all that was written part of the file. Where the disk is full, the file stays as it was."""
        try:
            self._file.seek(self._old_end)
            _write(self._file, self._tail)
            os.fsync(self._file.fileno())  # also the pages of the last commit, whose journal is about to go
            self._write_journal()
        except OSError as error:
            self._file.truncate(self._old_end)
            raise LocusError(
                f"{self.path} cannot grow: {error.strerror}; what it holds is sound, so put this right and run again"
            ) from error
        self._whole = False
        _apply(self._file, self._changed)
        self._whole = True
        self._start(self._file.seek(0, os.SEEK_END))

    def _write_journal(self) -> None:
        records = (offset.to_bytes(8, "little") + bytes(page) for offset, page in sorted(self._changed.items()))
        body = self._identity + b"".join(records)
        with atomic(journal_of(self.path)) as partial, partial.open("wb", buffering=0) as file:
            _write(file, MAGIC + _checksum(body) + body)

    def close(self) -> None:
        """Forget what was not committed. The journal goes, unless its work was interrupted."""
        if not self.closed:
            os.fsync(self._file.fileno())
            if self._whole:
                journal_of(self.path).unlink(missing_ok=True)
            self._file.close()
            self._lock.release()
        super().close()

    # What h5py asks of a file: to read and write its own buffers, at a place given by seek.

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._end}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start, stop = self._position, min(self._position + len(view), self._end)
        for place, low, high in self._parts(start, stop):
            view[low - start : high - start] = self._page(place)[low - place : high - place]
        low = max(start, self._old_end)
        if low < stop:
            behind = self._tail[low - self._old_end : stop - self._old_end]
            view[low - start : stop - start] = behind.ljust(stop - low, b"\0")
        self._position = max(start, stop)
        return max(0, stop - start)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        start, stop = self._position, self._position + len(view)
        for place, low, high in self._parts(start, stop):
            page = self._changed.setdefault(place, bytearray(self._page(place)))
            page[low - place : high - place] = view[low - start : high - start]
        low = max(start, self._old_end)
        if low < stop:
            missing = low - self._old_end - len(self._tail)
            self._tail.extend(bytes(max(0, missing)))
            self._tail[low - self._old_end : stop - self._old_end] = view[low - start :]
        self._position, self._end = stop, max(self._end, stop)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """HDF5 says how long it thinks the file is. The old part is never cut: it may be what a reader still needs."""
        self._end = max(self._position if size is None else size, self._old_end)
        length = self._end - self._old_end
        del self._tail[length:]
        self._tail.extend(bytes(length - len(self._tail)))
        return self._end

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The pages of the old part that a stretch of the file meets, each with where it starts and stops there."""
        stop = min(stop, self._old_end)
        if start < stop:
            for place in range(start - start % PAGE, stop, PAGE):
                yield place, max(start, place), min(stop, place + PAGE)

    def _page(self, place: int) -> bytes | bytearray:
        if place in self._changed:
            return self._changed[place]
        self._file.seek(place)
        return self._file.read(min(PAGE, self._old_end - place))


def _checksum(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "little")


def _pages(records: bytes) -> dict[int, bytes]:
    """A page at the old end may be short; it is the last one, so every record but the last is whole."""
    each = (records[start : start + 8 + PAGE] for start in range(0, len(records), 8 + PAGE))
    return {int.from_bytes(record[:8], "little"): record[8:] for record in each}


def _apply(file: io.IOBase, pages: dict[int, bytes] | dict[int, bytearray]) -> None:
    for offset, page in pages.items():
        file.seek(offset)
        _write(file, page)


def _write(file: io.IOBase, data: bytes | bytearray) -> None:
    """All of it: a single call may write less on a disk that is nearly full."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
