"""The landmarks of an index in a vector database: LanceDB, on a folder or in an object store, embedded or as a cluster.

It takes the place of the index's own cells; the maps themselves stay where they are.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from locus.errors import LocusError
from locus.landmarks.disk_cells import CELLS_TRIED, CODE
from locus.landmarks.indexing import landmarks_of
from locus.landmarks.map_index import MapIndex
from locus.landmarks.search import EXACT

CANDIDATES = 10  # for each landmark asked for, that are compared exactly


def store(index: MapIndex, address: str) -> MapIndex:
    """Copy the landmarks of an index to a database; the index that searches there."""
    import lancedb
    import pyarrow

    schema = pyarrow.schema(
        [("number", pyarrow.int64()), ("vector", pyarrow.list_(pyarrow.float32(), index.dimension))]
    )

    def batches(scale: int) -> Iterator[Any]:
        for number in range(len(index.maps)):
            rows, numbers = landmarks_of(index, number)[scale]
            vectors = pyarrow.FixedSizeListArray.from_arrays(rows.ravel(), index.dimension)
            yield pyarrow.record_batch([pyarrow.array(numbers), vectors], schema=schema)

    database = lancedb.connect(address)
    for scale in range(len(index.radii)):
        table = database.create_table(f"scale_{scale}", batches(scale), schema=schema, mode="overwrite")
        if (count := table.count_rows()) > EXACT:
            cells = 2 ** int(math.log2(2 * math.sqrt(count)))
            how = lancedb.index.IvfPq(
                distance_type="dot", num_partitions=cells, num_sub_vectors=min(CODE, index.dimension)
            )
            table.create_index("vector", config=how)
    return connected(index, address)


def connected(index: MapIndex, address: str) -> MapIndex:
    """An index that searches a database, in which its landmarks were stored, instead of its own cells."""
    import lancedb

    database = lancedb.connect(address)
    return replace(
        index, scales=[DatabaseTable(database.open_table(f"scale_{each}")) for each in range(len(index.radii))]
    )


class DatabaseTable:
    """The landmarks of one scale."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return self.table.count_rows()

    def search(
        self, queries: Float32[ndarray, "q c"], k: int = 1
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """Similarity and number of the best k for each query, best first; fewer if there are fewer landmarks."""
        k = min(k, len(self))
        if not k or not len(queries):
            return np.zeros((len(queries), k), np.float32), np.zeros((len(queries), k), np.int64)
        asked = self.table.search(np.ascontiguousarray(queries, np.float32)).distance_type("dot")
        found = asked.nprobes(CELLS_TRIED).refine_factor(CANDIDATES).limit(k).select(["number", "_distance"]).to_arrow()
        if len(found) != k * len(queries):
            raise LocusError(f"the cells tried hold fewer than {k} landmarks; ask for fewer")
        distance, number = (found[name].to_numpy() for name in ("_distance", "number"))
        query = found["query_index"].to_numpy() if len(queries) > 1 else np.zeros(k)
        order = np.lexsort((distance, query))
        return 1 - distance[order].reshape(-1, k), number[order].reshape(-1, k)
