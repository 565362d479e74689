"""Making an index of maps: centres found from a sample, landmarks added shard by shard, all shards merged on disk.

Every file has a name that its content follows from, so what is there is not made again: after a kill, or when there are
more maps than before. `index.json` names the files that count, and is written last.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from locus.errors import LocusError
from locus.files import atomic, clear_leftovers, content_hash, load_json, lock, verified
from locus.landmarks.disk_cells import cell_checksums, checked, needed, seal, trained, write
from locus.landmarks.map import MapError
from locus.landmarks.map_files import load, stated
from locus.landmarks.map_index import ENVIRONMENT, INDEX, IndexedMap, MapIndex, write_header
from locus.landmarks.search import EXACT
from locus.progress import track

SAMPLE = 40  # landmarks for each cell, from which the centres are found
SHARD = 2**21  # landmarks that are added at once, and again after a kill; a map is never divided
CELLS, LISTS = ".faiss", ".lists"


def build_index(folders: Sequence[Path], out: Path, *, progress: bool = False) -> MapIndex:
    """Make an index of maps in a folder; or go on where one was stopped; or bring one up to date with its maps."""
    needed()
    with lock(out / INDEX):
        clear_leftovers(out)
        index = _planned(folders, out)
        empty = _trained(index, progress)
        groups = _groups(index.maps)
        shards = [_shard(index, group, empty) for group in track(groups, "shards of landmarks", len(groups), progress)]
        before = _before(out)
        by_scale = zip(empty, zip(*shards, strict=True), strict=True)
        cells = [_merged(out, none, of_scale, before) for none, of_scale in by_scale]
        write_header(index, cells)
        used = {file.name for files in (empty, *shards) for file in files}
        used |= {f"{each['name']}{suffix}" for each in cells if each for suffix in (CELLS, LISTS)}
        for file in out.iterdir():
            if file.suffix in (CELLS, LISTS) and file.name not in used:
                file.unlink()
    return MapIndex.load(out)


def landmarks_of(index: MapIndex, number: int) -> list[tuple[Float32[ndarray, "_ c"], Int64[ndarray, " _"]]]:
    """Embeddings and numbers of the landmarks of a map of the index, for each scale."""
    world = index.world(number, points=False)
    numbers = np.zeros(len(world), np.int64)
    for local in range(len(world.environments)):
        rows = np.flatnonzero(world.landmarks.environment == local)
        numbers[rows] = ((index.first[number] + local) << ENVIRONMENT) + np.arange(len(rows))
    embedding, of_scale = world.landmarks.embedding, (world.landmarks.scale == each for each in range(len(world.radii)))
    return [(embedding[rows], numbers[rows]) for rows in of_scale]


def _planned(folders: Sequence[Path], out: Path) -> MapIndex:
    """The index that is to be, of maps that fit together, without anything to search yet."""
    if not folders:
        raise MapError("name at least one map, as `locus map` writes it")
    maps, about, owner = [], [], {}
    for folder in folders:
        header, checksum = stated(folder)
        path = os.path.relpath(folder.resolve(), out.resolve())
        maps.append(IndexedMap(path, checksum, tuple(header["environments"]), int(header["landmarks"])))
        about.append((header["model"], tuple(header["radii"]), header["provenance"].get("model", "a model")))
        if about[-1][:2] != about[0][:2]:
            raise MapError(f"{folders[0]} and {folder} were made with different models; index them in two folders")
        for name in maps[-1].environments:
            if owner.setdefault(name, folder) is not folder:
                raise MapError(
                    f"{owner[name]} and {folder} both have an environment {name}; name one of them otherwise"
                )
    model, radii, made_with = about[0]
    dimension = load(folders[0], points=False).landmarks.mean.shape[1]
    return MapIndex(out, model, made_with, radii, dimension, tuple(maps), ())


def _trained(index: MapIndex, progress: bool) -> list[Path]:
    """Files of an empty index for each scale: trained once, on maps in random order until they are enough."""
    many = len(index) > EXACT
    key = content_hash(index.model, index.radii, many)[:16]
    files = [index.folder / f"trained-{key}-{scale}{CELLS}" for scale in range(len(index.radii))]
    if all(map(_sound, files)):
        return files
    enough, found = SAMPLE * 2 * len(index) ** 0.5, [[np.zeros((0, index.dimension), np.float32)] for _ in files]
    order = np.random.default_rng(0).permutation(len(index.maps))  # same maps, same centres
    for number in track(order, "sample", len(order), progress):
        for rows, (embedding, _) in zip(found, landmarks_of(index, int(number)), strict=True):
            rows.append(embedding)
        if sum(len(each) for rows in found for each in rows) >= enough:
            break
    samples = [np.concatenate(rows) for rows in found]
    drawn = max(1, sum(map(len, samples)))
    for file, sample in zip(track(files, "training", len(files), progress), samples, strict=True):
        if not _sound(file):
            with atomic(file) as temporary:
                write(trained(sample, round(len(index) * len(sample) / drawn)), temporary)
    return files


def _groups(maps: Sequence[IndexedMap]) -> list[list[int]]:
    """Maps that come into one shard, one after the other."""
    groups, count = [[]], 0
    for number, each in enumerate(maps):
        if groups[-1] and count + each.landmarks > SHARD:
            groups.append([])
            count = 0
        groups[-1].append(number)
        count += each.landmarks
    return groups


def _shard(index: MapIndex, group: Sequence[int], empty: Sequence[Path]) -> list[Path]:
    """Files with the landmarks of a few maps, for each scale."""
    named = [(index.first[number], index.maps[number].checksum) for number in group]
    files = [index.folder / f"shard-{content_hash(file, scale, named)[:16]}{CELLS}" for scale, file in enumerate(empty)]
    if all(map(_sound, files)):
        return files
    of_maps = [landmarks_of(index, number) for number in group]
    for file, none, of_scale in zip(files, empty, zip(*of_maps, strict=True), strict=True):
        shard = checked(none)
        shard.add_with_ids(*(np.concatenate(part) for part in zip(*of_scale, strict=True)))
        with atomic(file) as temporary:
            write(shard, temporary)
    return files


def _merged(out: Path, empty: Path, shards: Sequence[Path], before: Sequence[Any]) -> dict[str, Any] | None:
    """One index of all shards of a scale, whose landmarks stay on disk: what `DiskCells` must know of it."""
    from faiss.contrib.ondisk import merge_ondisk

    name = f"cells-{content_hash(*(shard.name for shard in shards))[:16]}"
    for each in before:
        if each and each["name"] == name and _sound(out / f"{name}{CELLS}") and _sound(out / f"{name}{LISTS}"):
            return each
    if not sum(checked(shard, needed().IO_FLAG_MMAP).ntotal for shard in shards):
        return None
    index = checked(empty)
    with atomic(out / f"{name}{LISTS}") as temporary:
        with _silent():
            merge_ondisk(index, [str(shard) for shard in shards], str(temporary))
        on_disk = needed().downcast_InvertedLists(needed().extract_index_ivf(index).invlists)
        made = {"name": name, "landmarks": index.ntotal, "bytes": on_disk.totsize}
        made["checksums"] = cell_checksums(temporary, on_disk)
        seal(temporary)
        on_disk.filename = f"{name}{LISTS}"  # the reader says where it is
        with atomic(out / f"{name}{CELLS}") as file:
            write(index, file)
    return made


def _before(out: Path) -> list[Any]:
    """What the index that is there says of its cells; nothing if there is none, or a damaged one."""
    with suppress(LocusError, OSError):
        return load_json(out / INDEX).get("scales", [])
    return []


def _sound(file: Path) -> bool:
    """Whether a file is there as it was written. A damaged one is made again."""
    with suppress(LocusError, OSError):
        return verified(file)
    return False


@contextmanager
def _silent() -> Generator[None, None, None]:
    """faiss prints what it does, past Python."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
