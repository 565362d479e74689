"""Commands about scenes: inspect, convert, houses, render."""

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from locus.commands.options import Reading, ScenePath, Switch, say
from locus.errors import LocusError
from locus.scenes.load import AS_STATED

ImageSize = Annotated[tuple[int, int], tyro.conf.arg(help="Width and height of the images.")]
CameraPath = Annotated[
    Literal["panorama", "walk"],
    tyro.conf.arg(help="Six headings from standing points (panorama), or a smooth walk through the doors."),
]
DepthNoise = Annotated[Switch, tyro.conf.arg(help="Give depth the errors and holes of a structured-light sensor.")]


def inspect(scene: ScenePath, page: Path | None = None, reading: Reading = AS_STATED) -> int:
    """Check a scene's poses, depth and overlap; say what repairs it.

    Prints one screen, writes one HTML page with pictures, and exits with 0 if the scene is sound and 1 if it is not.
    Every command that loads a scene takes the option that is named.

    Args:
        page: Where to write the page. By default inspect-SCENE.html in the current folder.
    """
    from locus.scenes.inspection import inspect as inspect_scene
    from locus.scenes.inspection_page import write_page

    loaded = reading.load(scene)
    inspection = inspect_scene(loaded, progress=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    for subject, sentence in inspection.facts():
        table.add_row(subject, escape(sentence))
    console = Console()
    console.print(f"[bold]{escape(loaded.name)}[/bold]")
    console.print(table)
    console.print(f"[bold {'green' if inspection.sound else 'red'}]{escape(inspection.verdict)}[/]")
    say(f"Pictures: {write_page(inspection, page or Path(f'inspect-{loaded.name}.html'))}")
    return 0 if inspection.sound else 1


def convert(scene: ScenePath, out: Path, reading: Reading = AS_STATED) -> int:
    """Write a scene of any format in the native one.

    The native format is nerfstudio's transforms.json, with depth and label PNGs.

    Args:
        out: The new folder.
    """
    from locus.scenes import load_scene
    from locus.scenes.native import export

    loaded = reading.load(scene)
    written = export(loaded, out, progress=True)
    say(f"Wrote {len(load_scene(written))} of {len(loaded)} frames to {written}")
    return 0


def houses(
    out: Annotated[Path, tyro.conf.Positional],
    count: int = 1,
    seed: int = 0,
    frames_per_house: int | None = None,
    size: ImageSize = (320, 256),
    path: CameraPath = "panorama",
    depth_noise: DepthNoise = False,
    models: Path | None = None,
    textures: Path | None = None,
    preview: Switch = False,
) -> int:
    """Generate furnished houses with exact depth, poses and labels.

    One folder per house, in the native format. Houses that are there already are kept; run again to continue.

    Args:
        out: The folder to write the houses to.
        count: How many houses.
        seed: The first house's seed; the next house has the next seed.
        frames_per_house: How many frames. By default as many as show every room from several points.
        models: A folder of OBJ or GLB furniture to mix in; a file's name tells its kind.
        textures: A folder of photographs to use as materials and wall pictures.
        preview: Also write preview.jpg, a contact sheet.
    """
    from locus.houses import write_houses
    from locus.houses.preview import write_preview

    if count < 1:
        raise LocusError(f"the number of houses must be positive, not {count}")
    options = {"size": size, "path": path, "depth_noise": depth_noise, "models": models, "textures": textures}
    written = write_houses(out, range(seed, seed + count), frames=frames_per_house, progress=True, **options)
    say(f"{len(written)} houses in {out}")
    if preview:
        say(f"Contact sheet: {write_preview(written, out)}")
    return 0


def render(
    mesh: Annotated[Path, tyro.conf.Positional],
    out: Annotated[Path, tyro.conf.Positional],
    count: int | None = None,
    size: ImageSize = (320, 256),
    path: CameraPath = "panorama",
    up: Literal["y", "z"] | None = None,
    metres_per_unit: float = 1.0,
    seed: int = 0,
    depth_noise: DepthNoise = False,
) -> int:
    """Make posed RGB-D of a mesh or scan: GLB, OBJ, or PLY with colours.

    Args:
        mesh: The mesh; an environment with a floor to stand on.
        out: The new folder, written in the native format.
        count: How many frames. By default as many as show every part of the floor from several points.
        up: The mesh's vertical axis. By default y for GLB and glTF, z for OBJ and PLY.
        metres_per_unit: How many metres a unit of the mesh is.
        seed: Another seed gives other cameras.
    """
    from locus.render import render_mesh
    from locus.scenes.native import export

    options = {"size": size, "path": path, "up": up, "seed": seed, "depth_noise": depth_noise}
    scene = render_mesh(mesh, frames=count, scale=metres_per_unit, **options)
    say(f"Wrote {len(scene)} frames to {export(scene, out, progress=True)}")
    return 0
