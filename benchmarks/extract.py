"""How fast features are extracted from files on disk, beside the bare network on images that lie ready in memory; and
how much memory many images take.

    python benchmarks/extract.py [--model dinov2-small-focus --layer 9]

"files" is the whole way from JPEG files to an HDF5 file, "bare" the network alone on batches of the same size. The two
sides take turns, and medians are compared, because machines are noisy; "CPU" compares the time that processors spent,
which on a machine shared with others says more than the clock. Peak memory is that of fresh processes, one with eight
times the images of the other. Without `--model` a random ViT-S/14 is measured: the same speed.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from locus.features.extraction import BATCH, extract
from locus.features.images import sources
from locus.model import LoCUS

DATA = Path(os.environ.get("LOCUS_DATA", Path(__file__).parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Arguments:
    model: str | None = None
    """Name of a backbone. By default a random ViT-S/14."""
    layer: int | None = None
    """How many of its blocks are run. By default all."""
    images: Path = DATA / "hololens" / "images"
    """A folder of real images."""
    count: int = 16
    """How many of them are timed."""
    sizes: tuple[int, ...] = (224, 448)
    """Pixels of the square images."""
    repeats: int = 5
    """Runs of each side."""
    threads: int | None = None
    """Threads of the network. By default torch's own choice. On a busy machine 1, as threads that wait look busy."""


def build(name: str | None, layer: int | None, folder: Path) -> LoCUS:
    if name is not None:
        return LoCUS(name, layer, head="identity")
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    config = Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518, patch_size=14)
    Dinov2Model(config).save_pretrained(folder / "random")
    return LoCUS(str(folder / "random"), layer, head="identity")


def square_images(source: Path, folder: Path, size: int, count: int) -> Path:
    """Real pictures as JPEG files of one size, so that both sides see the same patches."""
    out = folder / f"images-{size}-{count}"
    out.mkdir(exist_ok=True)
    images = sources(source)
    for i in range(count):
        pixels = images[i * len(images) // count].read()
        scaled = cv2.resize(pixels, (size, size), interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(out / f"{i:04d}.jpg"), scaled[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])
    return out


def seconds(job: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and spent by processors."""
    start, spent = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - start, time.process_time() - spent


def files(images: Path, model: LoCUS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        extract(images, Path(folder) / "out.h5", model)


@torch.inference_mode()
def bare(images: list[torch.Tensor], network: LoCUS) -> None:
    for batch in images:
        network(batch)


def peak_megabytes(arguments: tuple[str, Path]) -> float:
    """Peak memory of a fresh process that extracts a folder. (Linux hands `ru_maxrss` down from the parent.)"""
    name, images = arguments
    files(images, LoCUS(name, head="identity"))
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main(arguments: Arguments) -> None:
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    console = Console()
    table = Table(title=f"{arguments.count} images, {torch.get_num_threads()} threads; images/s, medians")
    columns = ("pixels", "bare", "files", "ratio", "CPU")
    for column in columns:
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = build(arguments.model, arguments.layer, folder)
        for size in arguments.sizes:
            images = square_images(arguments.images, folder, size, arguments.count)
            ready = torch.stack([model.prepare(image.read()) for image in sources(images)]).split(BATCH["cpu"])
            jobs: dict[str, Callable[[], object]] = {
                "bare": lambda ready=ready: bare(list(ready), model),
                "files": lambda images=images: files(images, model),
            }
            bare(list(ready[:1]), model)
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
            for _ in range(arguments.repeats):
                for name, job in jobs.items():
                    times[name].append(seconds(job))
            rate = {name: arguments.count / np.median(values, axis=0) for name, values in times.items()}
            values = (rate["bare"][0], rate["files"][0], *(rate["files"] / rate["bare"]))
            table.add_row(str(size), *(f"{value:.2f}" for value in values))
        console.print(table)
        counts = (2 * arguments.count, 16 * arguments.count)
        folders = [square_images(arguments.images, folder, arguments.sizes[0], count) for count in counts]
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            name = arguments.model or str(folder / "random")
            low, high = pool.map(peak_megabytes, [(name, images) for images in folders], chunksize=1)
        console.print(f"peak memory: {low:.0f} MB for {counts[0]} images, {high:.0f} MB for {counts[1]}")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
