"""A map's folder: `map.safetensors` (all but its points), `map.json` (to read), `landmarks.ply` (to look at), points.

The safetensors file carries its own copy of the JSON, so that it is whole by itself: a program that is killed while
saving leaves the map before it, never half of each. What it had written of the new one goes when a map is saved again.
"""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialize
from scipy.sparse import csr_matrix

from locus.errors import LocusError
from locus.files import atomic, clear_leftovers, write_json
from locus.keypoints.fusion import point_scales
from locus.landmarks.arrays import Frames, Landmarks, declared
from locus.landmarks.map import LandmarkMap, MapError
from locus.landmarks.point_files import FILE, load_points, serialized

VERSION = 1
ARRAYS, HEADER, POINTS = "map.safetensors", "map.json", "landmarks.ply"
KIND = "locus landmark map"
GROUPS = {"landmarks": Landmarks, "frames": Frames}


def save(world: LandmarkMap, folder: Path) -> Path:
    """Write a map to its folder, in place of the one that is there."""
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
    clear_leftovers(folder / name for name in (ARRAYS, HEADER, POINTS, FILE))
    with atomic(folder / ARRAYS) as file:
        file.write_bytes(serialize(arrays, {"header": json.dumps(header)}))
        if world.points is not None:  # in place at the last moment: a map does not use points of another one
            with atomic(folder / FILE) as of_points:
                of_points.write_bytes(points)
    if world.points is None:
        (folder / FILE).unlink(missing_ok=True)
    write_json(folder / HEADER, header)
    with atomic(folder / POINTS) as file:
        file.write_bytes(ply(world.landmarks))
    return folder


def load(folder: Path) -> LandmarkMap:
    """A map from its folder. What is in it is checked before it is used."""
    path = folder / ARRAYS if folder.is_dir() else folder
    if not path.is_file():
        raise MapError(f"{folder} holds no map (there is no {ARRAYS}); `locus map SCENE --out {folder}` makes one")
    try:
        with safe_open(path, "numpy") as file:
            header = json.loads((file.metadata() or {}).get("header", "null"))
            _check_header(header, path)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dictionary
    except (SafetensorError, OSError, ValueError) as error:
        raise MapError(f"{path} is not a whole map file ({error}); build the map again") from None
    try:
        world = _assembled(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, LocusError) as error:
        raise MapError(f"{path} does not hold what a map holds ({error}); build the map again") from None
    if (key := header.get("points")) is None:
        return world
    sizes = {"f": len(world.frames), "scales": len(point_scales(world.radii)), "c": world.landmarks.mean.shape[1]}
    return replace(world, points=load_points(path.with_name(FILE), key, sizes))


def _check_header(header: Any, path: Path) -> None:
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise MapError(f"{path} is a safetensors file, but not a map of LoCUS")
    version = header.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise MapError(f"{path} is a map of version {version}; this LoCUS reads up to {VERSION}: update LoCUS")


def _assembled(header: dict[str, Any], arrays: dict[str, ndarray]) -> LandmarkMap:
    names = {part: tuple(map(str, header[part])) for part in ("frame names", "environments", "classes")}
    radii = tuple(map(float, header["radii"]))
    if not names["environments"] or not radii or not all(0 < radius < np.inf for radius in radii):
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


def ply(landmarks: Landmarks) -> bytes:
    """The landmarks as coloured points with normals, for any mesh viewer."""
    kind = [(name, "<f4") for name in ("x", "y", "z", "nx", "ny", "nz")]
    kind += [(name, "u1") for name in ("red", "green", "blue")] + [(n, "<f4") for n in ("radius", "score")]
    table = np.zeros(len(landmarks), kind)
    columns = (*landmarks.position.T, *landmarks.normal.T, *landmarks.colour.round().T)
    for (name, _), column in zip(kind, (*columns, landmarks.radius, landmarks.score), strict=True):
        table[name] = column
    lines = ["ply", "format binary_little_endian 1.0", "comment landmarks of LoCUS", f"element vertex {len(table)}"]
    lines += [f"property {'float' if code == '<f4' else 'uchar'} {name}" for name, code in kind]
    return "\n".join([*lines, "end_header", ""]).encode() + table.tobytes()
