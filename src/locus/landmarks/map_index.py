"""MapIndex: the landmarks of many maps, searched together; of the maps themselves, only those needed are opened.

A landmark's number is that of its environment, times 2³², plus its row in the environment's own map.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Int64
from numpy import ndarray
from torch import Tensor

from locus.files import load_json, save_json
from locus.landmarks.disk_cells import DiskCells
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.map_files import load, stated
from locus.landmarks.merging import merge
from locus.landmarks.search import Index
from locus.model import LoCUS

INDEX = "index.json"
KIND, VERSION = "locus index of maps", 1
ENVIRONMENT = 32  # bits of a number below its environment's
NEIGHBOURS = 10  # of a patch, whose environments it votes for
OPENED = 8  # environments that an image's patches are compared with exactly
KEPT = 64  # environments that stay in memory


@runtime_checkable
class Searched(Protocol):
    """Landmarks of one scale: in memory, in cells on disk or in a database, all searched by the same call."""

    def search(
        self, queries: Float32[ndarray, "q c"], k: int = 1
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """Similarity and number of the best k for each query, best first."""
        ...


@dataclass(frozen=True)
class IndexedMap:
    """A map of the index."""

    path: str
    """From the index's folder."""
    checksum: str
    """Of its file, when it was indexed."""
    environments: tuple[str, ...]
    landmarks: int


@dataclass(frozen=True, eq=False)
class MapIndex:
    """Maps that are searched together."""

    folder: Path
    model: str
    """Fingerprint of the model whose features these are."""
    made_with: str
    """Its name."""
    radii: tuple[float, ...]
    dimension: int
    maps: tuple[IndexedMap, ...]
    scales: Sequence[Searched]

    def __len__(self) -> int:
        return sum(each.landmarks for each in self.maps)

    @classmethod
    def load(cls, folder: str | Path) -> "MapIndex":
        """An index from its folder. Maps are opened when they are needed."""
        folder = Path(folder)
        if not (folder / INDEX).is_file():
            raise MapError(f"{folder} holds no index (there is no {INDEX}); `locus index` makes one")
        header = load_json(folder / INDEX)
        if (header.get("kind"), header.get("version")) != (KIND, VERSION):
            raise MapError(f"{folder / INDEX} is not an index of this LoCUS; make it again with `locus index`")
        try:
            maps = tuple(
                IndexedMap(
                    str(each["path"]), each["checksum"], tuple(map(str, each["environments"])), each["landmarks"]
                )
                for each in header["maps"]
            )
            width = header["dimension"]
            cells = [DiskCells(folder, of, width) if of else _none(width) for of in header["scales"]]
            return cls(folder, header["model"], header["made with"], tuple(header["radii"]), width, maps, cells)
        except (KeyError, TypeError, AttributeError, RuntimeError, OSError) as error:
            raise MapError(f"{folder} is not a whole index ({error}); run `locus index` again") from None

    @cached_property
    def environments(self) -> tuple[str, ...]:
        return tuple(name for each in self.maps for name in each.environments)

    def check(self, model: LoCUS) -> None:
        """Refuse a model whose features are not those of the maps."""
        if model.fingerprint != self.model:
            raise MapError(
                f"the index is of maps made with {self.made_with} ({self.model}), and the model is {model.name} "
                f"({model.fingerprint}); name the one that they were made with"
            )

    def search(
        self, features: Float[Tensor, "q c"] | Float32[ndarray, "q c"], k: int = 1, scale: int = 0
    ) -> tuple[Float32[ndarray, "q k"], Int64[ndarray, "q k"]]:
        """The landmarks of a scale most similar to each feature: similarity (cosine) and number, best first."""
        values = features.detach().float().cpu().numpy() if isinstance(features, Tensor) else features
        if not 0 <= scale < len(self.scales) or values.ndim != 2 or values.shape[1] != self.dimension:
            raise MapError(
                f"the index has scales 0 to {len(self.scales) - 1} of features of {self.dimension}, "
                f"not scale {scale} of an array of shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise MapError("the features to search for are not all finite numbers")
        return self.scales[scale].search(values, k)

    def votes(self, features: Float[Tensor, "scales rows columns c"]) -> Int64[ndarray, " environments"]:
        """How many patches, of all scales, have one of their most similar landmarks in each environment."""
        count = np.zeros(len(self.environments), np.int64)
        for scale, of_scale in enumerate(features):
            number = self.search(of_scale.flatten(0, 1), NEIGHBOURS, scale)[1]
            patch = np.broadcast_to(np.arange(len(number))[:, None], number.shape)[number >= 0]
            once = np.unique(np.stack([patch, number[number >= 0] >> ENVIRONMENT]), axis=1)
            count += np.bincount(once[1], minlength=len(count))
        return count

    def near(self, features: Float[Tensor, "scales rows columns c"], most: int = OPENED) -> LandmarkMap:
        """One map of the environments that an image most likely shows, read from their own files."""
        votes = self.votes(features)
        likely = np.argsort(-votes, kind="stable")[:most]
        return merge([self.environment(int(number)) for number in likely if votes[number] or number == likely[0]])

    @cached_property
    def environment(self) -> Callable[[int], LandmarkMap]:
        """The map of one environment, by its number."""
        return lru_cache(KEPT)(self._environment)

    def _environment(self, number: int) -> LandmarkMap:
        of = int(np.searchsorted(self.first, number, "right")) - 1
        return self.world(of).environment(number - self.first[of])

    @cached_property
    def first(self) -> list[int]:
        """The number of the first environment of each map."""
        return list(accumulate((len(each.environments) for each in self.maps[:-1]), initial=0))

    def world(self, number: int, points: bool = True) -> LandmarkMap:
        """One of the maps as it was indexed, with its points or without."""
        path = Path(os.path.normpath(self.folder.resolve() / self.maps[number].path))
        if stated(path)[1] != self.maps[number].checksum:
            raise MapError(f"{path} is not the map that was indexed; run `locus index` again")
        return load(path, points)


def open_maps(folder: Path) -> LandmarkMap | MapIndex:
    """A map, or an index of maps, from its folder."""
    return MapIndex.load(folder) if (folder / INDEX).exists() else LandmarkMap.load(folder)


def write_header(index: MapIndex, cells: Sequence[dict[str, Any] | None]) -> None:
    """What `load` reads; `cells` are the files of each scale, none where a scale has no landmarks."""
    about: dict[str, Any] = {"kind": KIND, "version": VERSION, "model": index.model, "made with": index.made_with}
    about |= {"radii": index.radii, "dimension": index.dimension, "scales": cells}
    save_json(index.folder / INDEX, {**about, "maps": [asdict(each) for each in index.maps]})


def _none(width: int) -> Index:
    return Index(np.zeros((0, width), np.float32))
