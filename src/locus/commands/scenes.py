"""Commands about scenes: inspect, convert, depth, houses, render."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from locus.commands.options import (
    Cluster,
    Frames,
    ModelName,
    Reading,
    ScenePath,
    Shard,
    Switch,
    check_first,
    counted,
    network,
    say,
    say_skipped,
    shard_of,
    some_of,
)
from locus.errors import LocusError
from locus.houses.house_settings import HouseSettings
from locus.model.shipped import DEFAULT
from locus.render.camera_settings import MeshSettings
from locus.scenes.load import AS_STATED
from locus.scenes.writers import Target


def inspect(scene: ScenePath, page: Path | None = None, frames: Frames = ":", reading: Reading = AS_STATED) -> int:
    """Check a scene's poses, depth and overlap; say what repairs it.

    Prints one screen, writes one HTML page with pictures, and exits with 0 if the scene is sound and 1 if it is not.
    Every command that loads a scene takes the option that is named.

    Args:
        page: Where to write the page. By default inspect-SCENE.html in the current folder.
    """
    check_first(page)
    from locus.scenes.inspection import inspect as inspect_scene
    from locus.scenes.inspection_page import write_page

    loaded = some_of(reading.load(scene), frames)
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


def convert(
    scene: ScenePath, out: Path, to: Target = "nerfstudio", frames: Frames = ":", reading: Reading = AS_STATED
) -> int:
    """Write a scene of any format in another one.

    nerfstudio is also the native format: transforms.json, with depth and label PNGs.

    Args:
        out: The new folder.
        to: The format to write: nerfstudio, a COLMAP model, the TUM benchmark's lists, or a ROS 2 bag.
    """
    from locus.scenes import export

    loaded = some_of(reading.load(scene), frames)
    say_skipped(loaded)
    say(f"Wrote {loaded.name} to {export(loaded, out, to, progress=True)} in the format {to}")
    return 0


def depth(
    scene: ScenePath, out: Path, model: ModelName = DEFAULT, frames: Frames = ":", reading: Reading = AS_STATED
) -> int:
    """Find depth for posed images that have none.

    From the points of a COLMAP model, or else by triangulating keypoints that several frames show. Depth is found where
    there is texture; elsewhere it stays unknown. If the scene has depth, it is not used, but compared with.

    Args:
        out: The new folder, written in the native format.
    """
    if out.exists():
        raise LocusError(f"{out} exists already; choose another folder or remove it first")
    check_first(folders=[out], model=model)
    loaded = some_of(reading.load(scene), frames)
    say_skipped(loaded)
    if len(loaded) < 2:
        raise LocusError(f"{loaded.name} has {len(loaded)} frames to find depth for; at least two are needed")
    from locus.scenes import export, load_scene
    from locus.tasks.depth_comparison import compare_depth
    from locus.tasks.sparse_depth import with_depth

    written = load_scene(export(with_depth(network(model), loaded, progress=True), out, progress=True))
    known = [float((frame.depth > 0).mean()) for frame in written]
    without = f"; {known.count(0.0)} frames have none" if 0.0 in known else ""
    say(f"Wrote {len(written)} frames to {out}, with depth at {sum(known) / len(known):.0%} of their pixels{without}")
    if (compared := compare_depth(written, loaded)) is not None:
        say(compared.sentence)
    return 0


def houses(
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")],
    settings: Annotated[HouseSettings, tyro.conf.arg(name=""), tyro.conf.FlagCreatePairsOff],
    count: int = 1,
    seed: int = 0,
    changed_from: int | None = None,
    moves: int = 5,
    preview: Switch = False,
    shard: Shard = "0/1",
    cluster: Cluster = None,  # taken by locus.cli
) -> int:
    """Generate furnished houses with exact depth, poses and labels.

    One folder per house, in the native format. Houses that are there already are kept; run again to continue.

    Args:
        out: The folder to write the houses to.
        settings: Which pictures are taken of each house, and what is mixed into it.
        count: How many houses.
        seed: The first house's seed; the next house has the next seed.
        changed_from: Instead, visit the house of this seed again, `count` times, with changes, other light and other
            cameras. Beside each folder, a JSON file says what has changed; `seed` is the number of the first visit.
        moves: On a visit, how many things are moved; half as many are gone, and as many are new.
        preview: Also write preview.jpg, a contact sheet.
    """
    from locus.houses import write_houses, write_visits
    from locus.houses.preview import write_preview

    number, of = shard_of(shard)
    if count < 1:
        raise LocusError(f"the number of houses must be positive, not {count}")
    if moves < 0:
        raise LocusError(f"the number of things moved must not be negative, not {moves}")
    if preview and of > 1:
        raise LocusError("--preview shows all houses, so it needs them all: run the same without --shard at the end")
    numbers = range(seed, seed + count)[number::of]
    if changed_from is None:
        written = write_houses(out, numbers, settings, progress=True)
        say(f"{counted(len(written), 'house')} in {out}")
    else:
        written = write_visits(out, changed_from, numbers, moves, settings, progress=True)
        say(f"{counted(len(written), 'visit')} in {out}, with a JSON file each of what has changed")
    if preview:
        say(f"Contact sheet: {write_preview(written, out)}")
    return 0


def render(
    mesh: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MESH")],
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")],
    settings: Annotated[MeshSettings, tyro.conf.arg(name=""), tyro.conf.FlagCreatePairsOff],
) -> int:
    """Make posed RGB-D of a mesh or scan: GLB, OBJ, or PLY with colours.

    Args:
        mesh: The mesh; an environment with a floor to stand on.
        out: The new folder, written in the native format.
        settings: How the mesh is read, and which pictures are taken of it.
    """
    if out.exists():
        raise LocusError(f"{out} exists already; choose another folder or remove it first")
    from locus.render import render_mesh
    from locus.scenes import export

    scene = render_mesh(mesh, settings)
    say(f"Wrote {len(scene)} frames to {export(scene, out, progress=True)}")
    return 0
