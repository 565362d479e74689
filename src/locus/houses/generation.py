"""Generated houses as scenes, in memory or written to disk."""

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from locus.errors import LocusError
from locus.geometry import Camera
from locus.houses.classes import CLASSES
from locus.houses.house import House, build, stream
from locus.houses.items import Item
from locus.houses.outside import load_models, load_textures
from locus.progress import track
from locus.render.cameras import Eyes, panorama, walk
from locus.render.materials import Material
from locus.render.shoot import Shoot
from locus.scenes.native import write_native
from locus.scenes.scene import Scene

CameraPath = Literal["panorama", "walk"]
THING = np.array([False, *(label.kind == "thing" for label in CLASSES)])
SETTINGS = "houses.json"


def generate(
    seed: int,
    *,
    frames: int | None = None,
    size: tuple[int, int] = (320, 256),
    path: CameraPath = "panorama",
    depth_noise: bool = False,
    models: str | PathLike[str] | None = None,
    textures: str | PathLike[str] | None = None,
) -> Scene:
    """The house of a seed as a scene, rendered as its frames are looked at. The same arguments give the same bytes.

    `frames`: how many, by default as many as show every room from several points. `size`: width and height in pixels.
    `path`: six headings from standing points ("panorama") or a "walk". `depth_noise`: errors and holes like those of
    a structured-light sensor. `models`: a folder of OBJ or GLB furniture to mix in. `textures`: a folder of
    photographs to use as materials and wall pictures.
    """
    shoot = _shoot(seed, frames, size, path, depth_noise, load_models(models), load_textures(textures))
    return shoot.scene(house_name(seed), "generated house", CLASSES)


def house_name(seed: int) -> str:
    return f"house-{seed:06d}"


def write_houses(
    out: str | PathLike[str],
    seeds: range,
    *,
    frames: int | None = None,
    size: tuple[int, int] = (320, 256),
    path: CameraPath = "panorama",
    depth_noise: bool = False,
    models: str | PathLike[str] | None = None,
    textures: str | PathLike[str] | None = None,
    progress: bool = False,
) -> list[Path]:
    """Write houses to `out`, one folder each; those that are there already stay as they are."""
    out = Path(out)
    _remember_settings(
        out,
        {"frames": frames, "size": list(size), "path": path, "depth_noise": depth_noise}
        | {"models": None if models is None else str(models), "textures": None if textures is None else str(textures)},
    )
    furniture, photographs = load_models(models), load_textures(textures)
    folders = []
    for seed in seeds:
        folder = out / house_name(seed)
        folders.append(folder)
        if folder.exists():
            continue
        shoot = _shoot(seed, frames, size, path, depth_noise, furniture, photographs)
        taken = shoot.frames(CLASSES)
        try:
            write_native(folder, track(taken, folder.name, len(shoot.poses), progress), CLASSES)
        finally:
            taken.close()
    return folders


def _shoot(
    seed: int,
    frames: int | None,
    size: tuple[int, int],
    path: CameraPath,
    depth_noise: bool,
    models: dict[str, list[Callable[[], Item]]],
    textures: tuple[Material, ...],
) -> Shoot:
    if seed < 0:
        raise LocusError(f"a seed must not be negative, not {seed}")
    if frames is not None and frames < 1:
        raise LocusError(f"a house needs at least one frame, not {frames}")
    house = build(seed, models, textures)
    stage = house.lit()
    rng = stream(seed, "cameras")
    width, height = size
    # A wide field of view, so that neighbouring headings overlap; a little different in every house.
    focal = width / 2 / np.tan(np.radians(rng.uniform(75, 84)) / 2)
    camera = Camera(width, height, float(focal), float(focal), width / 2, height / 2)
    eyes = Eyes(stage.tracer, stage.mesh, THING, camera)
    plan = panorama if path == "panorama" else walk
    poses = plan(house.ground(), eyes, _visiting_order(house, rng), frames, rng)
    return Shoot(stage, camera, poses, seed, labelled=True, depth_noise=depth_noise)


def _visiting_order(house: House, rng: np.random.Generator) -> list[int]:
    """Rooms from a random one on, always through a door to the next, large and open ones first."""
    rooms = house.plan.rooms
    weights = np.array([room.area * (0.2 if room.use in ("bathroom", "corridor") else 1.0) for room in rooms])
    order = [int(rng.choice(len(rooms), p=weights / weights.sum()))]
    while len(order) < len(rooms):
        edges = [p.rooms for p in house.plan.passages if (p.rooms[0] in order) != (p.rooms[1] in order)]
        order.append(max((b if a in order else a for a, b in edges), key=lambda k: weights[k]))
    return order


def _remember_settings(out: Path, settings: dict) -> None:
    """Write what the houses in a folder are made with; refuse to mix them with others."""
    file = out / SETTINGS
    try:
        if file.exists():
            if json.loads(file.read_text(encoding="utf-8")) != settings:
                raise LocusError(
                    f"the houses in {out} were made with other settings (see {file}); "
                    "choose another folder or give the same settings"
                )
            return
        out.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(settings, indent=1), encoding="utf-8")
        partial.rename(file)
    except OSError as error:
        raise LocusError(f"{out} cannot be written: {error.strerror}") from None
    except json.JSONDecodeError:
        raise LocusError(f"{file} cannot be read as JSON; remove it to start anew") from None
