"""`points-KEY.safetensors`, the points of a map: beside it, because it is many times as large, and read only as needed.

The key is of their content: the points of the map before stay until the new map is there.
"""

import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialize

from locus.checksums import sealed_tensors
from locus.errors import DamagedError
from locus.files import content_hash, verified
from locus.landmarks.map import MapError
from locus.landmarks.points import MapPoints, joined, starts
from locus.opening import admitted, parse_json

VERIFIED = 2**32  # bytes of points that are looked through whenever a map is opened, in seconds
ARRAYS: dict[str, Any] = {
    field.name: field.type for field in fields(MapPoints) if field.name not in ("start", "detector")
}


def points_file(key: str) -> str:
    return f"points-{key[:16]}.safetensors"


def serialized(points: MapPoints) -> tuple[bytes, str]:
    """A file's content, and the name of just these points, by which a map knows its own."""
    together = joined([points])
    arrays = {name: getattr(together, name) for name in ARRAYS}
    key = content_hash(points.detector, *arrays.values())
    return sealed_tensors(serialize(arrays, {"points": key, "detector": points.detector})), key


def load_points(folder: Path, key: str, sizes: dict[str, int]) -> MapPoints | None:
    """The points that a map names, of so many frames `f`, `scales` and dimensions `c`. Nothing of them is read yet.

    Without them, or if they are another map's, a map can still be used, and a warning says so.
    """
    path = folder / points_file(key)
    if not path.exists():
        path = folder / "points.safetensors"  # of earlier versions
    try:
        if path.stat().st_size <= VERIFIED:
            verified(path)
        with safe_open(admitted(path), "numpy") as file:  # which also checks that the arrays fill the file
            stated = file.metadata() or {}
        if stated.get("points") == key:
            arrays = _arrays(path, sizes)
            return MapPoints(starts(arrays["count"]), **arrays, detector=stated["detector"])
    except FileNotFoundError:
        pass
    except DamagedError as error:
        raise MapError(str(error)) from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise MapError(f"{path} does not hold the points of a map ({error}); build the map again") from None
    warnings.warn(f"{path} is missing or belongs to another map; only landmarks are used", stacklevel=2)
    return None


def _arrays(path: Path, sizes: dict[str, int]) -> dict[str, ndarray]:
    """The file's arrays where they are on disk, of the types and shapes that `MapPoints` declares."""
    content = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header: dict[str, Any] = parse_json(content[8:start].tobytes(), "its header")
    known = sizes | {"n": header["pixel"]["shape"][0], "d": header["descriptor"]["shape"][1]}
    arrays = {}
    for name, kind in ARRAYS.items():
        first, last = header[name]["data_offsets"]
        array = content[start + first : start + last].view(kind.dtypes[0]).reshape(header[name]["shape"])
        expected = tuple(known[size] if size in known else int(size) for size in kind.dim_str.split())
        if array.shape != expected:
            raise ValueError(f"{name} has the shape {array.shape}, not {expected}")
        arrays[name] = array
    if arrays["size"].min(initial=1) < 1 or arrays["count"].min(initial=0) < 0:
        raise ValueError("a size or a number of points is negative")
    if int(arrays["count"].sum(dtype=np.int64)) != known["n"]:
        raise ValueError(f"its frames have {arrays['count'].sum(dtype=np.int64)} points, and it holds {known['n']}")
    return arrays
