"""The feature cache: a scene's frozen tokens and patch points, computed once and memory-mapped from then on.

A cache's folder is named by a hash of everything that changes what is in it (the backbone's weights and layer, the
image size, every file of the scene, how its numbers are read), so another state of any of them is another cache.
"""

import hashlib
import json
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float16, Float32, UInt8
from numpy import ndarray
from torch import Tensor

from locus.backbones import Backbone
from locus.errors import LocusError
from locus.features.views import view
from locus.files import cache_folder
from locus.geometry import Camera
from locus.progress import track
from locus.scenes import Frame, Scene
from locus.scenes.scene import Source
from locus.scenes.visibility import FrameGeometry, each_frame, overlap_of

VERSION = 1
BATCH = 8  # frames a step; more is no faster on a CPU
SPARE = 2**30  # bytes left free on the disk


@dataclass(frozen=True)
class CachedScene:
    """What training needs of a scene. Arrays are read from disk as they are used."""

    name: str
    frames: list[str]
    """Names of the frames that could be read."""
    grid: tuple[int, int]
    prefix: int
    tokens: Float16[ndarray, "frames n d"]
    """Class and register tokens first, then the patches row by row."""
    points: Float32[ndarray, "frames rows columns 3"]
    """World points of the patches, NaN where there is none."""
    overlap: Float32[ndarray, "frames frames"]
    fingerprint: str
    """Of all that the cache was made from."""


def scene_fingerprint(scene: Scene) -> str:
    """A hash of the state (name, size, time of change) of every file of a scene, and of how its numbers are read."""
    if scene.folder is None:
        raise LocusError(f"the scene {scene.name} is in memory alone; write it to a folder first (locus.scenes.export)")
    digest = hashlib.sha256(f"{scene.convention} {[source.name for source in scene.sources]}".encode())
    seen: set[str] = set()
    for folder, folders, files in os.walk(scene.folder, followlinks=True):  # images are often a link to another disk
        if (real := os.path.realpath(folder)) in seen:  # a link to a folder above would go on for ever
            folders.clear()
        seen.add(real)
        folders.sort()
        for file in sorted(files):
            with suppress(FileNotFoundError):  # a link to nothing
                state = Path(folder, file).stat()
                digest.update(f"{folder} {file} {state.st_size} {state.st_mtime_ns}".encode(errors="surrogateescape"))
    outside = {path for source in scene.sources for path in _paths(source) if not path.is_relative_to(scene.folder)}
    for path in sorted(outside):  # such as a calibration for several scenes
        if path.is_file():
            digest.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def _paths(source: Source) -> Iterator[Path]:
    """The files a frame's source names."""
    for value in vars(source).values():
        yield from (part for part in (value.values() if isinstance(value, dict) else [value]) if isinstance(part, Path))


def cache_bytes(scene: Scene, backbone: Backbone, resolution: int | None = None) -> int:
    """About how much disk the cache of a scene takes."""
    camera = first_camera(scene)
    width, height = backbone.size(camera.width, camera.height, resolution)
    patches = (width // backbone.patch_size) * (height // backbone.patch_size)
    per_frame = (backbone.prefix + patches) * backbone.dimension * 2 + patches * 12
    return len(scene) * (per_frame + 4 * len(scene))


def cache_scene(
    scene: Scene,
    backbone: Backbone,
    resolution: int | None = None,
    *,
    copy: int = 0,
    folder: Path | None = None,
    progress: bool = False,
) -> CachedScene:
    """The cache of a scene, from disk if it is there, else computed and written.

    Copy 0 is the scene as it is; each further one an augmented copy of its frames (`locus.features.augmentation`).
    """
    key, place, fingerprint = _place(scene, backbone, resolution, copy, folder)
    if not place.is_dir():
        check_room(cache_bytes(scene, backbone, resolution), scene.name, folder)
        _write(scene, backbone, resolution, copy, place, key, progress)
    return _open(place, scene.name, fingerprint)


def is_cached(scene: Scene, backbone: Backbone, resolution: int | None, copy: int, folder: Path | None) -> bool:
    """Whether a scene's cache, or that of a copy of it, is on disk."""
    return _place(scene, backbone, resolution, copy, folder)[1].is_dir()


def check_room(needed: int, what: str, folder: Path | None) -> None:
    """Refuse caches that the disk would not hold."""
    root = _root(folder)
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if needed and needed + SPARE > free:
        raise LocusError(
            f"the cache of {what} needs {needed / 1e9:.1f} GB, but {root} has {free / 1e9:.1f} GB free "
            "(1 GB is left over); free some, or name another folder with --cache"
        )


def _root(folder: Path | None) -> Path:
    return folder if folder is not None else cache_folder() / "tokens"


def _place(
    scene: Scene, backbone: Backbone, resolution: int | None, copy: int, folder: Path | None
) -> tuple[dict[str, Any], Path, str]:
    """All that a cache is made from, where it lies, and the hash that it is called by."""
    key = {
        "version": VERSION,
        "backbone": backbone.fingerprint,
        "resolution": resolution,
        "copy": copy,
        "scene": scene_fingerprint(scene),
    }
    fingerprint = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return key, _root(folder) / f"{scene.name}-{fingerprint}", fingerprint


def _open(place: Path, name: str, fingerprint: str) -> CachedScene:
    try:
        stated = json.loads((place / "cache.json").read_text())
        arrays = [np.load(place / f"{part}.npy", mmap_mode="r") for part in ("tokens", "points", "overlap")]
    except (OSError, ValueError) as error:
        raise LocusError(f"the cache {place} is damaged ({error}); delete it") from None
    return CachedScene(name, stated["frames"], tuple(stated["grid"]), stated["prefix"], *arrays, fingerprint)


def _write(
    scene: Scene,
    backbone: Backbone,
    resolution: int | None,
    copy: int,
    place: Path,
    key: Mapping[str, object],
    progress: bool,
) -> None:
    """Compute into a temporary folder that gets its name when whole."""
    camera = first_camera(scene)
    size = backbone.size(camera.width, camera.height, resolution)
    grid = (size[1] // backbone.patch_size, size[0] // backbone.patch_size)
    partial = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        shape = (len(scene), backbone.prefix + grid[0] * grid[1], backbone.dimension)
        tokens = np.lib.format.open_memmap(partial / "tokens.npy", "w+", np.float16, shape)
        points = np.full((len(scene), *grid, 3), np.nan, np.float32)
        geometries: list[FrameGeometry] = []
        names: list[str] = []
        for batch in track(
            _batches(scene, backbone, resolution, size, copy), scene.name, -(-len(scene) // BATCH), progress
        ):
            if not batch:
                continue
            images = torch.stack([reading.image for reading in batch])
            rows = slice(len(names), len(names) + len(batch))
            with torch.inference_mode():
                tokens[rows] = backbone(images.to(backbone.mean.device))[0].half().cpu().numpy()
            points[rows] = [reading.points for reading in batch]
            geometries += [reading.geometry for reading in batch]
            names += [reading.name for reading in batch]
        if not names:
            raise LocusError(f"no frame of {scene.name} can be used")
        if not np.isfinite(tokens[: len(names)]).all():
            raise LocusError(f"{backbone.name} gives tokens beyond the range of half precision on {scene.name}")
        tokens.flush()
        if len(names) < len(scene):  # frames were skipped: the array is as long as what is left
            np.save(partial / "fewer.npy", tokens[: len(names)])
            (partial / "fewer.npy").replace(partial / "tokens.npy")
        np.save(partial / "points.npy", points[: len(names)])
        np.save(partial / "overlap.npy", overlap_of(geometries))
        stated = {"frames": names, "grid": grid, "prefix": backbone.prefix, "made from": key}
        (partial / "cache.json").write_text(json.dumps(stated, indent=1))
        try:
            partial.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was first, with the same
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@dataclass(frozen=True)
class _Reading:
    name: str
    image: UInt8[Tensor, "3 h w"]
    points: Float32[ndarray, "rows columns 3"]
    geometry: FrameGeometry


def _batches(
    scene: Scene, backbone: Backbone, resolution: int | None, size: tuple[int, int], copy: int
) -> Iterator[list[_Reading]]:
    """A few frames at a time, read by several threads; those that cannot be used are named in a warning."""

    def read(frame: Frame) -> _Reading:
        # The frame's own randomness, so that it does not depend on which other frames there are.
        rng = np.random.default_rng([zlib.crc32(frame.name.encode()), copy]) if copy else None
        pixels, points = view(frame, backbone, resolution, size, rng)
        return _Reading(frame.name, pixels, points, FrameGeometry.of(frame))

    for first in range(0, len(scene), BATCH):
        readings = []
        for reading in each_frame(read, scene[first : first + BATCH]):
            if isinstance(reading, LocusError):
                warnings.warn(f"left out: {reading}", stacklevel=2)
            else:
                readings.append(reading)
        yield readings


def first_camera(scene: Scene) -> Camera:
    """The first camera that can be read: it says how large the images are."""
    for frame in scene:
        with suppress(LocusError):
            return frame.camera
    raise LocusError(f"no frame of {scene.name} can be read")
