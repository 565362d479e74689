"""The `locus` command: one verb per job, nothing but wiring."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from locus.errors import LocusError
from locus.scenes import Scene, load_scene

if TYPE_CHECKING:
    from locus.model import LoCUS

DESCRIPTION = """LoCUS: features that know places. Each command has its own --help.

Add --debug to any command to see where in the code an error came from."""

Format = Literal["nerfstudio", "tum", "7scenes", "matterport", "replica", "scannet", "taskonomy", "colmap"]


@dataclass(frozen=True)
class SceneArguments:
    """Which scene, and how to understand its numbers where the format does not say it right."""

    scene: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SCENE")]
    """Folder of a posed RGB-D scene."""
    format: Format | None = None
    """The scene's format. Found from the files if not given."""
    pose: Literal["world_from_camera", "camera_from_world"] | None = None
    """Which way the stored pose matrices map."""
    axes: Literal["opencv", "opengl"] | None = None
    """The camera axes of the stored poses: opencv (y down, z forward) or opengl, also Blender's (y up, z backward)."""
    rotation: Literal["plain", "transposed"] | None = None
    """'transposed' if the rotation part of the stored poses was transposed by mistake."""
    intrinsics: Literal["plain", "swapped"] | None = None
    """'swapped' if fx, fy and cx, cy were exchanged by mistake."""
    depth_scale: float | None = None
    """Stored depth units per metre: 1000 for millimetres, 5000 for TUM, 1 for metres."""
    allow_outside: tyro.conf.FlagCreatePairsOff[bool] = False
    """Let the scene's files name images outside its own folder."""

    def load(self) -> Scene:
        return load_scene(
            self.scene,
            self.format,
            pose=self.pose,
            axes=self.axes,
            rotation=self.rotation,
            intrinsics=self.intrinsics,
            depth_scale=self.depth_scale,
            allow_outside=self.allow_outside,
        )


SceneOptions = Annotated[SceneArguments, tyro.conf.arg(name="")]


def inspect(scene: SceneOptions, page: Path | None = None) -> int:
    """Is this data sound? Checks poses, depth and overlap, and names the option that repairs a wrong convention.

    Prints one screen, writes one HTML page with pictures, and exits with 0 if the scene is sound and 1 if it is not.

    Args:
        scene: The scene.
        page: Where to write the page. By default inspect-SCENE.html in the current folder.
    """
    from locus.scenes.inspection import inspect as inspect_scene
    from locus.scenes.inspection_page import write_page

    loaded = scene.load()
    inspection = inspect_scene(loaded, progress=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    for subject, sentence in inspection.facts():
        table.add_row(subject, escape(sentence))
    console = Console()
    console.print(f"[bold]{escape(loaded.name)}[/bold]")
    console.print(table)
    console.print(f"[bold {'green' if inspection.sound else 'red'}]{escape(inspection.verdict)}[/]")
    written = write_page(inspection, page or Path(f"inspect-{loaded.name}.html"))
    console.print(f"Pictures: {escape(str(written))}")
    return 0 if inspection.sound else 1


def convert(scene: SceneOptions, out: Path) -> int:
    """Write a scene of any format in the native one (transforms.json with depth and label PNGs).

    Args:
        scene: The scene.
        out: The new folder.
    """
    from locus.scenes.native import export

    loaded = scene.load()
    written = export(loaded, out, progress=True)
    Console().print(f"Wrote {len(load_scene(written))} of {len(loaded)} frames to {escape(str(written))}")
    return 0


def houses(
    out: Annotated[Path, tyro.conf.Positional],
    count: int = 1,
    seed: int = 0,
    frames: int | None = None,
    size: tuple[int, int] = (320, 256),
    path: Literal["panorama", "walk"] = "panorama",
    depth_noise: tyro.conf.FlagCreatePairsOff[bool] = False,
    models: Path | None = None,
    textures: Path | None = None,
    preview: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Generate furnished houses with exact depth, poses, semantic and instance labels.

    One folder per house, in the native format. Houses that are there already are kept; run again to continue.

    Args:
        out: The folder to write the houses to.
        count: How many houses.
        seed: The first house's seed; the next house has the next seed.
        frames: Frames per house. By default as many as show every room from several points.
        size: Width and height of the images.
        path: Six headings from standing points (panorama), or a smooth walk through the doors.
        depth_noise: Give depth the errors and holes of a structured-light sensor.
        models: A folder of OBJ or GLB furniture to mix in; a file's name tells its kind.
        textures: A folder of photographs to use as materials and wall pictures.
        preview: Also write preview.jpg, a contact sheet.
    """
    from locus.scenes.houses import write_houses
    from locus.scenes.houses.preview import write_preview

    if count < 1:
        raise LocusError(f"the number of houses must be positive, not {count}")
    written = write_houses(
        out,
        range(seed, seed + count),
        frames=frames,
        size=size,
        path=path,
        depth_noise=depth_noise,
        models=models,
        textures=textures,
        progress=True,
    )
    Console().print(f"{len(written)} houses in {escape(str(out))}")
    if preview:
        Console().print(f"Contact sheet: {escape(str(write_preview(written, out)))}")
    return 0


def render(
    mesh: Annotated[Path, tyro.conf.Positional],
    out: Annotated[Path, tyro.conf.Positional],
    frames: int | None = None,
    size: tuple[int, int] = (320, 256),
    path: Literal["panorama", "walk"] = "panorama",
    up: Literal["y", "z"] | None = None,
    scale: float = 1.0,
    seed: int = 0,
    depth_noise: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Make posed RGB-D of a textured mesh or scan: GLB, OBJ, or PLY with vertex colours.

    Args:
        mesh: The mesh; a place with a floor to stand on.
        out: The new folder, written in the native format.
        frames: How many frames. By default as many as show every part of the floor from several points.
        size: Width and height of the images.
        path: Six headings from standing points (panorama), or a smooth walk.
        up: The mesh's vertical axis. By default y for GLB and glTF, z for OBJ and PLY.
        scale: Metres per unit of the mesh.
        seed: Another seed gives other cameras.
        depth_noise: Give depth the errors and holes of a structured-light sensor.
    """
    from locus.scenes.native import export
    from locus.scenes.render import render_mesh

    scene = render_mesh(
        mesh, frames=frames, size=size, path=path, up=up, scale=scale, seed=seed, depth_noise=depth_noise
    )
    written = export(scene, out, progress=True)
    Console().print(f"Wrote {len(scene)} frames to {escape(str(written))}")
    return 0


@dataclass(frozen=True)
class ListWeights:
    """Show which networks LoCUS knows by name, and where their weights are on this machine."""

    check: tyro.conf.FlagCreatePairsOff[bool] = False
    """Read the stored weights through and compare their checksums; exits with 1 if any are damaged."""

    def run(self) -> int:
        from locus.backbones.weights import available

        rows = available(self.check)
        table = Table("name", "where", "MB", "licence", "source", box=None, padding=(0, 2, 0, 0))
        for row in rows:
            size = "" if row.megabytes is None else f"{row.megabytes:.0f}"
            style = {"damaged": "red", "not here": "dim"}.get(row.where, "green")
            table.add_row(row.name, f"[{style}]{row.where}[/]", size, row.licence, escape(row.note))
        Console().print(table)
        return 1 if any(row.where == "damaged" for row in rows) else 0


@dataclass(frozen=True)
class FetchWeights:
    """Download weights now, so that later work needs no network."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME...")]
    """Names that `locus weights list` shows, or Hugging Face ids (owner/name)."""

    def run(self) -> int:
        from locus.backbones.weights import fetch

        if not self.names:
            raise LocusError("name the weights to fetch; `locus weights list` shows the known ones")
        for name in self.names:
            located = fetch(name)
            Console(soft_wrap=True).print(f"{escape(located.name)}: {escape(str(located.folder))}")
        return 0


@dataclass(frozen=True)
class ImportWeights:
    """Keep a weight file of your own: .safetensors, .pth or .onnx, with the names of transformers or of its authors."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Which network it is, as `locus weights list` shows it."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The weight file. It is read as data: a pickle that would run code is refused."""

    def run(self) -> int:
        from locus.backbones.weights import import_file

        folder = import_file(self.name, self.file)
        Console(soft_wrap=True).print(f"{escape(self.name)}: {escape(str(folder))}")
        return 0


WeightsAction = (
    Annotated[ListWeights, tyro.conf.subcommand("list")]
    | Annotated[FetchWeights, tyro.conf.subcommand("fetch")]
    | Annotated[ImportWeights, tyro.conf.subcommand("import")]
)


def weights(action: Annotated[WeightsAction, tyro.conf.arg(name="")]) -> int:
    """List, download or import the weights of frozen networks.

    Weights are looked for in LoCUS's store ($LOCUS_CACHE, by default ~/.cache/locus), then in the Hugging Face cache
    (HF_HOME), then on the hub.
    """
    return action.run()


def train_from(preset: str) -> Callable[..., int]:
    """Train LoCUS features on posed RGB-D scenes. Run again, it goes on where it stopped."""
    from locus.training import PRESETS, Settings

    if preset not in PRESETS:
        raise LocusError(f"there is no preset {preset}; there are {', '.join(PRESETS)}")

    def train(
        scenes: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCENE...")],
        out: Path,
        val: tuple[str, ...] = (),
        settings: Annotated[Settings, tyro.conf.arg(name="")] = PRESETS[preset],
        preset: Literal["default", "paper", "official"] = preset,  # ty: ignore[invalid-parameter-default]
        cache: Path | None = None,
    ) -> int:
        """Train LoCUS features on posed RGB-D scenes. Run again, it goes on where it stopped.

        Args:
            scenes: Folders of scenes, globs, or .txt files that list folders; each scene is a place of its own.
            out: The run's folder: model, checkpoints, metrics, curves.png.
            val: Places to validate on, never trained on. With one scene and none here, a part of it is kept apart.
            preset: The settings to start from: what was measured to be best, or the paper's, or the authors' code's.
            cache: Where the frozen backbone's tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE.
        """
        from locus.training import train as train_model

        summary = train_model(scenes, out, settings, val=val, cache=cache, progress=True)
        best, first = summary.best, summary.metrics[0]
        table = Table("cross-view AP on unseen places", "", box=None, padding=(0, 2, 0, 0))
        for name, measured in first["baselines"].items():
            table.add_row(f"untrained backbone, {name.replace('pca', 'PCA')}", f"{measured['cross-view']:.3f}")
        table.add_row(f"trained, step {best['step']}", f"[bold]{best['unseen']['cross-view']:.3f}[/bold]")
        table.add_row("the same, on training places", f"{best['train']['cross-view']:.3f}")
        Console().print(table)
        Console(soft_wrap=True).print(f"Model: {escape(str(out))}  Curves: {escape(str(out / 'curves.png'))}")
        return 0 if summary.finished else 130

    return train


def export(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path | None = None,
    hub: Path | None = None,
    size: tuple[int, int] | None = None,
    backbone: str | None = None,
) -> int:
    """Write a trained model for use elsewhere: an ONNX file, or a folder for the Hugging Face hub.

    The ONNX file takes RGB images in [0, 1], resized to whole patches, and is checked against torch. The folder holds
    what was learned and a page that says how to load it; `hf upload NAME FOLDER` publishes it.

    Args:
        run: A training run's folder, or the name of a model on the Hugging Face hub.
        out: The ONNX file to write.
        hub: The folder to write.
        size: Width and height of the images the ONNX file takes. By default any.
        backbone: Where the backbone's weights are, if not where they were in training.
    """
    from locus.export import export_onnx
    from locus.model import LoCUS

    if out is None and hub is None:
        raise LocusError("nothing to write: give --out FILE.onnx, or --hub FOLDER, or both")
    model = LoCUS.from_pretrained(run, **({} if backbone is None else {"backbone": backbone}))
    if out is not None:
        written = export_onnx(model, out, size)
        takes = "any size in whole patches" if size is None else f"{size[0]}×{size[1]} pixels only"
        Console().print(f"Wrote {escape(str(written))}: images of {takes}, any batch; the same numbers as torch")
    if hub is not None:
        model.save_pretrained(hub)
        Console().print(f"Wrote {escape(str(hub))}: what was learned, and README.md, which says how to load it")
    return 0


def extract(
    inputs: Annotated[list[str], tyro.conf.Positional, tyro.conf.arg(metavar="INPUT")],
    model: str,
    out: Path = Path("features.h5"),
    layout: Literal["dense", "hloc"] = "dense",
    scale: int = 0,
    layer: int | None = None,
    batch: int | None = None,
    workers: int = 2,
    int8: tyro.conf.FlagCreatePairsOff[bool] = False,
    every: int = 1,
) -> int:
    """Write the features of images, videos or scenes to one HDF5 file.

    Stopped at any moment, it goes on where it was when the same command is run again. Under torchrun, several processes
    share the images. docs/extract.md shows how to read the file.

    Args:
        inputs: Image files, folders, patterns in quotes, videos, scenes.
        model: A training run's folder, a model on the Hugging Face hub, or the name of a backbone to use as it is.
        out: The file to write.
        layout: dense: maps of all scales; hloc: keypoints and descriptors of one scale, as hloc stores them.
        scale: The scale, counted from 0, that goes into hloc's layout.
        layer: How many blocks of a bare backbone are run. By default all.
        batch: Images of one size that are run together. By default 4 on a CPU, 32 on a GPU.
        workers: Threads that read images ahead.
        int8: Multiply in 8 bits: faster on CPUs, features nearly the same.
        every: Of videos, take every so-many-th frame.
    """
    from locus.extraction import extract as extract_features

    network = _model(model, layer)
    console = Console(soft_wrap=True)
    try:
        summary = extract_features(
            inputs,
            out,
            network,
            layout=layout,
            scale=scale,
            batch=batch,
            workers=workers,
            int8=int8,
            every=every,
            progress=True,
        )
    except KeyboardInterrupt:
        return _fail(f"stopped; finished images are in {out}, and the same command goes on with the rest", 130)
    counts = [f"{summary.written} images written to {summary.path}"]
    counts += [f"{summary.present} were there"] if summary.present else []
    counts += [f"{len(summary.skipped)} could not be read"] if summary.skipped else []
    console.print(escape(f"{'; '.join(counts)} ({layout} layout, {network.name})"))
    return 0


def _model(name: str, layer: int | None) -> "LoCUS":
    """A trained model, or a backbone as it is; on this process's GPU if there is one."""
    import torch

    from locus.backbones import VARIANTS
    from locus.model import WEIGHTS, LoCUS

    folder = Path(name)
    bare = name == "classic" or name in VARIANTS or (folder.is_dir() and not (folder / WEIGHTS).exists())
    if not bare and layer is not None:
        raise LocusError(f"{name} is a trained model, whose layer is fixed; leave --layer out")
    model = LoCUS(name, layer, head="identity") if bare else LoCUS.from_pretrained(name)
    if torch.cuda.is_available():
        return model.to(f"cuda:{os.environ.get('LOCAL_RANK', '0')}")
    return model


COMMANDS: dict[str, Callable[..., Any]] = {
    "inspect": inspect,
    "convert": convert,
    "houses": houses,
    "render": render,
    "train": train_from,
    "weights": weights,
    "export": export,
    "extract": extract,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence for whatever the user can put right."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # ty: ignore[invalid-assignment]
            commands = dict(COMMANDS)
            if words[:1] == ["train"]:  # its defaults depend on the preset, and importing it takes seconds
                commands["train"] = train_from(_preset(words))
            return tyro.extras.subcommand_cli_from_dict(commands, prog="locus", description=DESCRIPTION, args=words)
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, LocusError):
            return _fail(str(error))
        if isinstance(error, OSError):
            return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return _fail(f"this is a bug, please report it with what --debug adds: {type(error).__name__}: {error}")


def _preset(words: Sequence[str]) -> str:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--preset":
            return following
        if word.startswith("--preset="):
            return word.removeprefix("--preset=")
    return "default"


def _warn(message: Warning | str, *where: object) -> None:
    _fail(f"warning: {message}")


def _fail(sentence: str, code: int = 2) -> int:
    Console(stderr=True, soft_wrap=True).print(f"[red]locus:[/red] {escape(sentence)}", highlight=False)
    return code
