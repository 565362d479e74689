"""Generated houses as scenes, in memory or written to disk."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from locus.errors import LocusError
from locus.files import clear_leftovers, load_json, save_json
from locus.houses.changes import changed
from locus.houses.classes import CLASSES
from locus.houses.house import House, build, stream
from locus.houses.house_settings import HouseSettings
from locus.houses.items import Item
from locus.houses.outside import load_models, load_textures
from locus.houses.planning import draw_plan
from locus.progress import track
from locus.render.materials import Material
from locus.render.shoot import Shoot, plan_shoot
from locus.scenes.rays import mesh_library
from locus.scenes.scene import Scene
from locus.scenes.writers.transforms import write_frames

THING = np.array([False, *(label.kind == "thing" for label in CLASSES)])
SETTINGS = "houses.json"
FIRST = "cameras"  # the random stream that places those of a house itself
DEFAULT = HouseSettings()


def generate(seed: int, settings: HouseSettings = DEFAULT) -> Scene:
    """The house of a seed as a scene, rendered as its frames are looked at."""
    mesh_library("generating houses")
    house = _house(seed, load_models(settings.models), load_textures(settings.textures))
    return _shoot(house, settings).scene(house_name(seed), "generated house", CLASSES)


def house_name(seed: int) -> str:
    return f"house-{seed:06d}"


def write_houses(
    out: str | PathLike[str], seeds: range, settings: HouseSettings = DEFAULT, progress: bool = False
) -> list[Path]:
    """Write houses to `out`, one folder each; those that are there already stay as they are.

    Beside each folder, FOLDER.json has the house's rooms.
    """
    mesh_library("generating houses")
    out = Path(out)
    clear_leftovers(out)
    _remember(settings, out)
    models, textures = load_models(settings.models), load_textures(settings.textures)
    folders = [out / house_name(seed) for seed in seeds]
    for seed, folder in zip(seeds, folders, strict=True):
        if not folder.exists():
            _write(folder, _shoot(_house(seed, models, textures), settings), progress)
        if not folder.with_suffix(".json").exists():
            save_json(folder.with_suffix(".json"), {"seed": seed, "rooms": _rooms(seed)})
    return folders


def write_visits(
    out: str | PathLike[str],
    seed: int,
    visits: range,
    moves: int,
    settings: HouseSettings = DEFAULT,
    progress: bool = False,
) -> list[Path]:
    """Write later visits of one house to `out`: other cameras, other light, and changes as `changed` makes them.

    Beside each folder, FOLDER.json has the changes. Visits that are there already stay as they are.
    """
    mesh_library("generating houses")
    out = Path(out)
    _remember(settings, out)
    models, textures = load_models(settings.models), load_textures(settings.textures)
    house, other = _house(seed, models, textures), _house(seed + 1, models, textures)
    folders = [out / f"{house_name(seed)}-visit-{visit:03d}" for visit in visits]
    for visit, folder in zip(visits, folders, strict=True):
        if not folder.exists():
            later, changes = changed(house, moves, stream(seed, f"changes {visit}"), other)
            truth = {"changed from": seed, "visit": visit, "changes": [change.described() for change in changes]}
            save_json(folder.with_suffix(".json"), truth | {"rooms": _rooms(seed)})
            _write(folder, _shoot(later, settings, f"cameras {visit}"), progress)
    return folders


def _house(seed: int, models: dict[str, list[Callable[[], Item]]], textures: tuple[Material, ...]) -> House:
    if seed < 0:
        raise LocusError(f"a seed must not be negative, not {seed}")
    return build(seed, models, textures)


def _rooms(seed: int) -> list[dict[str, Any]]:
    """What each room is for, and its rectangle: x0, y0, x1, y1 in metres."""
    return [{"use": room.use, "inner": list(map(float, room.inner))} for room in draw_plan(stream(seed, "plan")).rooms]


def _write(folder: Path, shoot: Shoot, progress: bool) -> None:
    with closing(shoot.frames(CLASSES)) as taken:
        write_frames(folder, track(taken, folder.name, len(shoot.poses), progress), CLASSES)


def _shoot(house: House, settings: HouseSettings, cameras: str = FIRST) -> Shoot:
    """Pictures of a house; `cameras` names the random stream that places them."""
    lit = house.lit()
    rng = stream(house.seed, cameras)
    # A wide field of view, so that neighbouring headings overlap; a little different in every house.
    degrees = rng.uniform(75, 84)
    order = _visiting_order(house, rng)
    if cameras != FIRST:  # a visit sees the same rooms first, so that few frames can be compared with few
        first = stream(house.seed, FIRST)
        first.uniform()
        order = _visiting_order(house, first)
    return plan_shoot(lit, THING, house.ground(), order, settings, degrees, rng, house.seed, True)


def _visiting_order(house: House, rng: np.random.Generator) -> list[int]:
    """Rooms from a random one on, always through a door to the next, large and open ones first."""
    rooms = house.plan.rooms
    weights = np.array([room.area * (0.2 if room.use in ("bathroom", "corridor") else 1.0) for room in rooms])
    order = [int(rng.choice(len(rooms), p=weights / weights.sum()))]
    while len(order) < len(rooms):
        edges = [p.rooms for p in house.plan.passages if (p.rooms[0] in order) != (p.rooms[1] in order)]
        order.append(max((b if a in order else a for a, b in edges), key=lambda k: weights[k]))
    return order


def _remember(settings: HouseSettings, out: Path) -> None:
    """Write what the houses in a folder are made with; refuse to mix them with others."""
    file = out / SETTINGS
    now = json.loads(json.dumps(asdict(settings), default=str))
    if not file.exists():
        save_json(file, now)
    elif load_json(file) != now:
        raise LocusError(
            f"the houses in {out} were made with other settings (see {file}); "
            "choose another folder or give the same settings"
        )
