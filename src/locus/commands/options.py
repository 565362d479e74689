"""What many commands take, and how they speak: each option's words stand once."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import tyro
from rich.console import Console
from rich.markup import escape

from locus.backbones.variants import VARIANTS
from locus.errors import LocusError
from locus.features.images import NamedImage
from locus.files import write_json
from locus.model.shipped import DEFAULT, MODELS
from locus.scenes import Scene, SceneReading
from locus.tasks.named_images import FileCamera

if TYPE_CHECKING:  # it takes seconds to import, which --help need not
    from locus.landmarks import LandmarkMap
    from locus.landmarks.map_index import MapIndex
    from locus.model import LoCUS

BACKBONES = ("classic", *VARIANTS)
Switch = tyro.conf.FlagCreatePairsOff[bool]


def some(name: str, text: str | None = None) -> object:
    """A list of arguments in place, of which there must be one; tyro itself would call them optional."""
    return tyro.conf.arg(metavar=f"{name}...", help=text, help_behavior_hint="(required)")


ScenePatterns = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    some("SCENE", "Folders of scenes, globs, or .txt files that list folders."),
]
ScenePath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SCENE", help="Folder of a posed RGB-D scene.")]
Images = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    some("IMAGE", "Image files, folders, patterns in quotes, videos, scenes, or frames as SCENE:NAME."),
]
OneImage = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(metavar="IMAGE", help="An image file, or a frame of a scene: SCENE:NAME or SCENE:NUMBER."),
]
ModelName = Annotated[
    str,
    tyro.conf.arg(
        help="One that comes with LoCUS, a training run's folder, one on the Hugging Face hub, or a backbone's name."
    ),
]
Layer = Annotated[int | None, tyro.conf.arg(help="How many blocks of a bare backbone are run. By default all.")]
Scale = Annotated[int, tyro.conf.arg(help="Which of the model's scales, counted from 0.")]
MapsFolder = Annotated[
    Path, tyro.conf.arg(help="The folder of a map, as `locus map` writes it, or of an index, as `locus index` does.")
]
MapModel = Annotated[
    str | None,
    tyro.conf.arg(metavar="MODEL", help="The model that the map was made with. By default where it was then."),
]
Frames = Annotated[str, tyro.conf.arg(help="Use only these frames, START:STOP or START:STOP:STEP, counted from 0.")]
Cache = Annotated[
    Path | None,
    tyro.conf.arg(help="Where the backbone's tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE."),
]
Shard = Annotated[
    str,
    tyro.conf.arg(
        metavar="I/N",
        help="Do part I of N of the work, counted from 0, as a task of a SLURM array (docs/scale.md).",
    ),
]
Cluster = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="auto|ADDRESS",
        help="Do all parts at once on the Ray cluster of this machine, begun if there is none, or at an address.",
    ),
]
CameraOfFiles = Annotated[FileCamera, tyro.conf.OmitArgPrefixes]
JsonFile = Annotated[Path | None, tyro.conf.arg(help="A file to write with the answers, for machines.")]
Sliced = TypeVar("Sliced", Scene, list[NamedImage])
Reading = Annotated[SceneReading, tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff]


def say(*sentences: str) -> None:
    """Print lines as they are: names of files may look like markup."""
    for sentence in sentences:
        Console(soft_wrap=True, highlight=False).print(escape(sentence))


def counted(number: int, thing: str) -> str:
    """`1 frame`, `2 frames`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def say_skipped(scene: Scene) -> None:
    """Which frames were left out when a scene was opened, if any were."""
    if scene.skipped:
        name, reason = next(iter(scene.skipped.items()))
        say(f"{len(scene.skipped)} frames of {scene.name} were left out; the first, {name}: {reason}")


def write_answers(path: Path | None, content: object) -> None:
    """What --json asks for."""
    if path is not None:
        write_json(path, content)
        say(f"Wrote {path}")


def network(model: str, layer: int | None = None) -> "LoCUS":
    """The model of that name, on this machine's best device."""
    from locus.model import load, this_device

    return load(model, layer).to(this_device())


def map_and_network(folder: Path, model: str | None) -> "tuple[LandmarkMap, LoCUS]":
    """A map, and the model it was made with: where it was then, or by another name."""
    from locus.landmarks import LandmarkMap

    world = LandmarkMap.load(folder)
    return world, _network_of(world, folder, model)


def maps_and_network(folder: Path, model: str | None) -> "tuple[LandmarkMap | MapIndex, LoCUS]":
    """The same of a map or an index of maps, which does not know where its model was."""
    from locus.landmarks.map_index import open_maps

    world = open_maps(folder)
    return world, _network_of(world, folder, model)


def _network_of(world: "LandmarkMap | MapIndex", folder: Path, model: str | None) -> "LoCUS":
    source = model or str(getattr(world, "provenance", {}).get("source") or DEFAULT)
    if model is None and Path(source).is_absolute() and not Path(source).is_dir():
        raise LocusError(f"{folder} was made with the model in {source}, which is not there now; name it with --model")
    made_with = network(source)
    world.check(made_with)
    return made_with


def check_first(
    *files: Path | None, folders: Sequence[Path | None] = (), model: str | None = None, maps: Sequence[Path] = ()
) -> None:
    """Before torch is loaded and work begins: can these be written, is there such a model, and are there these maps?"""
    for output in filter(None, (*files, *folders)):
        if output in files and output.is_dir():
            raise LocusError(f"{output} is a folder; name a file")
        parents = output.absolute().parents
        above = next(folder for folder in (output, *parents) if folder.exists())
        if not above.is_dir() and (above in parents or output in folders):
            raise LocusError(f"{output} cannot be written: {above} is no folder")
        if not os.access(above, os.W_OK):
            raise LocusError(f"{output} cannot be written: {above} is write-protected")
    if model is not None and "/" not in model and not Path(model).is_dir() and model not in {*MODELS, *BACKBONES}:
        raise LocusError(
            f"there is no model {model}; name {DEFAULT}, a run's folder, a backbone of `locus weights list`, "
            "or OWNER/NAME on the Hugging Face hub"
        )
    for folder in maps:
        if not any((folder / name).is_file() for name in ("map.safetensors", "index.json")):
            raise LocusError(f"{folder} holds no map (there is no map.safetensors); `locus map` makes one")


def check_picture(out: Path, images: int = 1) -> None:
    """Before anything that takes time: can this picture, of so many images, be written?"""
    if out.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise LocusError(f"{out} does not say what kind of picture it is; end its name in .png or .jpg")
    if images < 1:
        raise LocusError(f"the sheet needs at least one image, not {images}")


def shard_of(text: str) -> tuple[int, int]:
    """I/N as numbers: which part, of how many."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and int(number) < int(of)):
        raise LocusError(f"a shard is I/N, from 0/N for the first of N parts to (N-1)/N, such as 0/8, not {text!r}")
    return int(number), int(of)


def frame_slice(text: str) -> slice:
    """START:STOP or START:STOP:STEP, as Python's."""
    try:
        parts = [int(part) if part else None for part in text.split(":")]
        chosen = slice(*parts)
        if len(parts) < 2 or chosen.step == 0:
            raise ValueError
    except (ValueError, TypeError):
        raise LocusError(f"frames are START:STOP or START:STOP:STEP, such as 0:40 or ::2, not {text!r}") from None
    return chosen


def some_of(known: Sliced, frames: str, what: str = "frames") -> Sliced:
    """The part of a scene, or of a list of images, that --frames names."""
    if not len(chosen := known[frame_slice(frames)]):
        raise LocusError(f"--frames {frames} leaves none of the {len(known)} {what}")
    return chosen
