"""What long recordings cost: seconds and peak memory of each step, and how both grow with the frames.

    python benchmarks/long.py [--frames 1000 4000 16000] [--steps open inspect overlap tokens extract map]

The recording is made up: a camera walks along an endless wall, 10 cm a frame, and takes one of eight pictures by turns.
The network is random and tiny, so that what is measured is everything but the network. Each step runs in a process of
its own. Seconds are those that processors spent, which a busy machine does not change. The slope is that of seconds
against frames in a double logarithmic plot, 1 is linear. Memory is the peak of the step's process, less that of one
that has only opened the shortest recording.
"""

import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from PIL import Image

import locus
from locus.features.cache import cache_frames
from locus.features.extraction import extract
from locus.model import LoCUS
from locus.scenes import inspect, overlap

WIDTH, HEIGHT, FOCAL = 160, 128, 120.0
PICTURES = 8
STEP = 0.1  # metres from one frame to the next


@dataclass(frozen=True)
class Arguments:
    frames: tuple[int, ...] = (1_000, 4_000, 16_000)
    """Lengths of the recording."""
    steps: tuple[str, ...] = ("open", "inspect", "overlap", "tokens", "extract", "map")
    """What is measured, in this order."""


def record(folder: Path, frames: int) -> Path:
    """The recording in the native format. Its pictures are few files under many names."""
    scene = folder / f"walk-{frames}"
    for kind in ("images", "depth"):
        (scene / kind).mkdir(parents=True)
    random = np.random.default_rng(0)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    wall, floor = 2.0, 1.4 * FOCAL / np.maximum(y + 0.5 - HEIGHT / 2, 1e-3)
    depth = np.where(y < HEIGHT / 2, wall, np.minimum(wall, floor))
    Image.fromarray((depth * 1000).round().astype(np.uint16)).save(scene / "depth" / "all.png")
    entries = []
    for number in range(frames):
        picture = scene / "images" / f"{number:06d}.png"
        if number < PICTURES:
            waves = np.sin(x[..., None] / random.uniform(4, 20, 3) + y[..., None] / random.uniform(4, 20, 3))
            Image.fromarray((128 + 100 * waves).astype(np.uint8)).save(picture)
        else:
            os.link(scene / "images" / f"{number % PICTURES:06d}.png", picture)
        pose = np.diag([1.0, -1.0, -1.0, 1.0])  # OpenGL's axes for a camera that looks along z with y down
        pose[0, 3] = number * STEP
        entries.append(
            {
                "file_path": f"images/{picture.name}",
                "depth_file_path": "depth/all.png",
                "transform_matrix": pose.tolist(),
            }
        )
    content = {"w": WIDTH, "h": HEIGHT, "fl_x": FOCAL, "fl_y": FOCAL, "frames": entries}
    (scene / "transforms.json").write_text(json.dumps(content))
    return scene


def tiny(folder: Path) -> LoCUS:
    """A random network of 16 × 16 patches, two scales."""
    from transformers import ViTConfig, ViTModel

    if not (folder / "network").exists():
        torch.manual_seed(0)
        config = ViTConfig(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, image_size=64
        )
        ViTModel(config, add_pooling_layer=False).save_pretrained(folder / "network")
    torch.manual_seed(0)
    return LoCUS(str(folder / "network"), head="linear", radii=(0.2, 0.8), dimension=16)


def step(name: str, folder: Path, frames: int) -> tuple[float, float]:
    """Seconds and peak megabytes of one step, in this process."""
    scene, cache, model = locus.load_scene(folder / f"walk-{frames}"), folder / "cache", tiny(folder)
    jobs: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "open": lambda: locus.load_scene(folder / f"walk-{frames}"),
        "inspect": lambda: inspect(scene),
        "overlap": lambda: overlap(scene),
        "tokens": lambda: cache_frames(scene, model.backbone, folder=cache),
        "extract": lambda: extract(scene, folder / f"{frames}.h5", model),
        "map": lambda: locus.LandmarkMap.build(model, scene, cache=cache).save(folder / f"map-{frames}"),
    }
    start = time.process_time()
    jobs[name]()
    seconds = time.process_time() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(name: str, folder: Path, frames: int) -> tuple[float, float]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(step, (name, folder, frames))


def main() -> None:
    arguments = tyro.cli(Arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for frames in arguments.frames:
            record(folder, frames)
        tiny(folder)
        bare = measured("nothing", folder, min(arguments.frames))[1]
        print("step | " + " | ".join(f"{frames:,} frames" for frames in arguments.frames) + " | slope", flush=True)
        for each in arguments.steps:
            taken = [measured(each, folder, frames) for frames in arguments.frames]
            cells = [f"{seconds:.2f} s, {peak - bare:.0f} MB" for seconds, peak in taken]
            if len(taken) > 1:
                slope = np.polyfit(np.log(arguments.frames), np.log([seconds for seconds, _ in taken]), 1)[0]
                cells.append(f"{slope:.2f}")
            print(f"{each} | {' | '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
