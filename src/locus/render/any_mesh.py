"""Posed RGB-D of a user's own mesh or scan, with the same cameras and renderer as the houses."""

from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Float32
from scipy.cluster.vq import kmeans2

from locus.errors import LocusError
from locus.render.baking import Baked
from locus.render.camera_settings import MeshSettings
from locus.render.cameras import Ground
from locus.render.lights import Lights, Outside
from locus.render.lit_mesh import LitMesh
from locus.render.mesh_file import WHITE, load_parts
from locus.render.shoot import plan_shoot
from locus.render.surfaces import Mesh, Thing, join
from locus.scenes.rays import Tracer, mesh_library
from locus.scenes.scene import Scene

CELL = 0.1
BODY = 0.25
EYE = 1.5
AREA = 12.0
"""Square metres of free floor that are visited like one room."""
DEFAULT = MeshSettings()


def render_mesh(file: str | PathLike[str], settings: MeshSettings = DEFAULT) -> Scene:
    """A mesh with a floor to stand on, as a scene. Colours are taken as they are: a scan's light is in its texture."""
    mesh_library("rendering a mesh")
    file = Path(file)
    up = settings.up or ("y" if file.suffix.lower() in (".glb", ".gltf") else "z")
    parts = load_parts(file, up, settings.metres_per_unit)
    mesh = join([Thing(0, number, [part]) for number, part in enumerate(parts, 1)])
    extent = np.ptp(mesh.vertices, axis=0)
    if not 1.0 <= max(extent[:2]) <= 300 or extent[2] < 0.5:
        x, y, z = extent
        raise LocusError(
            f"{file} is {x:.3g} × {y:.3g} metres wide and {z:.3g} high, which is no place to walk in; "
            "give --metres-per-unit if its unit is not the metre and --up if its vertical axis is another"
        )
    black = np.zeros((2, 2, 3), np.float32)
    sun = np.array([0, 0, 1], np.float32)
    lights = Lights(Outside(black, sun, np.zeros(3, np.float32)))
    bare = all(part.material is WHITE and part.tint is None for part in parts)
    lit = LitMesh(mesh, lights, lambda tracer, albedo: _as_it_is(mesh, bare))
    ground = find_ground(mesh, lit.tracer, file)
    areas = np.bincount(ground.area[ground.area >= 0])
    order = [int(k) for k in np.argsort(-areas, kind="stable")]
    rng = np.random.default_rng([settings.seed, 3])
    shoot = plan_shoot(lit, np.ones(1, bool), ground, order, settings, 80.0, rng, settings.seed, labelled=False)
    return shoot.scene(file.stem, "rendered mesh", ())


def _as_it_is(mesh: Mesh, bare: bool) -> Baked:
    """Full light everywhere; a mesh without any colour gets light from above and one side, to show its shape."""
    light = np.ones(len(mesh.vertices), np.float32)
    if bare:
        light = 0.55 + 0.25 * mesh.normals[:, 2] + 0.15 * mesh.normals[:, 0]
    grey = np.repeat(light[:, None], 3, axis=1).astype(np.float32)
    return Baked(grey, np.zeros_like(light), np.zeros(len(light), bool))


def find_ground(mesh: Mesh, tracer: Tracer, file: Path) -> Ground:
    """Cells where the lowest large level surface lies free below eye height and nothing is near on any side."""
    floor = _floor_height(mesh, file)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    columns, rows = (np.maximum((high - low)[:2] / CELL, 1)).astype(int)
    x = low[0] + (np.arange(columns) + 0.5) * CELL
    y = low[1] + (np.arange(rows) + 0.5) * CELL
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    eye = np.concatenate([grid, np.full((len(grid), 1), floor + EYE)], axis=1).astype(np.float32)
    down = tracer.nearest(eye, np.broadcast_to(np.array([0, 0, -1], np.float32), eye.shape))
    free = (down.face >= 0) & (np.abs(down.distance - EYE) < 0.15)
    free &= _elbow_room(tracer, eye, free, floor)
    area = np.full(rows * columns, -1)
    if free.any():
        count = max(1, round(float(free.sum()) * CELL**2 / AREA))
        _, label = kmeans2(grid[free], count, minit="++", seed=0) if count > 1 else (None, np.zeros(int(free.sum())))
        area[free] = label
    return Ground((float(low[0]), float(low[1])), CELL, free.reshape(rows, columns), area.reshape(rows, columns), floor)


def _elbow_room(
    tracer: Tracer, eye: Float32[np.ndarray, "n 3"], ask: Bool[np.ndarray, " n"], floor: float
) -> Bool[np.ndarray, " n"]:
    """Whether nothing is closer than BODY at three heights."""
    roomy = ask.copy()
    for height in (0.35, 0.9, EYE):
        for angle in np.arange(12) * np.pi / 6:
            index = np.flatnonzero(roomy)
            origin = eye[index].copy()
            origin[:, 2] = floor + height
            way = np.array([np.cos(angle), np.sin(angle), 0], np.float32)
            reach = np.full(len(index), BODY, np.float32)
            roomy[index[tracer.blocked(origin, np.broadcast_to(way, origin.shape), reach)]] = False
    return roomy


def _floor_height(mesh: Mesh, file: Path) -> float:
    """The height with most level surface, looking only at the lower half."""
    corners: Float[np.ndarray, "f 3 3"] = mesh.vertices[mesh.faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(cross, axis=1) / 2
    level = np.abs(cross[:, 2]) > 0.9 * 2 * np.maximum(area, 1e-12)
    height = corners[:, :, 2].mean(axis=1)
    low, high = float(mesh.vertices[:, 2].min()), float(mesh.vertices[:, 2].max())
    chosen = level & (height < low + max(0.5 * (high - low), 0.3))
    if not chosen.any():
        raise LocusError(f"{file} has no level floor; give --up if its vertical axis is another")
    counts, edges = np.histogram(height[chosen], bins=max(4, int((high - low) / 0.05)), weights=area[chosen])
    best = int(np.argmax(counts))
    inside = chosen & (height >= edges[best]) & (height <= edges[best + 1])
    return float(np.average(height[inside], weights=np.maximum(area[inside], 1e-12)))
