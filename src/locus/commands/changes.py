"""The command changes."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from locus.commands import options
from locus.commands.options import map_and_network, say
from locus.files import save_json
from locus.model.shipped import DEFAULT
from locus.scenes.load import AS_STATED


def changes(
    map: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MAP")],
    scene: options.ScenePath,
    model: options.MapModel = DEFAULT,
    same_coordinates: options.Switch = False,
    update: options.Switch = False,
    before: Path | None = None,
    page: Path | None = None,
    json: options.JsonFile = None,
    cache: options.Cache = None,
    reading: options.Reading = AS_STATED,
) -> int:
    """Find what is gone, new or moved since a map was made.

    A later recording of a mapped environment is aligned with the map. What it should have seen and did not is gone,
    what it sees where the map's frames saw nothing is new, and what is found elsewhere has moved. Prints a table and
    writes a page with pictures.

    Args:
        map: The map's folder, as `locus map` writes it.
        scene: Folder of a later posed RGB-D recording.
        same_coordinates: The recording has the map's coordinates, so it is not aligned.
        update: Bring the map up to date: stale landmarks lose weight and go, and the recording is merged into it.
        before: The scene that the map was made from, for pictures of how it was, if it is still there.
        page: Where to write the page. By default changes-SCENE.html in the current folder.
    """
    from locus.landmarks.map_files import writing
    from locus.scenes import load_scene
    from locus.tasks.change_page import write_page
    from locus.tasks.map_update import updated
    from locus.tasks.placed_points import detector_or_reason
    from locus.tasks.session_changes import find_changes

    session, earlier = reading.load(scene), None if before is None else load_scene(before)
    with writing(map) if update else nullcontext() as write:
        world, made_with = map_and_network(map, model)
        detector, lacking = detector_or_reason()
        how = {"same_coordinates": same_coordinates, "detector": detector, "cache": cache, "progress": True}
        found = find_changes(world, made_with, session, **how)
        if found.aligned is not None:
            say(f"{session.name} was recorded {found.aligned.sentence}")
        if lacking:
            say(f"{session.name} was compared {lacking}, so what has moved is said to be gone and new")
        if rows := found.rows():
            table = Table(*rows[0], box=None, padding=(0, 2, 0, 0))
            for row in rows:
                table.add_row(*row.values())
            Console().print(table)
        say(found.sentence)
        say(f"Pictures: {write_page(found, session, earlier, page or Path(f'changes-{session.name}.html'))}")
        if json is not None:
            save_json(json, found.described())
            say(f"Wrote {json}")
        if write is not None:
            newer = updated(world, found)
            write(newer)
            say(f"Wrote {map}: {len(world)} landmarks before, {len(newer)} now")
    return 0
