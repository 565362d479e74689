"""The command `view`: a scene and its map in a browser."""

import time
from pathlib import Path
from typing import Annotated

import tyro

from locus.commands.options import Cache, Frames, ModelName, Reading, check_first, network, say, some_of
from locus.model.shipped import DEFAULT
from locus.ports import check_free
from locus.scenes.load import AS_STATED
from locus.tasks.named_images import frame_index, open_scene


def view(
    scene: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SCENE[:NAME]")],
    model: ModelName = DEFAULT,
    map: Path | None = None,
    frames: Frames = ":",
    changes: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    cache: Cache = None,
    reading: Reading = AS_STATED,
) -> int:
    """Show a scene, its cameras and its landmarks on a web page.

    A click on a point, a landmark or an image lights up the same thing in 3D and in every view; images can be localized
    in the map. Runs until it is stopped with Ctrl-C. Needs the extra `viewer`. docs/viewer.md shows the page.

    Args:
        scene: Folder of a posed RGB-D scene; with a frame, SCENE:NAME, the page opens looking through its camera.
        map: The scene's map, as `locus map` writes it; its graph, if it has one, is a tree to click.
            By default a map is built from nine frames in ten, and not kept.
        changes: A file that `locus changes --json` wrote: gone is shown in red, new in green, moved with an arrow.
        host: The address to listen on. By default only this machine can open the page; 0.0.0.0 lets everyone in.
        port: The port to listen on; 0 takes any that is free.
    """
    check_free(host, port)
    check_first(model=model, maps=[] if map is None else [map])
    whole, frame = open_scene(scene, reading)
    loaded = some_of(whole, frames)
    if frame is not None:
        frame = frame_index(loaded, whole.sources[frame].name)
    from locus.viewer.serve import check_viser, server

    check_viser()
    from locus.landmarks import LandmarkMap
    from locus.landmarks.map_files import GRAPH
    from locus.tasks.place_graph import PlaceGraph
    from locus.viewer.app import Page
    from locus.viewer.shown_changes import read_changes, show_changes
    from locus.viewer.viewed import ViewedScene

    world, changed = None if map is None else LandmarkMap.load(map), None if changes is None else read_changes(changes)
    graph = PlaceGraph.load(map) if map is not None and (map / GRAPH).exists() else None
    viewed = ViewedScene.open(network(model), loaded, world, cache, progress=True)
    say(f"{loaded.name}: {len(viewed.cloud):,} points, {len(viewed.seen)} frames; {viewed.about_map}")
    if viewed.warning:
        say(f"Warning: {viewed.warning}")
    with server(host, port) as running:
        page = Page(running, viewed, graph)
        if changed is not None:
            show_changes(running, changed)
        if frame is not None:
            page.canvas.open_at(running, viewed.row(frame))
        shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else host
        say(f"Open http://{shown}:{running.get_port()} in a browser; Ctrl-C stops")
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            say("stopped")
    return 0
