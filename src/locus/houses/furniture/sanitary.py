"""Toilet, washbasin, bathtub, shower, washing machine, towels."""

import numpy as np

from locus.houses import fabrics, finishes
from locus.houses.furniture.storage import drawers
from locus.houses.items import Item, Shelf
from locus.houses.motions import forward, moved, shift
from locus.houses.solids import box, cylinder, lathe, rod, sheet, tube
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import Surface


def _oval(
    half_x: float, half_y: float, centre: tuple[float, float], profile: list[tuple[float, float]], material: Material
) -> Surface:
    """A lathe stretched to an oval; the profile's radius 1 is the oval's rim."""
    part = lathe(profile, material, segments=28)
    part.vertices[:, 0] = part.vertices[:, 0] * half_x + centre[0]
    part.vertices[:, 1] = part.vertices[:, 1] * half_y + centre[1]
    part.normals[:, 0] /= half_x
    part.normals[:, 1] /= half_y
    part.normals[:] /= np.maximum(np.linalg.norm(part.normals, axis=1, keepdims=True), 1e-9)
    return part


def toilet(rng: np.random.Generator, style: Style) -> Item:
    white = finishes.ceramic(rng)
    lid = white if rng.random() < 0.6 else style.wood(rng)
    seat = rng.uniform(0.39, 0.43)
    parts = [
        box((0.38, 0.18, 0.36), (0, -0.26, seat + 0.17), white, 0.03),
        box((0.4, 0.2, 0.03), (0, -0.26, seat + 0.37), white, 0.012),
    ]
    bowl = [(0.0, 0.0), (0.62, 0.0), (0.55, 0.12), (0.7, 0.25)]
    bowl += [(1.0, seat - 0.06), (1.0, seat - 0.02), (0.0, seat - 0.02)]
    cover = [(0.0, -0.018), (1.0, -0.018), (1.0, 0.015), (0.9, 0.022), (0.0, 0.024)]
    parts.append(_oval(0.18, 0.25, (0, 0.08), bowl, white))
    parts.append(_oval(0.185, 0.255, (0, 0.08), [(r, seat + z) for r, z in cover], lid))
    parts.append(box((0.2, 0.24, seat - 0.02), (0, -0.2, (seat - 0.02) / 2), white, 0.03))
    parts.append(cylinder(0.02, 0.006, (0, -0.26, seat + 0.386), style.metal, 14))
    return Item("toilet", parts).centred()


def washbasin(rng: np.random.Generator, style: Style) -> Item:
    """A basin on a cabinet with a tap."""
    white = finishes.ceramic(rng)
    width, depth, top = rng.uniform(0.55, 0.95), rng.uniform(0.42, 0.5), 0.84
    rows, columns = int(rng.integers(1, 3)), 1 if width < 0.7 else 2
    chest = drawers(rng, style, (width - 0.02, depth - 0.02, top - 0.25), rows, columns, style.body(rng))
    parts = moved(chest, shift(0, 0, 0.25))
    for x in (-width / 2 + 0.05, width / 2 - 0.05):
        parts.append(cylinder(0.015, 0.25, (x, depth / 2 - 0.06, 0), style.metal, 10))
        parts.append(cylinder(0.015, 0.25, (x, -depth / 2 + 0.06, 0), style.metal, 10))
    parts.append(box((width, depth, 0.03), (0, 0, top + 0.015), style.sill, 0.006))
    bowl = [(0.0, 0.03), (0.6, 0.03), (0.9, 0.08), (1.0, 0.15), (0.96, 0.15), (0.8, 0.08), (0.4, 0.05), (0.0, 0.045)]
    half = min(0.24, width * 0.36)
    parts.append(_oval(half, 0.17, (0, 0.03), [(r, z + top) for r, z in bowl], white))
    tap = [(0.05, 0.03), (0.05, 0.24), (0.08, 0.27), (0.16, 0.26)]
    parts.append(tube(np.array([(0, -depth / 2 + y, top + z) for y, z in tap]), 0.012, style.metal))
    beside = width / 2 - half
    if beside <= 0.1:
        return Item("washbasin", parts)
    left = -width / 2
    shelf = Shelf(left + 0.01, -depth / 2 + 0.02, left + beside - 0.01, depth / 2 - 0.03, top + 0.03, 0.4)
    return Item("washbasin", parts, [shelf])


def bathtub(rng: np.random.Generator, style: Style) -> Item:
    white = finishes.ceramic(rng)
    length, width, height = rng.uniform(1.55, 1.75), rng.uniform(0.7, 0.78), rng.uniform(0.52, 0.6)
    panel = white if rng.random() < 0.5 else finishes.tiles(rng, floor=False)
    rim, high = 0.06, height - 0.03
    parts = [box((length, 0.02, high), (0, width / 2 - 0.012, high / 2), panel, 0.002)]
    end, x, y, top = length / 2 - 0.012, length / 2 - rim, width / 2 - rim / 2, height - 0.015
    parts += [box((0.02, width - 0.05, high), (way * end, 0, high / 2), panel, 0.002) for way in (-1, 1)]
    parts += [box((length, rim, 0.03), (0, way * y, top), white, 0.012) for way in (-1, 1)]
    parts += [box((rim * 2, width - 2 * rim, 0.03), (way * x, 0, top), white, 0.012) for way in (-1, 1)]
    # The inside: a smooth hollow from rim to bottom.
    turn = np.linspace(0, 2 * np.pi, 33)
    rows = []
    profile = [(1.0, height - 0.01), (0.97, height - 0.1), (0.92, 0.25), (0.8, 0.16), (0.4, 0.14), (0.01, 0.14)]
    for share, low in profile:
        x = np.sign(np.cos(turn)) * np.abs(np.cos(turn)) ** 0.4 * (length / 2 - 2 * rim + 0.004) * share
        y = np.sign(np.sin(turn)) * np.abs(np.sin(turn)) ** 0.4 * (width / 2 - rim + 0.004) * share
        rows.append(np.stack([x, y, np.full(33, low)], -1))
    parts.append(sheet(np.array(rows), white))
    tap = [(0.06, 0.0), (0.06, 0.12), (0.18, 0.13)]
    parts.append(tube(np.array([(-length / 2 + x, 0, height + z) for x, z in tap]), 0.014, style.metal))
    return Item("bathtub", parts)


def shower(rng: np.random.Generator, style: Style) -> Item:
    """A tray with a rail, a head and a frame without glass."""
    side = rng.uniform(0.8, 0.95)
    white = finishes.ceramic(rng)
    parts = [
        box((side, side, 0.05), (0, 0, 0.025), white, 0.012),
        cylinder(0.04, 0.004, (0, 0, 0.051), style.metal, 16),
    ]
    y = -side / 2 + 0.06
    parts.append(rod((0, y, 0.9), (0, y, 2.02), 0.012, style.metal))
    arm = np.array([[0, y, 2.0], [0, y + 0.02, 2.06], [0, y + 0.25, 2.07]])
    parts.append(tube(arm, 0.01, style.metal))
    parts.append(cylinder(0.1, 0.015, (0, y + 0.25, 2.04), style.metal, 20))
    parts.append(box((0.2, 0.05, 0.05), (0, y, 1.05), style.metal, 0.02))
    front = side / 2 - 0.015
    parts += [box((0.025, 0.025, 1.9), (x, front, 1.0), style.metal, 0.003) for x in (-front, front)]
    parts.append(box((side, 0.025, 0.03), (0, front, 1.965), style.metal, 0.003))
    if rng.random() < 0.7:
        # A curtain drawn to one side.
        cloth = fabrics.drape(rng)
        u = np.linspace(0, 1, 40)
        x = -side / 2 + 0.05 + u * side * rng.uniform(0.3, 0.5)
        wave = side / 2 - 0.05 + 0.02 * np.sin(u * 40)
        rows = [np.stack([x, wave, np.full(40, z)], -1) for z in np.linspace(0.1, 1.94, 8)]
        parts.append(sheet(np.array(rows), cloth))
    return Item("shower", parts)


def washing_machine(rng: np.random.Generator, style: Style) -> Item:
    white = finishes.plastic(rng, (0.93, 0.93, 0.93))
    dark = finishes.plastic(rng, (0.06, 0.06, 0.08))
    width, depth, height = 0.6, rng.uniform(0.52, 0.6), 0.85
    parts = [box((width, depth - 0.05, height), (0, -0.025, height / 2), white, 0.012)]
    door = [
        lathe([(0.2, 0), (0.2, 0.025), (0.16, 0.03)], style.metal, segments=28),
        lathe([(0.16, 0.012), (0.1, 0.04), (0, 0.045)], dark, segments=28),
    ]
    parts += moved(door, forward(0, depth / 2 - 0.05, 0.4))
    parts.append(box((width - 0.04, 0.008, 0.1), (0, depth / 2 - 0.047, height - 0.07), dark, 0.002))
    parts.append(cylinder(0.03, 0.02, (0, 0, 0), white, 16).moved(forward(0.1, depth / 2 - 0.045, height - 0.07)))
    return Item("washing machine", parts, [Shelf(-0.27, -depth / 2, 0.27, depth / 2 - 0.06, height, 0.8)])


def towel(rng: np.random.Generator, style: Style) -> Item:
    """A towel over a rail on the wall."""
    width, long = rng.uniform(0.4, 0.65), rng.uniform(0.5, 0.8)
    cloth = fabrics.fabric(rng)
    parts = [rod((-width / 2 - 0.06, 0.07, 0), (width / 2 + 0.06, 0.07, 0), 0.01, style.metal)]
    parts += [rod((x, 0.0, 0), (x, 0.07, 0), 0.008, style.metal) for x in (-width / 2 - 0.05, width / 2 + 0.05)]
    u = np.linspace(-width / 2, width / 2, 12)
    up = [(0.09, -long), (0.088, -0.1), (0.084, -0.01), (0.07, 0.013)]
    down = [(0.056, -0.01), (0.052, -0.1), (0.05, -long * 0.7)]
    rows = [np.stack([u, y + 0.006 * np.sin(u * 25), np.full(12, z)], -1) for y, z in up + down]
    parts.append(sheet(np.array(rows), cloth))
    return Item("towel", parts)
