"""Commands about scenes: inspect, convert, houses, render."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from locus.errors import LocusError
from locus.houses.settings import HouseSettings
from locus.render.settings import MeshSettings
from locus.scenes import Scene, load_scene

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
    settings: Annotated[HouseSettings, tyro.conf.arg(name=""), tyro.conf.FlagCreatePairsOff],
    count: int = 1,
    seed: int = 0,
    preview: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Generate furnished houses with exact depth, poses, semantic and instance labels.

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

    if count < 1:
        raise LocusError(f"the number of houses must be positive, not {count}")
    written = write_houses(out, range(seed, seed + count), settings, progress=True)
    Console().print(f"{len(written)} houses in {escape(str(out))}")
    if preview:
        Console().print(f"Contact sheet: {escape(str(write_preview(written, out)))}")
    return 0


def render(
    mesh: Annotated[Path, tyro.conf.Positional],
    out: Annotated[Path, tyro.conf.Positional],
    settings: Annotated[MeshSettings, tyro.conf.arg(name=""), tyro.conf.FlagCreatePairsOff],
) -> int:
    """Make posed RGB-D of a textured mesh or scan: GLB, OBJ, or PLY with vertex colours.

    Args:
        mesh: The mesh; a place with a floor to stand on.
        out: The new folder, written in the native format.
        settings: How the mesh is read, and which pictures are taken of it.
    """
    from locus.render import render_mesh
    from locus.scenes.native import export

    scene = render_mesh(mesh, settings)
    written = export(scene, out, progress=True)
    Console().print(f"Wrote {len(scene)} frames to {escape(str(written))}")
    return 0
