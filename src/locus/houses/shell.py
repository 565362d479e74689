"""The shell of a house as meshes: floors, ceilings, walls with holes, skirting, doors, windows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from locus.houses import finishes, solids
from locus.houses.floor_plan import INNER_WALL, OUTER_WALL, FloorPlan, Hole, Passage, Room, RoomSide
from locus.houses.motions import moved
from locus.houses.patterns import near
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import Surface

FLOOR_STEP = 0.09
WALL_STEP = 0.14
SKIRTING_DEPTH = 0.014
FRAME = 0.07
"""Width of the boards around a door and of a window's frame."""
SUNK = 0.006
"""Boards reach this far into the wall and over the edge of its hole, so that no gap shows."""


def room_parts(rng: np.random.Generator, room: Room, style: Style, height: float) -> tuple[list[Surface], ...]:
    """The floor, the ceiling and the walls of a room, in finishes drawn at random."""
    wet = room.use == "bathroom"
    floor = _floor_finish(rng, room, style)
    walls = _wall_finishes(rng, style, plain=wet)
    # Height of the tiles along the walls, more than the room's height for all of the wall.
    tiled = 0.0 if not wet else (9.0 if rng.random() < 0.4 else rng.uniform(1.2, 2.0))
    ceiling = finishes.plaster(rng, near(rng, (0.94, 0.93, 0.91), 0.02))
    parts = []
    tiles = finishes.tiles(rng, floor=False) if wet else None
    for side, material in zip(room.sides, walls, strict=True):
        line = min(tiled, height)
        if tiles is not None:
            parts += _with_holes(side, tiles, 0.0, line)
        if line < height:
            parts += _with_holes(side, material, line, height)
        if tiles is None:
            parts += _skirting(side, style.trim)
    x0, y0, x1, y1 = room.inner
    wide, deep = (x1 - x0, 0, 0), (0, y1 - y0, 0)
    below = solids.panel((x0, y0, 0), wide, deep, floor, step=FLOOR_STEP)
    above = solids.panel((x0, y0, height), deep, wide, ceiling, step=2 * WALL_STEP)
    return [below], [above], parts


def _floor_finish(rng: np.random.Generator, room: Room, style: Style) -> Material:
    if room.use == "bathroom" or (room.use == "kitchen" and rng.random() < 0.6):
        return finishes.tiles(rng, floor=True)
    if room.use == "bedroom" and rng.random() < 0.35:
        return finishes.carpet(rng)
    if rng.random() < 0.2:
        makers = (finishes.floorboards, finishes.parquet, finishes.concrete, finishes.carpet)
        return makers[rng.integers(len(makers))](rng)
    return style.floor


def _wall_finishes(rng: np.random.Generator, style: Style, plain: bool) -> list[Material]:
    """One per side: plaster, and at times another finish on one side or on all."""
    walls = [finishes.plaster(rng, near(rng, style.wall_colour(rng), 0.04))] * 4
    if plain or rng.random() >= 0.55:
        return walls
    accent = int(rng.integers(4))
    colour = style.wall_colour(rng)
    choice = rng.random()
    if choice < 0.5:
        walls[accent] = finishes.wallpaper(rng, colour)
    elif choice < 0.65:
        walls[accent] = finishes.brick(rng)
    elif choice < 0.8:
        walls[accent] = finishes.panelling(rng, colour)
    else:
        walls[accent] = finishes.plaster(rng, style.accent(rng))
    return [walls[accent]] * 4 if choice < 0.2 else walls


def _with_holes(side: RoomSide, material: Material, bottom: float, top: float) -> list[Surface]:
    """The rectangle of a wall between two heights, cut along the edges of its holes."""
    across = sorted({0.0, side.length, *(s for hole in side.holes for s in (hole.s0, hole.s1))})
    upward = sorted({bottom, top, *(z for hole in side.holes for z in (hole.z0, hole.z1) if bottom < z < top)})
    parts = []
    for s0, s1 in pairwise(across):
        for z0, z1 in pairwise(upward):
            s, z = (s0 + s1) / 2, (z0 + z1) / 2
            if any(hole.s0 < s < hole.s1 and hole.z0 < z < hole.z1 for hole in side.holes) or s1 - s0 < 1e-6:
                continue
            right = np.array([*side.right, 0.0]) * (s1 - s0)
            part = solids.panel((*side.at(s0), z0), right, (0, 0, z1 - z0), material, step=WALL_STEP)
            parts.append(replace(part, uvs=part.uvs + np.array([s0, z0], np.float32)))
    return parts


def _skirting(side: RoomSide, material: Material) -> list[Surface]:
    cuts = sorted((hole.s0 - FRAME, hole.s1 + FRAME) for hole in side.holes if hole.z0 < 0.1)
    edges = [0.0, *(s for cut in cuts for s in cut), side.length]
    return [
        _along(side, s0, s1, 0.0, 0.085, -SUNK, SKIRTING_DEPTH, material)
        for s0, s1 in zip(edges[::2], edges[1::2], strict=True)
        if s1 - s0 > 0.03
    ]


def _along(
    side: RoomSide, s0: float, s1: float, z0: float, z1: float, near_wall: float, far: float, material: Material
) -> Surface:
    """A board along a side: from s0 to s1, z0 to z1, and between two distances from the wall (negative: inside it)."""
    x, y = side.at((s0 + s1) / 2, (near_wall + far) / 2)
    long, deep = s1 - s0, far - near_wall
    size = (long, deep, z1 - z0) if side.right[0] else (deep, long, z1 - z0)
    return solids.box(size, (x, y, (z0 + z1) / 2), material, bevel=0.004)


def _lining(side: RoomSide, hole: Hole, depth: float, material: Material, threshold: Material) -> list[Surface]:
    """The inner faces of a hole, from the wall's face to `depth` behind it."""
    right, normal = np.array([*side.right, 0.0]), np.array([*side.normal, 0.0])
    left_foot = np.array([*side.at(hole.s0), hole.z0])
    right_foot = np.array([*side.at(hole.s1), hole.z0])
    up, back, wide = np.array([0, 0, hole.z1 - hole.z0]), -depth * normal, (hole.s1 - hole.s0) * right
    return [
        solids.panel(left_foot, back, up, material, step=WALL_STEP),
        solids.panel(right_foot + back, -back, up, material, step=WALL_STEP),
        solids.panel(left_foot + up, back, wide, material, step=WALL_STEP),
        solids.panel(left_foot, wide, back, threshold, step=WALL_STEP),
    ]


def door_parts(passage: Passage, plan: FloorPlan, style: Style) -> list[Surface]:
    """Lining, boards around the hole on both faces."""
    first, second = (plan.rooms[room].sides[side] for room, side in zip(passage.rooms, passage.sides, strict=True))
    parts = _lining(first, passage.hole(first), INNER_WALL, style.trim, style.floor)
    for side in (first, second):
        hole = passage.hole(side)
        s0, s1, top = hole.s0, hole.s1, hole.z1
        parts.append(_along(side, s0 - FRAME, s0 + SUNK, 0, top + FRAME, -SUNK, 0.018, style.trim))
        parts.append(_along(side, s1 - SUNK, s1 + FRAME, 0, top + FRAME, -SUNK, 0.018, style.trim))
        parts.append(_along(side, s0 + SUNK, s1 - SUNK, top - SUNK, top + FRAME, -SUNK, 0.0175, style.trim))
    return parts


def leaf_parts(
    side: RoomSide, hinge: float, way: int, size: tuple[float, float], angle: float, style: Style
) -> list[Surface]:
    """A door leaf that stands open in the room: hinged at `hinge` along the side, its closed position reaching in
    direction `way` (+1: right), opened by `angle`."""
    (width, height), thick = size, 0.04
    parts = [solids.box((width, thick, height), (width / 2, 0, height / 2), style.door, bevel=0.003)]
    for face in (-1, 1):
        for low, high in style.door_panels:
            centre = (width / 2, face * (thick / 2 + 0.002), (low + high) / 2 * height)
            parts.append(solids.box((width - 0.24, 0.008, (high - low) * height), centre, style.door))
        lever = (width - 0.12, face * (thick / 2 + 0.045), 1.02)
        parts.append(solids.box((0.12, 0.016, 0.02), lever, style.metal))
        x = width - 0.065
        parts.append(solids.rod((x, face * 0.02, 1.02), (x, face * 0.065, 1.02), 0.01, style.metal))
    # Local x runs along the leaf from its hinge. Closed it lies along `way`, open it points into the room.
    along, inward = np.array(side.right) * way, np.array(side.normal)
    x_axis = np.cos(angle) * along + np.sin(angle) * inward
    matrix = np.eye(4)
    matrix[:2, 0] = x_axis
    matrix[:2, 1] = (-x_axis[1], x_axis[0])
    foot = np.array(side.at(hinge, 0.03)) + 0.022 * along
    matrix[:3, 3] = (*foot, 0.008)
    return moved(parts, matrix)


def window_parts(side: RoomSide, hole: Hole, style: Style, columns: int, rows: int) -> list[Surface]:
    """Lining, frame with glazing bars, and a sill board inside."""
    parts = _lining(side, hole, OUTER_WALL, style.trim, style.trim)
    s0, s1, z0, z1 = hole.s0, hole.s1, hole.z0, hole.z1
    left, right, low, high = s0 + FRAME, s1 - FRAME, z0 + FRAME, z1 - FRAME
    frame = [(s0, left, z0, z1), (right, s1, z0, z1), (left, right, z0, low), (left, right, high, z1)]
    upright = [s0 + (s1 - s0) * k / columns for k in range(1, columns)]
    level = [z0 + (z1 - z0) * k / rows for k in range(1, rows)]
    for boards, inset in (
        (frame, 0.0),
        ([(s - 0.025, s + 0.025, low, high) for s in upright], 0.01),
        ([(left, right, z - 0.02, z + 0.02) for z in level], 0.012),
    ):
        parts += [_along(side, *board, -0.19 + inset, -0.13 - inset, style.window_frame) for board in boards]
    if z0 > 0.3:
        parts.append(_along(side, s0 - 0.06, s1 + 0.06, z0 - 0.035, z0, -0.12, 0.07, style.sill))
    return parts
