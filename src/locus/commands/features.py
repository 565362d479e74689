"""Commands that put a model to work elsewhere: extract, export."""

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.markup import escape

from locus.commands import options
from locus.commands.options import check_first, counted, network, say, shard_of
from locus.errors import LocusError
from locus.features.images import sources
from locus.model.shipped import DEFAULT
from locus.scenes.load import AS_STATED
from locus.tasks.named_images import open_inputs


def extract(
    inputs: options.Images,
    model: options.ModelName = DEFAULT,
    out: Path = Path("features.h5"),
    layout: Literal["dense", "hloc"] = "dense",
    scale: int = 0,
    keypoints: str | None = None,
    layer: options.Layer = None,
    batch: int | None = None,
    workers: int = 2,
    every: int = 1,
    shard: options.Shard = "0/1",
    cluster: options.Cluster = None,  # taken by locus.cli
    reading: options.Reading = AS_STATED,
) -> int:
    """Write the features of images, videos or scenes to one HDF5 file.

    Stopped at any moment, it goes on where it was when the same command is run again. Under torchrun, or with --shard,
    several processes share the images. docs/extract.md shows how to read the file.

    Args:
        out: The file to write.
        layout: dense: maps of all scales; hloc: keypoints and descriptors, as hloc stores them.
        scale: The scale, counted from 0, that goes into hloc's layout, where every patch is a keypoint.
        keypoints: Keypoints of xfeat, aliked, disk, superpoint or sift instead of patches. Their descriptors are fused
            with the features of every scale at their spots. NAME=FILE takes weights of your own.
        batch: Images of one size that are run together. By default 4 on a CPU, 32 on a GPU.
        workers: Threads that read images ahead.
        every: Of videos, take every so-many-th frame.
    """
    part = shard_of(shard)
    check_first(out, model=model)
    given = open_inputs(inputs, reading)
    sources(given, every)  # names what is missing
    from locus.features.extraction import extract as extract_features
    from locus.keypoints import detector

    made_with = network(model, layer)
    found_by = None if keypoints is None else detector(keypoints)
    how = {"layout": layout, "scale": scale, "keypoints": found_by, "batch": batch, "workers": workers, "every": every}
    how["shard"] = part
    try:
        summary = extract_features(given, out, made_with, **how, progress=True)
    except KeyboardInterrupt:
        Console(stderr=True, soft_wrap=True).print(
            f"stopped; finished images are in {escape(str(out))}, and the same command goes on with the rest"
        )
        return 130
    counts = [f"{counted(summary.written, 'image')} written to {summary.path}"]
    counts += [f"{summary.present} were there"] if summary.present else []
    counts += [f"{len(summary.skipped)} could not be read"] if summary.skipped else []
    by = f"{made_with.name} at keypoints of {found_by.name}" if found_by else made_with.name
    say(f"{'; '.join(counts)} ({layout} layout, {by})")
    return 0


def export(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path | None = None,
    hub: Path | None = None,
    size: tuple[int, int] | None = None,
    half: options.Switch = False,
    start: float = 0.0,
    backbone: str | None = None,
) -> int:
    """Write a trained model as an ONNX file or a Hugging Face folder.

    The ONNX file takes RGB images in [0, 1], resized to whole patches, and is checked against torch. The folder holds
    what was learned and a page that says how to load it; `hf upload NAME FOLDER` publishes it.

    Args:
        run: A training run's folder, or the name of a model that comes with LoCUS or is on the Hugging Face hub.
        out: The ONNX file to write.
        hub: The folder to write.
        size: Width and height of the images the ONNX file takes. By default any.
        half: Write the folder's weights in 16 bits: half the size.
        start: Mix so much of a run's weights before training into those after it, from 0 to 1: 0.3 is better in real
            places than 0 (docs/training.md).
        backbone: Where the backbone's weights are, if not where they were in training.
    """
    if out is None and hub is None:
        raise LocusError("nothing to write: give --out FILE.onnx, or --hub FOLDER, or both")
    check_first(out, folders=[hub], model=run)
    from locus.model import LoCUS
    from locus.model.export import export_onnx
    from locus.training.mixing import mix_with_start

    model = LoCUS.from_pretrained(run, **({} if backbone is None else {"backbone": backbone}))
    if start:
        mix_with_start(model, Path(run), start)
    if out is not None:
        written = export_onnx(model, out, size)
        takes = "any size in whole patches" if size is None else f"{size[0]}×{size[1]} pixels only"
        say(f"Wrote {written}: images of {takes}, any batch; the same numbers as torch")
    if hub is not None:
        (model.half() if half else model).save_pretrained(hub)
        say(f"Wrote {hub}: what was learned, and README.md, which says how to load it")
    return 0
