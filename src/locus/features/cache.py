"""The feature cache: frozen tokens and patch points of frames, computed once and read from disk from then on.

Each frame's tokens are a file named by a hash of its image, in a folder named by the backbone and the resolution; its
points are a file named by a hash of its depth, camera and pose; the overlap of some frames is named by all of those. So
another selection of frames, or a scene that was renamed, copied or got more files, finds what is there, and what has
changed is not found. A file gets its name when it is whole, and two processes that make one make the same: no locks.
"""

import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float16, Float32, UInt8
from numpy import ndarray
from scipy.sparse import csr_array, load_npz, save_npz
from torch import Tensor

from locus.backbones import Backbone
from locus.checksums import sealed
from locus.errors import DamagedError, LocusError
from locus.features.augmentation import augmented
from locus.features.frame_arrays import FrameTokens, read_arrays, write_array
from locus.files import atomic, cache_folder, clear_once, content_hash, verified
from locus.geometry import Camera, transform
from locus.progress import track
from locus.scenes import Frame, Scene
from locus.scenes.covisibility import PARTNERS, overlap_of
from locus.scenes.patches import patch_points_camera
from locus.scenes.visibility import FrameGeometry, first_camera, read_frames

VERSION = 2
BATCH = 8  # frames a step; more is no faster on a CPU
SPARE = 2**30  # bytes left free on the disk


@dataclass(frozen=True)
class CachedFrames:
    """The frames of a scene that could be read, their tokens and what their patches show."""

    name: str
    frames: list[str]
    """Their names."""
    grid: tuple[int, int]
    prefix: int
    tokens: FrameTokens | Float16[ndarray, "frames n d"]
    """Class and register tokens first, then the patches row by row. Read from disk as they are used."""
    points: Float32[ndarray, "frames rows columns 3"]
    """World points of the patches, NaN where there is none."""


@dataclass(frozen=True)
class CachedScene(CachedFrames):
    """What training needs of a scene."""

    overlap: csr_array
    """(frames, frames): `locus.scenes.overlap`."""
    fingerprint: str
    """Of all that this was made from."""


def cache_scene(
    scene: Scene,
    backbone: Backbone,
    resolution: int | None = None,
    *,
    copy: int = 0,
    folder: Path | None = None,
    progress: bool = False,
) -> CachedScene:
    """The frames of a scene and their overlap, from disk where they are there, else computed and written.

    Copy 0 is the scene as it is; each further one an augmented copy of its frames (`locus.features.augmentation`).
    """
    cache = _Cache(scene, backbone, resolution, copy, folder)
    entries = cache.filled(progress)
    made_from = (f"{entry.tokens.parent.name} {entry.tokens.stem} {entry.points.stem}" for entry in entries)
    return CachedScene(
        **vars(cache.read(entries)), overlap=cache.overlap(entries), fingerprint=content_hash(*made_from)
    )


def cache_frames(
    scene: Scene,
    backbone: Backbone,
    resolution: int | None = None,
    *,
    folder: Path | None = None,
    progress: bool = False,
) -> CachedFrames:
    """The same without the overlap, for those who compare no frames."""
    cache = _Cache(scene, backbone, resolution, 0, folder)
    return cache.read(cache.filled(progress))


def fill_cache(
    scenes: Iterable[Scene],
    backbone: Backbone,
    resolution: int | None,
    shard: tuple[int, int],
    *,
    copies: int = 0,
    folder: Path | None = None,
    progress: bool = False,
) -> int:
    """Write tokens and points of part (i, n) of the frames, every n-th of each scene from the i-th on; how many."""
    number, of = shard
    parts = [scene[number::of] for scene in scenes if len(scene) > number]
    caches = [_Cache(part, backbone, resolution, copy, folder) for part in parts for copy in range(1 + copies)]
    return sum(len(cache.filled(progress)) for cache in caches)


def cache_bytes(
    scene: Scene, backbone: Backbone, resolution: int | None, copy: int, folder: Path | None
) -> tuple[int, int]:
    """About how much disk the cache of a scene, or of a copy, takes; and how much of it is still to be made."""
    cache = _Cache(scene, backbone, resolution, copy, folder)
    missing = sum(not entry.there for entry in cache.entries())
    return len(scene) * (cache.frame_bytes + 8 * min(len(scene), PARTNERS)), missing * cache.frame_bytes


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


@dataclass(frozen=True)
class _Entry:
    """Where a frame's tokens and points are, or are to be."""

    index: int
    tokens: Path
    points: Path
    geometry: str
    """The state of its depth, camera and pose."""

    @property
    def there(self) -> bool:
        return self.tokens.exists() and self.points.exists()


@dataclass(frozen=True)
class _Cache:
    """One scene, or an augmented copy of it, through one backbone at one resolution."""

    scene: Scene
    backbone: Backbone
    resolution: int | None
    copy: int
    folder: Path | None

    @cached_property
    def grid(self) -> tuple[int, int]:
        width, height = self.size(first_camera(self.scene))
        return height // self.backbone.patch_size, width // self.backbone.patch_size

    def size(self, camera: Camera) -> tuple[int, int]:
        return self.backbone.size(camera.width, camera.height, self.resolution)

    @property
    def frame_bytes(self) -> int:
        patches = self.grid[0] * self.grid[1]
        return (self.backbone.prefix + patches) * self.backbone.dimension * 2 + patches * 12

    def entries(self) -> list[_Entry]:
        """Of the frames whose cameras and poses can be read."""
        root, name = _root(self.folder), re.sub(r"[^\w.-]+", "-", self.backbone.name)
        own = root / f"{name}-{content_hash(VERSION, self.backbone.fingerprint, self.resolution)[:16]}"

        def states(frame: Frame) -> tuple[Path, Path, str]:
            variant = (self.copy, frame.name) if self.copy else ()  # the randomness of a copy is that of the name
            tokens = content_hash(frame.image_state(), *variant)
            points = content_hash(VERSION, geometry := frame.geometry_state(), self.grid, *variant)
            return own / f"{tokens}.npy", root / "points" / f"{points}.npy", geometry

        return [_Entry(index, *found) for index, found in read_frames(self.scene, states, self.size)]

    def filled(self, progress: bool) -> list[_Entry]:
        """The entries of all frames that can be used, with what they name written."""
        entries = self.entries()
        for folder in {file.parent for entry in entries for file in (entry.tokens, entry.points, self._overlap(""))}:
            clear_once(folder)  # also where nothing is to be written
        if missing := [entry for entry in entries if not entry.there]:
            check_room(len(missing) * self.frame_bytes, self.scene.name, self.folder)
            self._make(missing, progress)
            entries = [entry for entry in entries if entry.there]  # what could not be made was named in a warning
        if not entries:
            raise LocusError(f"no frame of {self.scene.name} can be used")
        return entries

    def _make(self, missing: Sequence[_Entry], progress: bool) -> None:
        entry_of = {self.scene.sources[entry.index].name: entry for entry in missing}

        def read(frame: Frame) -> tuple[Path, UInt8[Tensor, "3 h w"] | None]:
            """Write the frame's points, unless they are there; hand out its pixels, unless its tokens are there."""
            entry = entry_of[frame.name]
            # The frame's own randomness, so that it does not depend on which other frames there are.
            rng = np.random.default_rng([zlib.crc32(frame.name.encode()), self.copy])
            view = augmented(frame.image, frame.depth, frame.camera, rng) if self.copy else frame
            if not entry.points.exists():
                points_camera, _ = patch_points_camera(view.depth, view.camera, self.grid)
                write_array(entry.points, transform(frame.world_from_camera, points_camera).astype(np.float32))
            return entry.tokens, None if entry.tokens.exists() else self.backbone.prepare(view.image, self.resolution)

        readings = read_frames(self.scene, read, self.size, [entry.index for entry in missing])
        pixels: dict[Path, UInt8[Tensor, "3 h w"]] = {}  # frames with the same image have the same tokens
        for _, (file, image) in track(readings, self.scene.name, len(missing), progress):
            if image is not None:
                pixels[file] = image
            if len(pixels) == BATCH:
                self._write_tokens(pixels)
                pixels.clear()
        if pixels:
            self._write_tokens(pixels)

    @torch.inference_mode()
    def _write_tokens(self, pixels: Mapping[Path, UInt8[Tensor, "3 h w"]]) -> None:
        images = torch.stack(list(pixels.values())).to(self.backbone.mean.device)
        for file, tokens in zip(pixels, self.backbone(images)[0].half().cpu().numpy(), strict=True):
            if not np.isfinite(tokens).all():
                raise LocusError(f"{self.backbone.name} gives tokens beyond half precision on {self.scene.name}")
            write_array(file, tokens)

    def read(self, entries: Sequence[_Entry]) -> CachedFrames:
        (rows, columns), prefix = self.grid, self.backbone.prefix
        names = [self.scene.sources[entry.index].name for entry in entries]
        tokens = FrameTokens([entry.tokens for entry in entries], (prefix + rows * columns, self.backbone.dimension))
        points = read_arrays([entry.points for entry in entries], np.float32, (rows, columns, 3))
        return CachedFrames(self.scene.name, names, self.grid, prefix, tokens, points)

    def overlap(self, entries: Sequence[_Entry]) -> csr_array:
        """From disk if it is there; for frames that were not together before, computed and written."""
        file = self._overlap(content_hash(VERSION, *(entry.geometry for entry in entries)))
        if not file.exists():
            chosen = [entry.index for entry in entries]

            def read() -> Iterator[tuple[int, FrameGeometry]]:
                return enumerate(each for _, each in read_frames(self.scene, FrameGeometry.of, self.size, chosen))

            content = BytesIO()
            save_npz(content, overlap_of(len(entries), read), compressed=False)
            with atomic(file) as temporary:
                temporary.write_bytes(sealed(content.getvalue()))
        try:
            verified(file)
            return csr_array(load_npz(file))
        except (OSError, ValueError, KeyError, BadZipFile, DamagedError):
            raise LocusError(f"the cached {file} is damaged; delete it and run the same again") from None

    def _overlap(self, states: str) -> Path:
        return _root(self.folder) / "overlap" / f"{states}.npz"
