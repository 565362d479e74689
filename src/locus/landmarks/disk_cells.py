"""Landmarks of one scale on disk: in cells around centres, by a few bytes each, memory-mapped.

The cells are faiss's: a rotation, an inverted file and a product quantizer (OPQ, IVF, PQ), whose lists lie in a file of
their own. Both files are verified before faiss uses them: `.faiss`, the small one, as a whole when it is opened;
`.lists`, which may have more bytes than the machine has memory, by its size, and cell by cell when a search first tries
a cell. So nothing is believed unread, and nothing is read that no search needs.
"""

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from locus.checksums import BEHIND, PLACE
from locus.errors import DamagedError, LocusError
from locus.files import verified
from locus.landmarks.search import EXACT

CODE = 32  # bytes that stand for a feature, where there are more than `EXACT`
CELLS_TRIED = 32
ROTATION_ROWS, ROTATION_ROUNDS = 10_240, 10  # that the rotation is found from, and in; faiss wants 9,984
CODE_ROWS, CODE_ROUNDS = 128, 10  # for each of the 256 values of a byte, and so the codes


class DiskCells:
    """Landmarks that are searched where they are on disk. Similarities are estimates, where they are many."""

    def __init__(self, folder: Path, stated: dict[str, Any], dimension: int) -> None:
        """`stated` is what `merged` returned when these cells were made."""
        self.lists = folder / f"{stated['name']}.lists"
        if self.lists.stat().st_size != stated["bytes"] + BEHIND:
            raise DamagedError(f"{self.lists} does not have the size that it was written with; make the index again")
        faiss = needed()
        self._index = checked(folder / f"{stated['name']}.faiss", faiss.IO_FLAG_READ_ONLY | faiss.IO_FLAG_SKIP_IVF_DATA)
        self._cells = faiss.extract_index_ivf(self._index)
        self._on_disk = faiss.downcast_InvertedLists(self._cells.invlists)
        shape = self._index.d, self._index.ntotal, self._on_disk.nlist, self._on_disk.totsize
        if shape != (dimension, stated["landmarks"], len(stated["checksums"]), stated["bytes"]):
            raise DamagedError(f"{self.lists} and its index do not belong together; make the index again")
        self._on_disk.filename = str(self.lists)
        self._on_disk.do_mmap()
        self._bytes = np.memmap(self.lists, np.uint8, "r")
        self._checksums = stated["checksums"]
        self._verified = np.zeros(len(self._checksums), bool)

    def __len__(self) -> int:
        return self._index.ntotal

    def search(
        self, queries: Float32[ndarray, "q c"], k: int = 1
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """Similarity and number of the best k for each query, best first; fewer if there are fewer landmarks."""
        k = min(k, len(self))
        rotated = np.ascontiguousarray(queries, np.float32)
        if hasattr(self._index, "chain"):
            rotated = needed().downcast_VectorTransform(self._index.chain.at(0)).apply(rotated)
        return self._tried(rotated, k, min(CELLS_TRIED, len(self._verified)))

    def _tried(
        self, rotated: Float32[ndarray, "q c"], k: int, cells: int
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """The same from so many cells, or more where they hold fewer than k."""
        if not len(rotated):
            return np.zeros((0, k), np.float32), np.zeros((0, k), np.int64)
        near, cell = self._cells.quantizer.search(rotated, cells)
        for number in np.unique(cell[~self._verified[cell]]):
            if _checksum(self._bytes, self._on_disk, int(number)) != self._checksums[number]:
                raise DamagedError(f"{self.lists} is damaged; make the index again")
            self._verified[number] = True
        self._cells.nprobe = cells
        similarity, found = self._cells.search_preassigned(rotated, k, cell, near)
        short = np.flatnonzero((found < 0).any(axis=1))
        if len(short) and cells < len(self._verified):
            more = min(4 * cells, len(self._verified))
            similarity[short], found[short] = self._tried(rotated[short], k, more)
        return similarity, found


def trained(sample: Float32[ndarray, "n c"], count: int):
    """A faiss index without landmarks that is fit for `count` of them: exact if these are few."""
    faiss = needed()
    width = sample.shape[1]
    if count <= EXACT:
        index = faiss.index_factory(width, "IVF1,Flat", faiss.METRIC_INNER_PRODUCT)
        lists = index
    else:
        code, cells = min(CODE, width), 2 ** int(math.log2(2 * math.sqrt(count)))
        name = f"OPQ{code}_{-(-width // code) * code},IVF{cells},PQ{code}"
        index = faiss.index_factory(width, name, faiss.METRIC_INNER_PRODUCT)
        rotation = faiss.downcast_VectorTransform(index.chain.at(0))
        rotation.niter, rotation.max_train_points = ROTATION_ROUNDS, ROTATION_ROWS
        lists = faiss.downcast_index(faiss.extract_index_ivf(index))
        lists.pq.cp.max_points_per_centroid, lists.pq.cp.niter = CODE_ROWS, CODE_ROUNDS
        lists.do_polysemous_training = False  # takes most of the time, for a kind of search that is not used
    lists.cp.min_points_per_centroid = 1  # else faiss warns of every small map: one cell has whatever there is
    index.train(sample if len(sample) else np.eye(1, width, dtype=np.float32))  # no landmarks of this scale yet
    return index


def write(index, path: Path) -> None:
    """A faiss index with its checksum."""
    needed().write_index(index, str(path))
    seal(path)


def seal(path: Path) -> None:
    """Put a file's checksum behind its end, without loading it."""
    checksum = zlib.crc32(PLACE.encode(), zlib.crc32(np.memmap(path, np.uint8, "r").data))
    with path.open("ab") as file:
        file.write(PLACE.replace("0" * 8, f"{checksum:08x}").encode())


def checked(path: Path, flags: int = 0):
    """A faiss index from a file of ours. One without a checksum is none."""
    if not verified(path):
        raise DamagedError(f"{path} has no checksum, so it is not what LoCUS wrote; make the index again")
    return needed().read_index(str(path), flags)


def cell_checksums(lists: Path, on_disk) -> list[int]:
    """Of the cells in a file of lists."""
    content = np.memmap(lists, np.uint8, "r")
    return [_checksum(content, on_disk, number) for number in range(on_disk.nlist)]


def _checksum(content: ndarray, on_disk, number: int) -> int:
    cell = on_disk.lists.at(number)
    return zlib.crc32(content[cell.offset :][: cell.capacity * (on_disk.code_size + 8)].data)  # codes and numbers


def needed():
    """faiss."""
    try:
        import faiss
    except ImportError:
        raise LocusError("an index needs faiss: pip install 'locus-features[search]'") from None
    return faiss
