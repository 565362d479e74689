"""The command `view`: a scene and its map in a browser."""

import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from locus.commands.scenes import SceneOptions
from locus.model.shipped import DEFAULT


def view(
    scene: SceneOptions,
    model: str = DEFAULT,
    map: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    cache: Path | None = None,
) -> int:
    """Show a scene, its cameras and its landmarks on a web page.

    A click on a point, a landmark or an image lights up the same thing in 3D and in every view; images can be localized
    in the map. Runs until it is stopped with Ctrl-C. Needs the extra `viewer`. docs/viewer.md shows the page.

    Args:
        scene: The scene.
        model: One that comes with LoCUS, a training run's folder, one on the Hugging Face hub, or a backbone's name.
        map: The scene's map, as `locus map` writes it. By default one is built from nine frames in ten, and not kept.
        host: The address to listen on. By default only this machine can open the page; 0.0.0.0 lets everyone in.
        port: The port to listen on; 0 takes any that is free.
        cache: Where the backbone's tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE.
    """
    from locus.viewer.serve import check_free, check_viser, server

    check_viser()
    check_free(host, port)
    from locus.landmarks import LandmarkMap
    from locus.model import load, this_device
    from locus.viewer.app import Page
    from locus.viewer.viewed import Place

    world = None if map is None else LandmarkMap.load(map)
    place = Place.open(load(model).to(this_device()), scene.load(), world, cache, progress=True)
    console = Console(soft_wrap=True, highlight=False)
    counts = f"{len(place.cloud):,} points, {len(place.seen)} frames"
    console.print(escape(f"{place.seen.scene.name}: {counts}; {place.about_map}"))
    if place.warning:
        console.print(f"[yellow]Warning:[/yellow] {escape(place.warning)}")
    with server(host, port) as running:
        Page(running, place)
        shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else host
        console.print(f"Open http://{shown}:{running.get_port()} in a browser; Ctrl-C stops")
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            console.print("stopped")
    return 0
