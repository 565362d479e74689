"""Wardrobes, chests, sideboards, bookshelves with their books, racks."""

from itertools import pairwise

import numpy as np

from locus.houses import prints
from locus.houses.items import Item, Shelf
from locus.houses.motions import moved, shift
from locus.houses.prints import SPINES
from locus.houses.solids import ball, box, cylinder, rod
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import Surface


def _handle(style: Style, form: str, x: float, y: float, z: float, upright: bool) -> list[Surface]:
    if form == "knob":
        return [ball(0.014, (x, y + 0.014, z), style.metal)]
    if form == "none":
        return []
    size = (0.012, 0.012, 0.14) if upright else (0.14, 0.012, 0.012)
    parts = [box(size, (x, y + 0.026, z), style.metal, 0.003)]
    for end in (-0.05, 0.05):
        at = (x, y + 0.012, z + end) if upright else (x + end, y + 0.012, z)
        parts.append(box((0.01, 0.024, 0.01), at, style.metal, 0.0))
    return parts


def drawers(
    rng: np.random.Generator,
    style: Style,
    size: tuple[float, float, float],
    rows: int,
    columns: int,
    body: Material,
    front: Material | None = None,
) -> list[Surface]:
    """A chest: a body with a grid of drawer fronts, a little proud of it, with gaps and handles."""
    width, depth, height = size
    form = str(rng.choice(["knob", "bar", "none"]))
    parts = [box((width, depth - 0.018, height), (0, -0.009, height / 2), body, 0.004)]
    gap, margin = 0.006, 0.015
    wide, high = (width - 2 * margin) / columns, (height - 2 * margin) / rows
    for row in range(rows):
        for column in range(columns):
            x, z = (column - (columns - 1) / 2) * wide, margin + (row + 0.5) * high
            parts.append(box((wide - gap, 0.018, high - gap), (x, depth / 2 - 0.009, z), front or body, 0.003))
            parts += _handle(style, form, x, depth / 2, z + high * 0.15, upright=False)
    return parts


def _doors(
    rng: np.random.Generator,
    style: Style,
    width: float,
    height: float,
    foot: float,
    y: float,
    count: int,
    front: Material,
    panelled: bool,
) -> list[Surface]:
    """Cabinet doors side by side, their face at y."""
    form = str(rng.choice(["knob", "bar", "bar"]))
    parts = []
    wide = width / count
    for k in range(count):
        x = (k - (count - 1) / 2) * wide
        parts.append(box((wide - 0.006, 0.018, height - 0.006), (x, y - 0.009, foot + height / 2), front, 0.003))
        if panelled:
            parts.append(box((wide - 0.14, 0.008, height - 0.14), (x, y + 0.002, foot + height / 2), front, 0.003))
        edge = 1 if k % 2 == 0 else -1
        parts += _handle(style, form, x + edge * (wide / 2 - 0.045), y, foot + height * 0.5, upright=True)
    return parts


def chest_of_drawers(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(0.75, 1.2), rng.uniform(0.4, 0.5), rng.uniform(0.7, 1.05)
    columns = 2 if width > 1.0 else 1
    rows = int(rng.integers(3, 6))
    parts = drawers(rng, style, (width, depth, height), rows, columns, style.body(rng), style.body(rng))
    return Item("chest of drawers", parts, [Shelf.on_top(width, depth, height, 1.2)])


def wardrobe(rng: np.random.Generator, style: Style) -> Item:
    count = int(rng.integers(2, 5))
    width, depth, height = count * rng.uniform(0.45, 0.58), rng.uniform(0.55, 0.62), rng.uniform(1.95, 2.2)
    body, front = style.body(rng), style.body(rng)
    parts = [box((width, depth - 0.018, height), (0, -0.009, height / 2), body, 0.004)]
    low = 0.06
    if rng.random() < 0.4:
        low = 0.4
        chest = drawers(rng, style, (width - 0.01, depth, low - 0.06), 1, max(1, count // 2), body, front)
        parts += moved(chest, shift(0, 0, 0.05))
    panelled = rng.random() < 0.5
    parts += _doors(rng, style, width - 0.02, height - low - 0.03, low, depth / 2, count, front, panelled)
    top = Shelf(-width / 2 + 0.05, -depth / 2, width / 2 - 0.05, depth / 2 - 0.05, height, 0.5)
    return Item("wardrobe", parts, [top])


def sideboard(rng: np.random.Generator, style: Style, kind: str = "sideboard") -> Item:
    television = kind == "tv stand"
    width, depth = rng.uniform(1.2, 1.8), rng.uniform(0.38, 0.46)
    height = rng.uniform(0.38, 0.52) if television else rng.uniform(0.72, 0.9)
    leg = float(rng.choice([0.0, 0.14]))
    body, front = style.body(rng), style.body(rng)
    parts = [box((width, depth - 0.018, height - leg), (0, -0.009, (height + leg) / 2), body, 0.004)]
    count, panelled = int(rng.integers(2, 5)), rng.random() < 0.4
    high = height - leg - 0.03
    parts += _doors(rng, style, width - 0.02, high, leg + 0.015, depth / 2, count, front, panelled)
    if leg:
        for x in (-width / 2 + 0.1, width / 2 - 0.1):
            for y in (-depth / 2 + 0.06, depth / 2 - 0.08):
                parts.append(cylinder(0.016, leg, (x, y, 0), style.metal, 10, top_radius=0.022))
    return Item(kind, parts, [Shelf(-width / 2, -depth / 2, width / 2, depth / 2 - 0.02, height, 1.2)])


def books_in_row(
    rng: np.random.Generator, spines: Material, x0: float, x1: float, y: float, z: float, height: float, depth: float
) -> list[Surface]:
    """Books standing side by side, spines towards +y at about y, as one part each."""
    parts = []
    x = x0
    while True:
        thick = rng.uniform(0.014, 0.045)
        if x + thick > x1:
            return parts
        high = min(rng.uniform(0.17, 0.3), height - 0.012)
        deep = min(rng.uniform(0.12, 0.2), depth)
        centre = (x + thick / 2, y - deep / 2 - rng.uniform(0, 0.02), z + high / 2)
        parts.append(_book(rng, spines, (thick - 0.001, deep, high), centre))
        x += thick
        if rng.random() < 0.04:
            x += rng.uniform(0.02, 0.1)


def _book(
    rng: np.random.Generator, spines: Material, size: tuple[float, float, float], centre: tuple[float, float, float]
) -> Surface:
    """A box whose texture is one of the sixteen spines, fitted on its face towards ±y and cut from it elsewhere."""
    part = box(size, centre, spines, bevel=0.0, step=9.0)
    local = (part.vertices - np.array(centre, np.float32)) / np.array(size, np.float32) + 0.5
    number = int(rng.integers(SPINES))
    spine = np.abs(part.normals[:, 1]) > 0.5
    u = np.where(spine, local[:, 0] * 0.9 + 0.05, 0.2 + 0.1 * local[:, 1])
    part.uvs[:, 0] = (number + u) / SPINES
    part.uvs[:, 1] = np.where(np.abs(part.normals[:, 2]) > 0.5, 0.12, local[:, 2])
    return part


def bookshelf(rng: np.random.Generator, style: Style) -> Item:
    """Open shelves, with or without a back, filled with books standing, lying and leaving gaps for other things."""
    width, depth, height = rng.uniform(0.6, 1.2), rng.uniform(0.26, 0.34), rng.uniform(1.0, 2.1)
    wood = style.body(rng)
    board = 0.022
    levels = max(3, int(height / rng.uniform(0.32, 0.4)))
    parts = [box((board, depth, height), (side * (width - board) / 2, 0, height / 2), wood, 0.003) for side in (-1, 1)]
    heights = [0.06 + (height - 0.06 - board) * k / (levels - 1) for k in range(levels)]
    parts += [box((width - 2 * board, depth - 0.005, board), (0, 0, z + board / 2), wood, 0.003) for z in heights]
    parts.append(box((width - 2 * board, 0.008, height - 0.07), (0, -depth / 2 + 0.004, height / 2 + 0.03), wood, 0.0))
    spines = prints.book_spines(rng)
    shelves = []
    inner = width / 2 - board - 0.008
    for z, above in pairwise(heights):
        foot, room = z + board + 0.001, above - z - board
        split = -inner + 2 * inner * float(rng.choice([1.0, 1.0, 0.65, 0.4, 0.0]))
        parts += books_in_row(rng, spines, -inner, split, depth / 2 - 0.03, foot, room, depth - 0.06)
        if split < inner - 0.15:
            shelves.append(Shelf(split + 0.03, -depth / 2 + 0.03, inner, depth / 2 - 0.03, foot, room - 0.01))
    return Item("bookshelf", parts, [*shelves, Shelf.on_top(2 * inner, depth, height, 0.6)])


def wall_shelf(rng: np.random.Generator, style: Style) -> Item:
    width, depth = rng.uniform(0.6, 1.1), rng.uniform(0.18, 0.24)
    parts = [box((width, depth, 0.025), (0, depth / 2, 0.0125), style.wood(rng), 0.003)]
    x, y = width * 0.35, depth * 0.35
    parts += [box((0.02, depth * 0.7, 0.02), (way * x, y, -0.011), style.metal, 0.002) for way in (-1, 1)]
    spines, end = prints.book_spines(rng), rng.uniform(-0.1, 0.3) * width
    parts += books_in_row(rng, spines, -width / 2 + 0.02, end, depth - 0.02, 0.026, 0.3, depth - 0.03)
    return Item("wall shelf", parts, [Shelf(width * 0.32, 0.03, width / 2 - 0.02, depth - 0.02, 0.026, 0.4)])


def shoe_rack(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(0.6, 0.9), 0.3, rng.uniform(0.4, 0.55)
    wood = style.body(rng)
    parts = [box((0.02, depth, height), (s * (width / 2 - 0.01), 0, height / 2), wood, 0.003) for s in (-1, 1)]
    boards = (0.1, height * 0.5, height - 0.012)
    parts += [box((width - 0.04, depth - 0.01, 0.02), (0, 0, z), wood, 0.003) for z in boards]
    for z in (0.112, height * 0.5 + 0.012):
        for middle in np.arange(-width / 2 + 0.12, width / 2 - 0.12, 0.26):
            red, green, blue = (float(c) for c in rng.uniform(0.05, 0.6, 3))
            for x in (middle - 0.05, middle + 0.05):
                for size, centre in (
                    ((0.085, 0.25, 0.045), (x, 0.0, z + 0.0235)),
                    ((0.075, 0.12, 0.05), (x, -0.06, z + 0.06)),
                ):
                    parts.append(box(size, centre, style.paints[0], 0.02, tint=(red, green, blue)))
    return Item("shoe rack", parts, [Shelf.on_top(width, depth, height, 0.8)])


def coat_rack(rng: np.random.Generator, style: Style) -> Item:
    """A board with hooks and coats on some of them; hangs on the wall."""
    width = rng.uniform(0.6, 1.0)
    parts = [box((width, 0.02, 0.1), (0, 0.011, 0.0), style.wood(rng), 0.003)]
    for x in np.linspace(-width / 2 + 0.1, width / 2 - 0.1, int(rng.integers(3, 6))):
        parts.append(rod((x, 0.02, 0.0), (x, 0.08, 0.03), 0.008, style.metal))
        if rng.random() < 0.65:
            cloth, long, half = style.cloth(rng), rng.uniform(0.6, 1.05), rng.uniform(0.055, 0.075)
            parts.append(box((half * 2, 0.1, long), (x, 0.1, -long / 2 - 0.02), cloth, 0.045, step=0.2))
    return Item("coat rack", parts)
