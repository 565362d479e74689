"""Arrays of frames, each in a file of its own, which is there whole or not at all and read when it is asked for.

A file is numpy's, with a checksum behind the array, where numpy does not look.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import SupportsIndex, overload

import numpy as np
from jaxtyping import Float16, Num
from numpy import ndarray

from locus.checksums import BEHIND, sealed, verify
from locus.errors import DamagedError, LocusError
from locus.files import atomic
from locus.opening import opened

HEADER = 128  # bytes that numpy puts before an array of a few dimensions; to parse them takes longer than to read it


class FrameTokens:
    """Tokens of frames, each in a file of its own that is read when it is asked for: an index gives one frame's."""

    def __init__(self, files: Sequence[Path], shape: tuple[int, int]) -> None:
        self.files = list(files)
        self.shape = (len(self.files), *shape)

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Float16[ndarray, "n d"]: ...
    @overload
    def __getitem__(self, index: slice) -> Float16[ndarray, "frames n d"]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Float16[ndarray, "..."]:
        if isinstance(index, slice):
            return read_arrays(self.files[index], np.float16, self.shape[1:])
        return read_arrays([self.files[index]], np.float16, self.shape[1:])[0]


def write_array(file: Path, values: Num[ndarray, "..."]) -> None:
    content = io.BytesIO()
    np.save(content, np.ascontiguousarray(values))  # row by row, as it is read
    with atomic(file) as temporary:
        temporary.write_bytes(sealed(content.getvalue()))


def read_arrays(files: Sequence[Path], kind: type[np.floating], shape: tuple[int, ...]) -> Num[ndarray, "files ..."]:
    """The arrays of some files, all of one shape."""
    values = np.empty((len(files), *shape), kind)
    for row, file in zip(values, files, strict=True):
        try:
            with opened(file) as stored:
                content = memoryview(stored.read())
            verify(content, file)
            row[...] = np.frombuffer(content[HEADER : HEADER + row.nbytes], kind).reshape(shape)
        except OSError as error:
            raise LocusError(f"the cached {file} cannot be read ({error.strerror}); run the same again") from None
        except (DamagedError, ValueError):
            content = memoryview(b"")
        if len(content) not in (HEADER + row.nbytes, HEADER + row.nbytes + BEHIND):  # of earlier versions, or ours
            raise LocusError(f"the cached {file} is damaged; delete it and run the same again")
    return values
