"""What many commands take, and how they speak: each option's words stand once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from locus.errors import LocusError
from locus.files import write_json
from locus.model.shipped import DEFAULT
from locus.scenes import Scene, SceneReading
from locus.tasks.named_images import FileCamera

if TYPE_CHECKING:  # it takes seconds to import, which --help need not
    from locus.landmarks import LandmarkMap
    from locus.model import LoCUS

Switch = tyro.conf.FlagCreatePairsOff[bool]
ScenePatterns = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    tyro.conf.arg(metavar="SCENE...", help="Folders of scenes, globs, or .txt files that list folders."),
]
ScenePath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SCENE", help="Folder of a posed RGB-D scene.")]
Images = Annotated[
    tuple[str, ...],
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="IMAGE...", help="Image files, folders, patterns in quotes, videos, scenes, or frames as SCENE:NAME."
    ),
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
MapFolder = Annotated[Path, tyro.conf.arg(help="The map's folder, as `locus map` writes it.")]
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
CameraOfFiles = Annotated[FileCamera, tyro.conf.OmitArgPrefixes]
JsonFile = Annotated[Path | None, tyro.conf.arg(help="A file to write with the answers, for machines.")]
Reading = Annotated[SceneReading, tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff]


def say(*sentences: str) -> None:
    """Print lines as they are: names of files may look like markup."""
    for sentence in sentences:
        Console(soft_wrap=True, highlight=False).print(escape(sentence))


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
    source = model or str(world.provenance.get("source") or DEFAULT)
    if model is None and Path(source).is_absolute() and not Path(source).is_dir():
        raise LocusError(f"{folder} was made with the model in {source}, which is not there now; name it with --model")
    made_with = network(source)
    world.check(made_with)
    return world, made_with


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
