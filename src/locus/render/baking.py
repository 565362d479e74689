"""Light that does not depend on the viewer, computed once per scene at every vertex.

Values are irradiance over π: what a white surface would send back. Windows and lamps are sampled point by point;
everything else is gathered along cosine-distributed rays, whose hits are kept so that further bounces cost no rays.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int32
from scipy.sparse import csr_matrix, diags

from locus.render.lights import Lights, Window, basis, disc
from locus.render.ray_arrays import Numbers, Scalars, Vectors
from locus.render.surfaces import Mesh
from locus.rows import Rows
from locus.scenes.rays import Tracer

GATHER_RAYS = 24
WINDOW_RAYS = (2, 4)
"""Columns and rows of points on each window."""
LAMP_RAYS = 6
SUN_RAYS = 4
BOUNCES = 3
CHUNK = 4096
LIFT = 2e-3
"""Metres by which rays start above their surface."""


@dataclass(frozen=True, eq=False)
class Baked:
    """Light per vertex."""

    ambient: Float32[np.ndarray, "v 3"]
    """Everything but the direct sun."""
    sun: Float32[np.ndarray, " v"]
    """Share of the sun's disc seen, times the cosine to it."""
    near_sun: Bool[np.ndarray, " v"]
    """Whether the vertex or one close to it sees the sun; elsewhere nobody need ask."""


@dataclass(frozen=True, eq=False)
class _Points(Rows):
    """Where light is measured for each vertex: a little inside its faces and above them."""

    position: Float32[np.ndarray, "v 3"]
    normal: Float32[np.ndarray, "v 3"]
    thin: Bool[np.ndarray, " v"]
    room: Int32[np.ndarray, " v"]


def bake(
    mesh: Mesh,
    tracer: Tracer,
    lights: Lights,
    albedo: Float32[np.ndarray, "f 3"],
    rooms: Float32[np.ndarray, "r 4"],
    seed: int,
) -> Baked:
    """Light at every vertex; `rooms` are rectangles (x0, y0, x1, y1), the windows of which light them directly."""
    points = _points(mesh, rooms)
    starts = range(0, len(mesh.vertices), CHUNK)

    def gather(start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng([seed, start])
        mine = points.take(slice(start, start + CHUNK))
        hits, sky = _gather(mine, tracer, lights, rng)
        direct = sky + _from_windows(mine, tracer, lights, rng) + _from_lamps(mine, tracer, lights, rng)
        return hits, direct, _from_sun(mine, tracer, lights)

    with ThreadPoolExecutor(2) as pool:
        hits, *gathered = zip(*pool.map(gather, starts), strict=True)
        direct, sun = (np.concatenate(light) for light in gathered)
        emitted = direct + sun[:, None] * lights.outside.sunlight
        smooth = _smoothing(mesh)
        indirect = np.zeros_like(direct)
        for _ in range(BOUNCES):
            per_face = albedo * (emitted + indirect)[mesh.faces].mean(axis=1)
            # A ray that meets nothing reads the last row.
            sent = np.concatenate([per_face, np.zeros((1, 3), np.float32)])
            indirect = np.concatenate(list(pool.map(lambda faces, sent=sent: sent[faces].mean(axis=1), hits)))
            for _ in range(3):
                indirect = smooth @ indirect
    direct = smooth @ direct
    near_sun = (sun > 0).astype(np.float32)
    for _ in range(3):
        near_sun = smooth @ near_sun
    return Baked((direct + indirect).astype(np.float32), sun.astype(np.float32), near_sun > 0)


def _points(mesh: Mesh, rooms: Float32[np.ndarray, "r 4"]) -> _Points:
    corners = mesh.vertices[mesh.faces]
    centre = corners.mean(axis=1)
    total, count = np.zeros_like(mesh.vertices), np.zeros(len(mesh.vertices), np.float32)
    thin_face = np.array([material.thin for material in mesh.materials])[mesh.material]
    thin = np.zeros(len(mesh.vertices), bool)
    for k in range(3):
        np.add.at(total, mesh.faces[:, k], centre)
        np.add.at(count, mesh.faces[:, k], 1)
        thin[mesh.faces[:, k]] = thin_face
    # Pulled inwards: a vertex on the foot of a wall lies in the floor itself and would see only half of the room.
    inside = mesh.vertices + 0.15 * (total / np.maximum(count, 1)[:, None] - mesh.vertices)
    position = inside + LIFT * mesh.normals
    x, y = position[:, 0, None], position[:, 1, None]
    within = (x >= rooms[:, 0]) & (x <= rooms[:, 2]) & (y >= rooms[:, 1]) & (y <= rooms[:, 3])
    room = np.where(within.any(axis=1), within.argmax(axis=1), -1) if len(rooms) else np.full(len(position), -1)
    return _Points(position.astype(np.float32), mesh.normals, thin, room.astype(np.int32))


def _smoothing(mesh: Mesh) -> csr_matrix:
    """Averages every vertex with its neighbours along edges."""
    a = mesh.faces[:, [0, 1, 2, 1, 2, 0]].ravel()
    b = mesh.faces[:, [1, 2, 0, 0, 1, 2]].ravel()
    size = len(mesh.vertices)
    adjacency = csr_matrix((np.ones(len(a), np.float32), (a, b)), shape=(size, size))
    adjacency.data[:] = 1
    adjacency = adjacency + 2 * diags(np.ones(size, np.float32), format="csr")
    return diags((1 / adjacency.sum(axis=1).A1).astype(np.float32)) @ adjacency


def _gather(
    points: _Points, tracer: Tracer, lights: Lights, rng: np.random.Generator
) -> tuple[Int32[np.ndarray, "n k"], Vectors]:
    """Faces met by cosine-distributed rays, and the light of the sky that other rooms' windows let through."""
    count = len(points.position)
    local = disc(GATHER_RAYS, rng.uniform(0, 2 * np.pi, count))
    height = np.sqrt(np.maximum(0, 1 - (local**2).sum(axis=-1)))
    # Every other ray of a thin surface leaves from its back.
    side = np.where(points.thin[:, None] & (np.arange(GATHER_RAYS) % 2 == 1), np.float32(-1), np.float32(1))
    a, b = basis(points.normal)
    directions = local[..., :1] * a[:, None] + local[..., 1:] * b[:, None]
    directions += (side * height)[..., None] * points.normal[:, None]
    start = points.position[:, None] + ((side - 1) * LIFT)[..., None] * points.normal[:, None]
    flat = np.ascontiguousarray(directions.reshape(-1, 3), dtype=np.float32)
    origins = np.ascontiguousarray(np.broadcast_to(start, directions.shape).reshape(-1, 3), dtype=np.float32)
    face = tracer.nearest(origins, flat).face
    sky = np.zeros((len(flat), 3), np.float32)
    missed = np.flatnonzero(face < 0)
    if len(missed):
        sky[missed] = lights.outside.radiance(flat[missed])
        if lights.windows:
            # The windows of its own room are sampled by themselves; a ray that leaves by none slipped through a crack.
            through = window_met(origins[missed], flat[missed], lights.windows)
            rooms = np.array([window.room for window in lights.windows], np.int32)
            sky[missed[(through < 0) | (rooms[through] == points.room[missed // GATHER_RAYS])]] = 0
    return face.reshape(count, -1), sky.reshape(count, -1, 3).mean(axis=1)


def window_met(origins: Vectors, directions: Vectors, windows: list[Window]) -> Numbers:
    """The window through which each ray passes outwards, -1 for none."""
    met = np.full(len(origins), -1, np.int32)
    for index, window in enumerate(windows):
        inward = np.array(window.inward, np.float32)
        towards = directions @ inward
        away = (origins - np.array(window.centre, np.float32)) @ inward
        distance = -away / np.where(towards < -1e-6, towards, np.float32(-1e-6))
        offset = origins + distance[:, None] * directions - np.array(window.centre, np.float32)
        across, up = np.array(window.across, np.float32), np.array(window.up, np.float32)
        inside = (np.abs(offset @ across) <= across @ across * 1.001) & (np.abs(offset @ up) <= up @ up * 1.001)
        met[inside & (towards < -1e-6) & (distance > -0.5)] = index
    return met


def _from_windows(points: _Points, tracer: Tracer, lights: Lights, rng: np.random.Generator) -> Vectors:
    """Light of the sky through the windows of the point's own room."""
    total = np.zeros_like(points.position)
    columns, rows = WINDOW_RAYS
    cell = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2)
    for window in lights.windows:
        inward = np.array(window.inward, np.float32)
        centre = np.array(window.centre, np.float32)
        chosen = np.flatnonzero((points.room == window.room) & ((points.position - centre) @ inward > 0.01))
        if not len(chosen):
            continue
        jitter = rng.random((len(chosen), len(cell), 2), np.float32)
        where = (cell + jitter) / np.array([columns, rows], np.float32) * 2 - 1
        target = centre + where[..., :1] * np.array(window.across, np.float32)
        target = target + where[..., 1:] * np.array(window.up, np.float32)
        area = 4 * np.linalg.norm(window.across) * np.linalg.norm(window.up)
        offset = (target - points.position[chosen, None]).astype(np.float32)
        squared = (offset**2).sum(axis=-1)
        direction = offset / np.sqrt(squared)[..., None]
        cosine = np.einsum("nkc,nc->nk", direction, points.normal[chosen])
        cosine = np.where(points.thin[chosen, None], np.abs(cosine) / 2, np.maximum(cosine, 0))
        # A window very close to a point would be a spike; its solid angle is bounded by the hemisphere.
        weight = np.minimum(cosine * -(direction @ inward) * area / (np.pi * squared * len(cell)), 1 / len(cell))
        seen = np.flatnonzero(weight.ravel() > 1e-5)
        origins = np.repeat(points.position[chosen], len(cell), axis=0)[seen]
        ways = np.ascontiguousarray(direction.reshape(-1, 3)[seen])
        free = ~tracer.blocked(origins, ways)
        light = np.zeros((weight.size, 3), np.float32)
        light[seen[free]] = lights.outside.radiance(ways[free]) * weight.ravel()[seen[free], None]
        total[chosen] += light.reshape(len(chosen), -1, 3).sum(axis=1)
    return total


def _from_lamps(points: _Points, tracer: Tracer, lights: Lights, rng: np.random.Generator) -> Vectors:
    total = np.zeros_like(points.position)
    for lamp in lights.lamps:
        offset = np.array(lamp.position, np.float32) - points.position
        distance = np.linalg.norm(offset, axis=1)
        direction = offset / np.maximum(distance, 1e-3)[:, None]
        cosine = (direction * points.normal).sum(axis=1)
        cosine = np.where(points.thin, np.abs(cosine) / 2 + 0.1, np.maximum(cosine, 0))
        strength = cosine / np.maximum(distance, 2 * lamp.radius) ** 2
        chosen = np.flatnonzero((strength * max(lamp.power) > 0.002) & (distance < 9))
        if not len(chosen):
            continue
        a, b = basis(direction[chosen])
        spread = disc(LAMP_RAYS, rng.uniform(0, 2 * np.pi, len(chosen))) * np.float32(lamp.radius * 0.7)
        target = offset[chosen, None] + spread[..., :1] * a[:, None] + spread[..., 1:] * b[:, None]
        length = np.linalg.norm(target, axis=-1)
        ways = (target / length[..., None]).reshape(-1, 3).astype(np.float32)
        reach = np.maximum(length - lamp.radius * 1.05, 0.0).ravel().astype(np.float32)
        free = ~tracer.blocked(np.repeat(points.position[chosen], LAMP_RAYS, axis=0), ways, reach)
        share = free.reshape(len(chosen), -1).mean(axis=1) * strength[chosen]
        total[chosen] += share[:, None].astype(np.float32) * np.array(lamp.power, np.float32)
    return total


def _from_sun(points: _Points, tracer: Tracer, lights: Lights) -> Scalars:
    cosine = points.normal @ lights.outside.sun
    cosine = np.where(points.thin, np.abs(cosine) / 2, np.maximum(cosine, 0)).astype(np.float32)
    return cosine * sun_share(points.position, cosine, tracer, lights)


def sun_share(positions: Vectors, cosine: Scalars, tracer: Tracer, lights: Lights) -> Scalars:
    """The share of the sun's disc seen from each position with a positive cosine. The same points of the disc for
    every position: a penumbra in a few steps looks better than a noisy one."""
    share = np.zeros(len(positions), np.float32)
    facing = np.flatnonzero(cosine > 0)
    if not len(facing) or not lights.outside.sunlight.any():
        return share
    a, b = basis(lights.outside.sun[None])
    for x, y in disc(SUN_RAYS, np.zeros(1))[0] * lights.outside.sun_radius:
        way = lights.outside.sun + x * a[0] + y * b[0]
        share[facing] += ~tracer.blocked(positions[facing], np.broadcast_to(way, (len(facing), 3)))
    return share / SUN_RAYS
