"""Messages of a bag by their place in it: ROS 1, ROS 2 (SQLite or MCAP), read through rosbags, the extra `capture`.

rosbags reads a bag from its beginning to its end. Here only its index is kept, so that a frame is read when it is asked
for, and of ten gigabytes of images nothing but the first bytes of each, which hold its time, when the bag is opened.
"""

import os
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from io import BufferedReader, BytesIO, FileIO
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from locus.errors import LocusError, SceneError, to_install
from locus.opening import read_text

LARGEST_METADATA = 2**22  # bytes of metadata.yaml
HEAD = 512  # bytes that hold the time, the camera's frame, the size and the encoding of an image
MAX_MESSAGE = 2**29  # bytes; a larger message, or a larger chunk of them, is taken for a decompression bomb


class Entry(NamedTuple):
    """Where a message is: in which of the bag's files, in which chunk of it (or row), and where in the chunk."""

    file: int
    chunk: int
    offset: int
    topic: str


class Storage(ABC):
    """One file of a bag, as rosbags has opened it."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.chunks = Chunks()

    @abstractmethod
    def places(self, topic: str) -> Iterable[tuple[int, int]]:
        """(chunk, offset) of each message of a topic."""

    @abstractmethod
    def message(self, chunk: int, offset: int, limit: int) -> bytes:
        """The bytes of a message, of a longer one only so many."""


class Bag:
    """An opened bag. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        with self._sentences("is no bag that can be read"):
            self._reader = _opened(path)
            self.topics: dict[str, str] = {c.topic: c.msgtype for c in self._reader.connections if c.msgcount}
            (bag,) = self._reader.readers
            self._storages = _storages(bag, self._reader.is2)
            self._packed = self._reader.is2 and bag.compression_mode == "message"

    def entries(self, topics: Collection[str]) -> list[Entry]:
        """Where the messages of some topics are, in the order in which they are stored."""
        with self._lock, self._sentences("has a damaged index"):
            places = (
                Entry(number, *place, topic)
                for number, storage in enumerate(self._storages)
                for topic in topics
                for place in storage.places(topic)
            )
            return sorted(places)

    def head(self, entry: Entry) -> bytes:
        """The first bytes of a message."""
        return self._bytes(entry, HEAD)

    def message(self, entry: Entry) -> Any:
        """A message with the fields that ROS gives it."""
        data = self._bytes(entry, MAX_MESSAGE + 1)
        if len(data) > MAX_MESSAGE:
            raise LocusError(f"{self.path}: a message of {entry.topic} is larger than {MAX_MESSAGE >> 20} MiB; refused")
        with self._sentences(f"has a damaged message of {entry.topic}"):
            return self._reader.deserialize(data, self.topics[entry.topic])

    @property
    def is_ros2(self) -> bool:
        return self._reader.is2

    def _bytes(self, entry: Entry, limit: int) -> bytes:
        with self._lock, self._sentences(f"has a damaged message of {entry.topic}"):
            storage, size = self._storages[entry.file], MAX_MESSAGE if self._packed else limit
            data = storage.message(entry.chunk, entry.offset, size)
            return unpacked("zstd", data, limit) if self._packed else data

    @contextmanager
    def _sentences(self, what: str) -> Generator[None, None, None]:
        """Whatever rosbags, SQLite and the decoders say of a bag that is not what it claims to be, as one sentence."""
        try:
            yield
        except LocusError:
            raise
        except Exception as error:
            said = re.sub(r"\b\w+Error\((.*?)\)", r"\1", " ".join(str(error).split())) or "it is damaged"
            raise SceneError(
                f"{self.path} {what} ({said[:200]}); if the recording was cut short, repair it with `rosbag reindex`, "
                "`ros2 bag reindex` or `mcap recover`"
            ) from None


def check_installed() -> None:
    try:
        import rosbags.highlevel  # noqa: F401
    except ImportError:
        raise SceneError(f"bags need the package rosbags: {to_install('capture')}") from None


def _opened(path: Path) -> Any:
    check_installed()
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    metadata = path / "metadata.yaml"
    if metadata.is_file() and re.search(r"compression_mode:\W*file", read_text(metadata, LARGEST_METADATA), re.I):
        raise SceneError(f"{path} is compressed as a whole; unpack it: rosbags-convert --src {path} --dst NEW_FOLDER")
    reader = AnyReader([BagPath(path)], default_typestore=get_typestore(Stores.LATEST))
    reader.open()
    return reader


class BagPath(type(Path())):  # ty: ignore[unsupported-base]  (Path itself was no base before Python 3.12)
    """A path whose file rosbags opens as a `BoundedReader`."""

    def open(self, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode != "rb":
            return super().open(mode, *arguments, **options)
        return BoundedReader(super().open(mode, buffering=0))


class BoundedReader(BufferedReader):
    """A file of which no more is read at once than it has, nor than a message may: lengths in it may be forged."""

    def __init__(self, raw: FileIO) -> None:
        super().__init__(raw)
        self._end = os.fstat(raw.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._end - self.tell())
        size = left if size is None or size < 0 else min(size, left)
        if size > MAX_MESSAGE + 1:  # one more shows that a message is longer
            raise ValueError(f"a part of it is larger than {MAX_MESSAGE >> 20} MiB")
        return super().read(size)


def _storages(bag: Any, is_ros2: bool) -> list[Storage]:
    """The files of a bag."""
    from rosbags.rosbag2.storage_mcap import McapReader

    if not is_ros2:
        return [Ros1File(bag)]
    files = getattr(bag.storage, "storages", [bag.storage])
    return [McapFile(file) if isinstance(file, McapReader) else SqliteFile(file) for file in files]


def unpacked(compression: str, data: bytes, limit: int) -> bytes:
    """The first bytes of what was compressed, at most so many: a few kilobytes may claim to be many gigabytes."""
    from bz2 import BZ2Decompressor

    from lz4.frame import LZ4FrameDecompressor

    try:
        from compression.zstd import ZstdDecompressor  # ty: ignore[import-not-found]  Python 3.14
    except ImportError:
        from backports.zstd import ZstdDecompressor

    decompressors = {"bz2": BZ2Decompressor, "lz4": LZ4FrameDecompressor, "zstd": ZstdDecompressor}
    return decompressors[compression]().decompress(data, limit)


class Chunks:
    """Chunks of a file, the last one kept: messages are mostly read in the order in which they are stored."""

    def __init__(self) -> None:
        self._kept: tuple[int, bytes] = (-1, b"")

    def at(self, file: Any, number: int, start: int, size: int, compression: str, offset: int) -> Any:
        """A file at a message of a chunk, whose own bytes start at `start`: the same file, or one in memory."""
        if compression in ("", "none"):
            file.seek(start + offset)
            return file
        if self._kept[0] != number:
            file.seek(start)
            data = unpacked(compression, file.read(min(size, MAX_MESSAGE)), MAX_MESSAGE + 1)
            if len(data) > MAX_MESSAGE:
                raise ValueError(f"a chunk is larger than {MAX_MESSAGE >> 20} MiB")
            self._kept = number, data
        in_memory = BytesIO(self._kept[1])
        in_memory.seek(offset)
        return in_memory


class SqliteFile(Storage):
    """A .db3: a table of messages. A row is a message's place."""

    def places(self, topic: str) -> Iterable[tuple[int, int]]:
        query = "SELECT messages.id, 0 FROM messages JOIN topics ON topic_id = topics.id WHERE topics.name = ?"
        return self.file.dbconn.execute(query, (topic,))

    def message(self, chunk: int, offset: int, limit: int) -> bytes:
        query = "SELECT substr(data, 1, ?) FROM messages WHERE id = ?"
        ((data,),) = self.file.dbconn.execute(query, (limit, chunk))
        return data


class Ros1File(Storage):
    """A .bag: an index says where in which chunk a message is."""

    def places(self, topic: str) -> Iterable[tuple[int, int]]:
        connections = [c.id for c in self.file.connections if c.topic == topic]
        return ((each.chunk_pos, each.offset) for c in connections for each in self.file.indexes[c])

    def message(self, chunk: int, offset: int, limit: int) -> bytes:
        from rosbags.rosbag1.reader import Header, RecordType, decompressors, read_bytes, read_uint32

        stored = self.file.chunks[chunk]
        (compression,) = (name for name, function in decompressors.items() if function is stored.decompressor)
        file = self.chunks.at(self.file.bio, chunk, stored.datapos, stored.datasize, compression, offset)
        while (kind := Header.read(file).get_uint8("op")) == RecordType.CONNECTION:
            file.seek(read_uint32(file), 1)
        if kind != RecordType.MSGDATA:
            raise ValueError("its index points at something else")
        return read_bytes(file, min(read_uint32(file), limit))


class McapFile(Storage):
    """An .mcap: after each chunk stands where in it the messages of each channel are."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.starts = {chunk.chunk_start_offset: chunk for chunk in file.chunks}

    def places(self, topic: str) -> Iterable[tuple[int, int]]:
        channels = [c for c in self.file.connections if c.topic == topic]
        found = [
            (start, offset)
            for start, chunk in self.starts.items()
            for channel in channels
            if channel.id in chunk.message_index_offsets
            for offset in self._index(chunk.message_index_offsets[channel.id])
        ]
        if not found and any(channel.msgcount for channel in channels):
            raise ValueError("it has no index of its messages")
        return found

    def _index(self, position: int) -> list[int]:
        """A record of the kind 7: its length, the channel, the bytes of what follows, and times with offsets."""
        self.file.bio.seek(position)
        kind, _, _, size = struct.unpack("<BQHI", self.file.bio.read(15))
        if kind != 7:
            raise ValueError("its index points at something else")
        return [offset for _, offset in struct.iter_unpack("<QQ", self.file.bio.read(size))]

    def message(self, chunk: int, offset: int, limit: int) -> bytes:
        stored = self.starts[chunk]
        # A chunk begins with its kind and length, two times, a size, a checksum, its compression's name, and a length.
        start = chunk + 9 + 40 + len(stored.compression)
        file = self.chunks.at(self.file.bio, chunk, start, stored.compressed_size, stored.compression, offset)
        # A message begins with its kind and length, its channel, a number, and two times.
        kind, size = struct.unpack("<BQ22x", file.read(31))
        if kind != 5 or size < 22:
            raise ValueError("its index points at something else")
        data = file.read(min(size - 22, limit))
        if len(data) < min(size - 22, limit):
            raise ValueError("it ends within a message")
        return data
