"""A map's folder: `map.safetensors` (all but its points), `map.json` (to read), `landmarks.ply` (to look at), points.

The safetensors file carries its own copy of the JSON and the name of its points' file, so it alone decides which map is
there: a program that is killed while saving leaves the map before it or the new one. The other two are made from it,
name its checksum, and are made again when a map is opened that they do not belong to.
"""

import json
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray
from safetensors import SafetensorError
from safetensors.numpy import load as deserialize
from safetensors.numpy import save as serialize
from scipy.sparse import csr_matrix

from locus.checksums import PLACE, metadata, sealed, sealed_tensors
from locus.errors import LocusError
from locus.files import atomic, clear_leftovers, lock, lock_file, save_json
from locus.geometry import LARGEST_LENGTH
from locus.keypoints.fusion import point_scales
from locus.landmarks.arrays import Frames, Landmarks, declared
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.point_files import load_points, points_file, serialized
from locus.opening import LARGEST_TEXT, opened, parse_json, read

VERSION = 1
ARRAYS, HEADER, POINTS = "map.safetensors", "map.json", "landmarks.ply"
GRAPH = "graph.json"  # of rooms and objects: locus.tasks.place_graph
KIND = "locus landmark map"
LARGEST = 2**34  # bytes
GROUPS = {"landmarks": Landmarks, "frames": Frames}
SINCE = ("surface", "lens", "kind")  # maps of earlier versions have none


@contextmanager
def writing(folder: Path) -> Generator[Callable[[LandmarkMap], Path], None, None]:
    """The only process that writes to a map's folder; it is given what writes a map there."""
    with lock(folder / ARRAYS):
        yield partial(_write, folder=folder)


def save(world: LandmarkMap, folder: Path) -> Path:
    """Write a map to its folder, in place of the one that is there."""
    with writing(folder) as write:
        return write(world)


def _write(world: LandmarkMap, folder: Path) -> Path:
    arrays = {
        f"{group}.{field.name}": np.ascontiguousarray(getattr(getattr(world, group), field.name))
        for group, kind in GROUPS.items()
        for field in fields(kind)
    }
    arrays |= {f"sightings.{part}": getattr(world.sightings, part) for part in ("data", "indices", "indptr")}
    points, key = (b"", None) if world.points is None else serialized(world.points)
    header = {
        "kind": KIND,
        "version": VERSION,
        "environments": world.environments,
        "classes": world.classes,
        "radii": world.radii,
        "model": world.model,
        "landmarks": len(world),
        "points": key,
        "frame names": world.frame_names,
        "provenance": world.provenance,
    }
    clear_leftovers(folder)
    (folder / GRAPH).unlink(missing_ok=True)  # it was of the map before
    content = sealed_tensors(serialize(arrays, {"header": json.dumps(header)}))
    if key is not None:  # a file of another name than that of the map before, which needs its own until it is replaced
        with atomic(folder / points_file(key)) as file:
            file.write_bytes(points)
    with atomic(folder / ARRAYS) as file:
        file.write_bytes(content)
    _complete(folder, world.landmarks, header, metadata(content)["checksum"])
    return folder


def _complete(folder: Path, landmarks: Landmarks, header: dict[str, Any], checksum: str) -> None:
    """Make what belongs to the map in a folder, known by its checksum, and is not there; remove what does not."""
    for file in folder.glob("points*.safetensors"):
        if header["points"] is None or file.name != points_file(header["points"]):
            file.unlink()
    save_json(folder / HEADER, {"map": checksum, **header})
    with atomic(folder / POINTS) as file:
        file.write_bytes(ply(landmarks, f"of the map {checksum}"))


def _mend(folder: Path, landmarks: Landmarks, header: dict[str, Any], checksum: str) -> None:
    """Complete the map in a folder if its writer was killed. Where nobody may write, or somebody does, it stays so."""
    map_file = folder / ARRAYS
    with suppress(LocusError, OSError):
        if not lock_file(map_file).exists() and all(
            checksum.encode() in _start(folder / name) for name in (HEADER, POINTS)
        ):
            return
    with suppress(LocusError, OSError), lock(map_file):
        if metadata(read(map_file, LARGEST)).get("checksum") == checksum:
            clear_leftovers(folder)
            _complete(folder, landmarks, header, checksum)


def _start(path: Path) -> bytes:
    """Where each file to look at names its map."""
    with opened(path) as file:
        return file.read(512)


def stated(folder: Path) -> tuple[dict[str, Any], str]:
    """What a map's file says of the map, and its checksum, without reading or verifying the rest."""
    path = _map_file(folder)
    with opened(path, LARGEST) as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        try:
            about = metadata(start + file.read(min(length, os.fstat(file.fileno()).st_size)))
            header = json.loads(about.get("header", "null"))
        except (ValueError, RecursionError) as error:
            raise MapError(f"{path} is not a whole map file ({error}); build the map again") from None
    _check_header(header, path)
    if "checksum" not in about:
        raise MapError(f"{path} is of an earlier version, without a checksum; build the map again")
    return header, about["checksum"]


def _map_file(folder: Path) -> Path:
    path = folder / ARRAYS if folder.is_dir() else folder
    if not path.exists():
        raise MapError(f"{folder} holds no map (there is no {ARRAYS}); `locus map SCENE --out {folder}` makes one")
    return path


def load(folder: Path, points: bool = True) -> LandmarkMap:
    """A map from its folder, with its points or without. What is in it is checked before it is used."""
    path = _map_file(folder)
    try:
        _check_length(path)
        content = read(path, LARGEST)
        stated = metadata(content)
        header = parse_json(stated.get("header", "null"), "its header")
        _check_header(header, path)
        arrays = deserialize(content)
    except (SafetensorError, OSError, ValueError, LocusError) as error:
        raise MapError(f"{path} is not a whole map file ({error}); build the map again") from None
    try:
        world = _assembled(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, LocusError) as error:
        raise MapError(f"{path} does not hold what a map holds ({error}); build the map again") from None
    if points and (key := header.get("points")) is not None:
        sizes = {"f": len(world.frames), "scales": len(point_scales(world.radii)), "c": world.landmarks.mean.shape[1]}
        world = replace(world, points=load_points(path.parent, key, sizes))
    if path.name == ARRAYS and (checksum := stated.get("checksum")):
        _mend(path.parent, world.landmarks, header, checksum)
    return world


def _check_length(path: Path) -> None:
    """A map may be large, so a file that is longer than its arrays is refused before it is read."""
    with opened(path, LARGEST) as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        header = file.read(min(start, LARGEST_TEXT) - 8)
        size = os.fstat(file.fileno()).st_size
    ends = [int(end) for end in re.findall(rb'"data_offsets":\s*\[\d+,\s*(\d{1,15})\]', header)]
    if size != start + max(ends, default=0):
        raise MapError(f"it has {size} bytes, and not those that its header states")


def _check_header(header: Any, path: Path) -> None:
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise MapError(f"{path} is a safetensors file, but not a map of LoCUS")
    version = header.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise MapError(f"{path} is a map of version {version}; this LoCUS reads up to {VERSION}: update LoCUS")


def _assembled(header: dict[str, Any], arrays: dict[str, ndarray]) -> LandmarkMap:
    names = {part: tuple(map(str, header[part])) for part in ("frame names", "environments", "classes")}
    radii = tuple(map(float, header["radii"]))
    if not names["environments"] or not radii or not all(0 < radius < LARGEST_LENGTH for radius in radii):
        raise MapError("it has no environments, or radii that are not positive")
    scenes = header["provenance"].get("scenes", [])
    if not isinstance(scenes, list):
        raise MapError("it does not say what it was made from")
    rows = {"landmarks": len(arrays["landmarks.score"]), "frames": len(names["frame names"])}
    dimension = arrays["landmarks.mean"].shape[-1]
    sizes = {"dimension": dimension, "classes": len(names["classes"]), "scales": len(radii)}
    groups = {group: _group(group, arrays, count, sizes) for group, count in rows.items()}
    sightings = _sparse([arrays[f"sightings.{part}"] for part in ("data", "indices", "indptr")], rows)
    world = LandmarkMap(
        landmarks=Landmarks(**groups["landmarks"]),
        frames=Frames(**groups["frames"]),
        sightings=sightings,
        frame_names=names["frame names"],
        environments=names["environments"],
        classes=names["classes"],
        radii=radii,
        model=str(header["model"]),
        provenance=dict(header["provenance"]),
    )
    _check_indices(world)
    return world


def _group(group: str, arrays: dict[str, ndarray], rows: int, sizes: dict[str, int]) -> dict[str, ndarray]:
    """The arrays of a group: of the type and width that its declaration says, all as long, with finite values."""
    checked = {}
    for name, (kind, shape) in declared(GROUPS[group], **sizes).items():
        if name in SINCE:
            arrays.setdefault(f"{group}.{name}", np.zeros((rows, *shape), kind))
        array = arrays[f"{group}.{name}"]
        if array.dtype != kind or array.shape != (rows, *shape) or not np.isfinite(array).all():
            raise MapError(f"{group}.{name} is {array.dtype} {array.shape}, not {kind} {(rows, *shape)}, or not finite")
        checked[name] = array
    return checked


def _sparse(parts: list[ndarray], sizes: dict[str, int]) -> csr_matrix:
    if any(part.ndim != 1 or part.dtype.kind != "i" for part in parts):
        raise MapError("the sightings are not whole numbers")
    sightings = csr_matrix(tuple(parts), shape=(sizes["frames"], sizes["landmarks"]))
    sightings.check_format()
    return sightings


def _check_indices(world: LandmarkMap) -> None:
    """What points at something must point at something that is there."""
    for name, values, limit in (
        ("an environment", world.landmarks.environment, len(world.environments)),
        ("a frame's environment", world.frames.environment, len(world.environments)),
        ("a scale", world.landmarks.scale, len(world.radii)),
    ):
        if len(values) and not 0 <= values.min() <= values.max() < limit:
            raise MapError(f"{name} is out of range")
    if missing := set(range(len(world.environments))) - set(world.frames.environment.tolist()):
        raise MapError(f"no frame is of {world.environments[min(missing)]}")


def ply(landmarks: Landmarks, comment: str = "of LoCUS") -> bytes:
    """The landmarks as coloured points with normals, for any mesh viewer."""
    kind = [(name, "<f4") for name in ("x", "y", "z", "nx", "ny", "nz")]
    kind += [(name, "u1") for name in ("red", "green", "blue")] + [(n, "<f4") for n in ("radius", "score")]
    table = np.zeros(len(landmarks), kind)
    columns = (*landmarks.position.T, *landmarks.normal.T, *landmarks.colour.round().T)
    for (name, _), column in zip(kind, (*columns, landmarks.radius, landmarks.score), strict=True):
        table[name] = column
    lines = ["ply", "format binary_little_endian 1.0", f"comment checksum {PLACE}", f"comment landmarks {comment}"]
    lines += [f"element vertex {len(table)}"]
    lines += [f"property {'float' if code == '<f4' else 'uchar'} {name}" for name, code in kind]
    return sealed("\n".join([*lines, "end_header", ""]).encode() + table.tobytes())
