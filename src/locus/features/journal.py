"""A file that changes from one whole state to the next, whatever happens in between.

HDF5 overwrites its own tables where they lie, so a process that is killed while it writes leaves a file that nothing
opens. `JournaledFile` is handed to h5py in the file's place. It keeps what HDF5 writes in memory until `commit`, which

1. writes what is new behind the old end of the file, where nobody looks yet;
2. writes the changed pages of the old part to a journal beside the file, and gives it its name when it is whole;
3. changes these pages in the file itself.

Killed before 2 is done, the file is as it was. Killed later, the journal finishes the work when the file is next opened
here. That a journal belongs to the file and not to one that took its place is told by the file's first bytes.

Behind these stands the file's checksum, which changes with every commit: how long the file is, and the sum of the
CRC-32 of its pages, so that only those that change have to be read again. Of files of earlier versions it is zeros.
"""

import io
import os
import re
import uuid
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from locus.errors import DamagedError, LocusError
from locus.files import atomic, clear_leftovers, lock, lock_file
from locus.opening import opened

PAGE = 4096
BLOCK = 256 * PAGE  # read at a time to be looked through
MAGIC = b"LOCUSJ01"
IDENTITY = 64  # the file's first bytes, never changed after it was made
OURS = b"LoCUS features "  # with what they begin
CHECKSUM = slice(IDENTITY, 2 * IDENTITY)
FORM = re.compile(rb"crc32 of pages ([0-9a-f]{16}) of ([0-9a-f]{16}) bytes\n *")


def journal_of(path: Path) -> Path:
    return path.with_name(path.name + ".journal")


def recover(path: Path) -> None:
    """Finish what a killed process began, before the file is read; an error if a process is writing it."""
    traces = lock_file(path).exists() and os.access(path, os.W_OK)  # where nobody can write, nobody does
    if traces or journal_of(path).exists():
        JournaledFile(path).close()


def verify_pages(path: Path) -> bool:
    """Whether a file has a checksum, as those of earlier versions have not; an error if it is wrong."""
    with opened(path, 2**63) as file:
        return _verified(file, path) is not None


def _verified(file: Any, path: Path) -> tuple[int, int] | None:
    """The sum over a file's pages and its length, as it states them itself; an error if they are wrong."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(CHECKSUM.stop)
    found = FORM.fullmatch(head[CHECKSUM])
    if found is None and not (head.startswith(OURS) and any(head[CHECKSUM])):
        return None
    total, length = (int(found[1], 16), int(found[2], 16)) if found else (0, 0)
    if not 0 < length <= size or _total(file, length) != total:
        raise DamagedError(f"{path} is damaged: its content does not fit its checksum; remove it and extract it again")
    return total, length


def begin(path: Path) -> None:
    """Give a new file what tells it from every other, and its first checksum."""
    with path.open("r+b") as file:
        file.write((OURS + str(uuid.uuid4()).encode() + b"\n").ljust(IDENTITY))
        end = file.seek(0, os.SEEK_END)
        stated = _statement(_total(file, end), end)
        file.seek(CHECKSUM.start)
        file.write(stated)


def _statement(total: int, length: int) -> bytes:
    return (b"crc32 of pages %016x of %016x bytes\n" % (total, length)).ljust(IDENTITY)


def _total(file: Any, length: int) -> int:
    file.seek(0)
    total = 0
    for start in range(0, length, BLOCK):
        block = memoryview(file.read(min(BLOCK, length - start)))
        total += sum(_page_sum(start + place, block[place : place + PAGE]) for place in range(0, len(block), PAGE))
    return total % 2**64


def _page_sum(place: int, page: bytes | bytearray | memoryview) -> int:
    """The checksum of a page at its place; of the first one, without the checksum that is in it."""
    if place == 0:
        page = bytearray(page)
        page[CHECKSUM] = bytes(len(page[CHECKSUM]))
    return zlib.crc32(page, place // PAGE)


class JournaledFile(io.RawIOBase):
    """The file as HDF5 sees it: what is on disk, overlaid with what has been written since the last commit."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        with ExitStack() as stack:  # lets go if the next step fails
            with opened(path, 2**63):
                pass  # a regular file
            stack.enter_context(lock(path))
            self._file = stack.enter_context(path.open("r+b", buffering=0))
            self._identity = self._file.read(IDENTITY)
            self._recover()
            self._whole = True  # the journal is not needed
            self._position = 0
            end = self._file.seek(0, os.SEEK_END)
            self._sum, length = _verified(self._file, path) or (_total(self._file, end), end)
            if length < end:  # killed after it had grown, before anybody was to look there
                self._file.truncate(length)
            self._start(length)
            self._open = stack.pop_all()

    def _recover(self) -> None:
        """Finish what a killed process began. Doing it twice does no harm."""
        journal = journal_of(self.path)
        clear_leftovers(self.path.parent)
        end = self._file.seek(0, os.SEEK_END)
        if not journal.exists():
            return
        with opened(journal, 2 * end + 2**20) as file:
            content = file.read()
        magic, checksum, body = content[:8], content[8:12], content[12:]
        if magic == MAGIC and checksum == _checksum(body) and body[:IDENTITY] == self._identity:
            pages = _pages(body[IDENTITY:])
            if all(place % PAGE == 0 and place + len(page) <= end for place, page in pages.items()):
                _apply(self._file, pages)

    def _start(self, end: int) -> None:
        self._old_end = self._end = end
        self._changed: dict[int, bytearray] = {}  # pages of the old part, by their offset
        self._tail = bytearray()  # everything behind it

    def commit(self) -> None:
        """Make all that was written part of the file. Where the disk is full, the file stays as it was."""
        total = self._seal()
        try:
            self._file.seek(self._old_end)
            _write(self._file, self._tail)
            os.fsync(self._file.fileno())  # also the pages of the last commit, whose journal is about to go
            self._write_journal()
        except (OSError, LocusError) as error:
            self._file.truncate(self._old_end)
            reason = error.strerror if isinstance(error, OSError) else error
            raise LocusError(
                f"{self.path} cannot grow: {reason}; what it holds is sound, so put this right and run again"
            ) from error
        self._whole = False
        _apply(self._file, self._changed)
        self._whole = True
        self._sum = total
        self._start(self._file.seek(0, os.SEEK_END))

    def _seal(self) -> int:
        """Write the checksum of what the file will be, and give the sum in it."""
        total = self._sum
        if not self._identity.startswith(OURS):
            return total
        last = self._old_end - self._old_end % PAGE
        for place in sorted({*self._changed, *range(last, self._end, PAGE)}):
            page = bytearray(min(PAGE, self._end - place))
            self.seek(place)
            self.readinto(page)
            total += _page_sum(place, page)
            if place < self._old_end:
                total -= _page_sum(place, self._stored(place))
        total %= 2**64
        self.seek(CHECKSUM.start)
        self.write(_statement(total, self._end))
        return total

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
            self._open.close()
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
        return self._stored(place)

    def _stored(self, place: int) -> bytes:
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
