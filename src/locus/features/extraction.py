"""`locus.extract`: images in, one feature file out. Stopped at any moment, it goes on where it was when run again."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Float16, UInt8
from numpy import ndarray
from torch import Tensor

from locus.errors import LocusError
from locus.features.feature_file import FeatureFile, Header, Layout, check_names, finished
from locus.features.images import Input, NamedImage, sources
from locus.features.ranks import alone, digest, merge, rank_file, rank_files, share
from locus.keypoints import Detector, Keypoints, fuse
from locus.keypoints.fusion import usual_weights
from locus.model import LoCUS
from locus.progress import track
from locus.threads import in_order

BATCH = {"cpu": 4, "cuda": 32}


@dataclass
class ExtractionSummary:
    """What a run did."""

    path: Path
    """The file the features are in."""
    written: int = 0
    present: int = 0
    """Images that an earlier run had finished."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Images that could not be read, each with the reason."""


@dataclass(frozen=True)
class PreparedImage:
    """An image as the model takes it."""

    name: str
    state: str
    pixels: UInt8[Tensor, "3 h w"]
    image_size: tuple[int, int]
    keypoints: Keypoints | None


def extract(
    inputs: Input | Iterable[Input],
    out: str | os.PathLike[str],
    model: LoCUS,
    *,
    layout: Layout = "dense",
    scale: int = 0,
    keypoints: Detector | None = None,
    batch: int | None = None,
    workers: int = 2,
    every: int = 1,
    shard: tuple[int, int] = (0, 1),
    progress: bool = False,
) -> ExtractionSummary:
    """Write the features of images to the HDF5 file `out` (its layouts: `locus.features.feature_file`).

    Images that are in the file are not done again. One that cannot be read is left out, with a warning. Under torchrun,
    or with a shard, each process takes its share of the images and a file of its own (`out.rank0.h5`); the last one
    puts them together.

    Args:
        inputs: Image files, folders, patterns, videos, scenes; see `locus.features.images`.
        out: The file. It may exist, if it holds features of the same model.
        model: On the device where it is to run.
        layout: `dense`, all scales as maps, or `hloc`, one scale as hloc's keypoints and descriptors.
        scale: The scale, counted from 0, that goes into hloc's layout.
        keypoints: What finds keypoints for hloc's layout, which then have descriptors fused with every scale's
            features; by default every patch is one.
        batch: How many images of one size are run together. By default 4 on a CPU and 32 on a GPU.
        workers: Threads that read and resize images ahead.
        every: Of videos, take every so-many-th frame.
        shard: (i, n) does part i of n, counted from 0.
        progress: Show a bar.
    """
    own, processes = share()
    out, rank, world = Path(out), shard[0] * processes + own, shard[1] * processes
    if not 0 <= scale < len(model.radii):
        radii = ", ".join(f"{i}: {radius:g} m" for i, radius in enumerate(model.radii))
        raise LocusError(f"{model.name} has no scale {scale}; its scales are {radii}")
    if (batch is not None and batch < 1) or workers < 1:
        raise LocusError(f"batch and workers must be positive, not {batch} and {workers}")
    if keypoints is not None and (layout != "hloc" or scale):
        raise LocusError("keypoints have every scale, in hloc's layout only: add --layout hloc, and leave --scale out")
    images = sources(inputs, every, by_file=layout == "hloc")
    check_names(image.name for image in images)
    found_by = "" if keypoints is None else keypoints.fingerprint
    header = Header(model.name, model.fingerprint, model.radii, layout, scale if layout == "hloc" else 0, found_by)
    mine = images[rank::world]
    if world == 1:
        with FeatureFile(out, header) as file:
            for leftover in rank_files(out):
                file.absorb(leftover)
            summary = _run(mine, file, {}, model, keypoints, batch, workers, progress)
            empty = not file.states
    else:
        with alone(out):  # opening a file that was left by a killed process changes it
            elsewhere = finished(out, header)
        with FeatureFile(rank_file(out, rank), header) as file:
            summary = _run(mine, file, elsewhere, model, keypoints, batch, workers, progress and own == 0)
            file.mark_complete(listed := digest([image.name for image in images]))
        if not merge(out, header, world, listed):
            return summary
        summary.path = out
        empty = not finished(out, header)
    if empty:
        out.unlink()
        name, reason = next(iter(summary.skipped.items()))
        raise LocusError(f"none of the {len(summary.skipped)} images could be read; {name}: {reason}")
    return summary


def _run(
    images: Sequence[NamedImage],
    file: FeatureFile,
    elsewhere: Mapping[str, str],
    model: LoCUS,
    detector: Detector | None,
    batch: int | None,
    workers: int,
    progress: bool,
) -> ExtractionSummary:
    done = {**elsewhere, **file.states}
    todo = [image for image in images if image.name not in done or done[image.name] != image.state]
    if changed := [image.name for image in todo if image.name in done]:
        warnings.warn(
            f"{len(changed)} images changed since they were done, {changed[0]} first; done again", stacklevel=3
        )
    summary = ExtractionSummary(file.path, present=len(images) - len(todo))
    if not todo:
        return summary
    device = next(model.buffers()).device
    batch = batch or BATCH.get(device.type, BATCH["cuda"])
    ready = prepared(todo, model, workers, ahead=2 * batch, detector=detector)
    # Writing has a thread of its own: the disk is slow, and the many small pieces that HDF5 keeps in memory would lie
    # between the network's large ones, so that memory falls apart and grows by a megabyte an image.
    with ThreadPoolExecutor(1, thread_name_prefix="locus-writer") as writer:
        writing: Future[None] | None = None
        for group in batches(_readable(track(ready, "extracting", len(todo), progress), summary), batch):
            features = _features(model, group, device)
            if writing is not None:
                writing.result()
            writing = writer.submit(_store, file, group, features)
            summary.written += len(group)
        if writing is not None:
            writing.result()
    return summary


def _store(
    file: FeatureFile, group: Sequence[PreparedImage], features: Float16[ndarray, "b scales rows columns dimension"]
) -> None:
    for item, own in zip(group, features, strict=True):
        if item.keypoints is None:
            file.write(item.name, own, item.image_size, item.state)
        else:
            fused = fuse(item.keypoints, torch.from_numpy(own), usual_weights(len(own)))
            file.write_keypoints(item.name, fused, item.state)
    file.commit()


def prepared(
    images: Iterable[NamedImage], model: LoCUS, workers: int, ahead: int, detector: Detector | None = None
) -> Iterator[PreparedImage | tuple[str, LocusError]]:
    """The images in order, read, resized and looked at for keypoints by threads, at most `ahead` of them waiting."""

    def prepare(image: NamedImage) -> PreparedImage | tuple[str, LocusError]:
        try:
            pixels = image.read()
            size, found = (pixels.shape[1], pixels.shape[0]), detector.detect(pixels) if detector else None
            return PreparedImage(image.name, image.state, model.prepare(pixels), size, found)
        except LocusError as error:
            return image.name, error

    return in_order(prepare, images, workers, ahead)


def _readable(
    items: Iterable[PreparedImage | tuple[str, LocusError]], summary: ExtractionSummary
) -> Iterator[PreparedImage]:
    for item in items:
        if isinstance(item, PreparedImage):
            yield item
        else:
            name, error = item
            summary.skipped[name] = str(error)
            warnings.warn(f"{name} is left out: {error}", stacklevel=4)


def batches(items: Iterable[PreparedImage], size: int) -> Iterator[list[PreparedImage]]:
    """Neighbours of one size, at most so many together."""
    group: list[PreparedImage] = []
    for item in items:
        if group and (len(group) == size or item.pixels.shape != group[0].pixels.shape):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


@torch.inference_mode()
def _features(
    model: LoCUS, group: Sequence[PreparedImage], device: torch.device
) -> Float16[ndarray, "b scales rows columns dimension"]:
    images = torch.stack([item.pixels for item in group]).to(device)
    with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
        features = model(images)
    return features.transpose(0, 1).half().cpu().numpy()
