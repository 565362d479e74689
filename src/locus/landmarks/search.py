"""The landmarks most similar to a feature: by comparing with all, or with faiss if they are many."""

import warnings
from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy import ndarray

from locus.errors import to_install

EXACT = 100_000  # rows up to which comparing with all takes milliseconds
SCORES_AT_ONCE = 2**24
CELL = 250  # rows of a cell of the index, about
CELLS_TRIED = 16
SAMPLE = 40  # rows a cell that its centre is found from
LINKS, TRIED = 16, 64  # of a vector to others, in an index that grows; and vectors that a search goes on from


class Index:
    """Unit vectors to be searched. The rows found may miss a best one now and then if there are more than `EXACT`."""

    def __init__(self, rows: Float32[ndarray, "n c"]) -> None:
        self.rows = np.ascontiguousarray(rows, np.float32)
        self._cells = None
        if len(rows) > EXACT:
            if find_spec("faiss") is None:
                warnings.warn(
                    f"{len(rows)} landmarks are compared one by one, which is slow: "
                    f"{to_install('search')} gives an index",
                    stacklevel=2,
                )
            else:
                self._cells = _cells(self.rows)

    def search(
        self, queries: Float32[ndarray, "q c"], k: int = 1
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """Cosine similarity and row of the best k for each query, best first; fewer if there are fewer rows."""
        k = min(k, len(self.rows))
        queries = np.ascontiguousarray(queries, np.float32)
        if self._cells is None:
            return self._compared(queries, k)
        similarity, found = self._cells.search(queries, k)
        # The cells tried may hold fewer than k rows, for which the index gives -1.
        if len(short := np.flatnonzero((found < 0).any(axis=1))):
            similarity[short], found[short] = self._compared(queries[short], k)
        return similarity, found

    def _compared(
        self, queries: Float32[ndarray, "q c"], k: int
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """The same by comparing with all rows."""
        rows = torch.from_numpy(self.rows)
        tiles = torch.from_numpy(queries).split(max(1, SCORES_AT_ONCE // max(1, len(rows))))
        best = [torch.topk(tile @ rows.T, k, dim=1) for tile in tiles]
        if not best:
            return np.zeros((0, k), np.float32), np.zeros((0, k), np.int64)
        return torch.cat([each.values for each in best]).numpy(), torch.cat([each.indices for each in best]).numpy()


def _cells(rows: Float32[ndarray, "n c"]):
    """Rows in cells around centres, of which a query tries the nearest few."""
    import faiss

    count = len(rows) // CELL
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(rows.shape[1]), rows.shape[1], count, faiss.METRIC_INNER_PRODUCT)
    random = np.random.default_rng(0)  # same rows, same cells
    index.train(rows[np.sort(random.choice(len(rows), min(len(rows), SAMPLE * count), replace=False))])
    index.add(rows)
    index.nprobe = CELLS_TRIED
    return index


class GrowingIndex:
    """Unit vectors that come one after the other, each of some row; adding and searching take the logarithm of them.

    Without faiss they are compared one by one.
    """

    def __init__(self, dimension: int) -> None:
        self._row: list[int] = []
        self._graph, self._vectors = None, np.zeros((0, dimension), np.float32)
        if find_spec("faiss") is not None:
            import faiss

            self._graph = faiss.IndexHNSWFlat(dimension, LINKS, faiss.METRIC_INNER_PRODUCT)
            self._graph.hnsw.efSearch = TRIED

    def add(self, rows: Int64[ndarray, " n"], vectors: Float32[ndarray, "n c"]) -> None:
        """A row may come again: it is then found by either vector."""
        self._row += rows.tolist()
        if self._graph is not None:
            self._graph.add(np.ascontiguousarray(vectors))
        else:
            self._vectors = np.concatenate([self._vectors, vectors])

    def search(self, queries: Float32[ndarray, "q c"]) -> tuple[Float32[ndarray, " k"], Int64[ndarray, " k"]]:
        """Cosine similarity and row of the best for each query; nothing while there are no rows."""
        if not self._row:
            return np.zeros(0, np.float32), np.zeros(0, np.int64)
        queries = np.ascontiguousarray(queries, np.float32)
        if self._graph is not None:
            similarity, found = self._graph.search(queries, 1)
        else:
            similarity, found = Index(self._vectors).search(queries, 1)
        return similarity[:, 0], np.array([self._row[each] for each in found[:, 0]], np.int64)
