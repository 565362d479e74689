"""Commands about scenes: inspect, convert, houses, render."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from locus.commands.options import Reading, ScenePath, Shard, Switch, say, shard_of
from locus.errors import LocusError
from locus.houses.house_settings import HouseSettings
from locus.render.camera_settings import MeshSettings
from locus.scenes.load import AS_STATED


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
    settings: Annotated[HouseSettings, tyro.conf.arg(name=""), tyro.conf.FlagCreatePairsOff],
    count: int = 1,
    seed: int = 0,
    preview: Switch = False,
    shard: Shard = "0/1",
) -> int:
    """Generate furnished houses with exact depth, poses and labels.

    One folder per house, in the native format. Houses that are there already are kept; run again to continue.

    Args:
        out: The folder to write the houses to.
        settings: Which pictures are taken of each house, and what is mixed into it.
        count: How many houses.
        seed: The first house's seed; the next house has the next seed.
        preview: Also write preview.jpg, a contact sheet.
    """
    from locus.houses import write_houses
    from locus.houses.preview import write_preview

    number, of = shard_of(shard)
    if count < 1:
        raise LocusError(f"the number of houses must be positive, not {count}")
    if preview and of > 1:
        raise LocusError("--preview shows all houses, so it needs them all: run the same without --shard at the end")
    written = write_houses(out, range(seed, seed + count)[number::of], settings, progress=True)
    say(f"{len(written)} houses in {out}")
    if preview:
        say(f"Contact sheet: {write_preview(written, out)}")
    return 0


def render(
    mesh: Annotated[Path, tyro.conf.Positional],
    out: Annotated[Path, tyro.conf.Positional],
    settings: Annotated[MeshSettings, tyro.conf.arg(name=""), tyro.conf.FlagCreatePairsOff],
) -> int:
    """Make posed RGB-D of a mesh or scan: GLB, OBJ, or PLY with colours.

    Args:
        mesh: The mesh; an environment with a floor to stand on.
        out: The new folder, written in the native format.
        settings: How the mesh is read, and which pictures are taken of it.
    """
    from locus.render import render_mesh
    from locus.scenes.native import export

    scene = render_mesh(mesh, settings)
    say(f"Wrote {len(scene)} frames to {export(scene, out, progress=True)}")
    return 0
