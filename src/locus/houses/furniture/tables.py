"""Dining, coffee, side and console tables, desks, nightstands."""

import numpy as np

from locus.houses import finishes
from locus.houses.furniture.storage import drawers
from locus.houses.items import Item, Shelf
from locus.houses.motions import moved, shift
from locus.houses.solids import box, corners, cylinder, lathe, rod
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import Surface


def _top(rng: np.random.Generator, style: Style) -> Material:
    choice = rng.random()
    if choice < 0.1:
        return finishes.marble(rng)
    return style.wood(rng) if choice < 0.75 else style.body(rng)


def _support(
    rng: np.random.Generator, style: Style, width: float, depth: float, height: float, top: Material
) -> list[Surface]:
    """What carries a table top: square, round or splayed legs, trestles, or a frame of metal."""
    material = top if rng.random() < 0.6 else (style.metal if rng.random() < 0.6 else style.wood(rng))
    form = rng.choice(["square", "round", "splayed", "frame", "panel"])
    inset = rng.uniform(0.03, 0.09)
    thick = rng.uniform(0.04, 0.085) if width > 1.0 else rng.uniform(0.03, 0.05)
    half_x, half_y = width / 2 - inset - thick / 2, depth / 2 - inset - thick / 2
    inner = width - 2 * inset - 2 * thick
    feet = corners(half_x, half_y)
    parts = []
    if form == "square":
        parts += [box((thick, thick, height), (x, y, height / 2), material) for x, y in feet]
        apron = 0.08 if width > 0.8 else 0.04
        z, deep = height - apron / 2, depth - 2 * inset - 2 * thick
        parts += [box((inner, 0.02, apron), (0, y, z), material) for y in (-half_y, half_y)]
        parts += [box((0.02, deep, apron), (x, 0, z), material) for x in (-half_x, half_x)]
    elif form == "round":
        profile = [(thick * 0.28, 0), (thick * 0.4, height * 0.3), (thick * 0.55, height * 0.7), (thick * 0.5, height)]
        parts += [lathe(profile, material, (x, y, 0), 12) for x, y in feet]
    elif form == "splayed":
        parts += [rod((x, y, 0), (x * 0.8, y * 0.8, height), thick * 0.35, material) for x, y in feet]
    elif form == "frame":
        bar = 0.035
        for x in (-half_x, half_x):
            for y in (-half_y, half_y):
                parts.append(box((bar, bar, height - bar), (x, y, (height + bar) / 2), material, 0.003))
            parts.append(box((bar, 2 * half_y + bar, bar), (x, 0, bar / 2), material, 0.003))
        parts.append(box((inner, bar, bar), (0, 0, height - bar / 2), material, 0.003))
    else:
        for x in (-width / 2 + inset + 0.02, width / 2 - inset - 0.02):
            parts.append(box((0.035, depth - 2 * inset, height), (x, 0, height / 2), material))
        parts.append(box((width - 2 * inset - 0.08, 0.025, 0.12), (0, 0, height - 0.12), material))
    return parts


def _pedestal(rng: np.random.Generator, radius: float, height: float, material: Material) -> list[Surface]:
    foot = radius * rng.uniform(0.5, 0.62)
    stem = rng.uniform(0.03, 0.07)
    profile = [(foot, 0), (foot, 0.02), (foot * 0.5, 0.05), (stem, 0.14)]
    profile += [(stem * 0.8, height * 0.6), (stem * 1.3, height - 0.03), (radius * 0.4, height)]
    return [lathe(profile, material, segments=24)]


def table(
    rng: np.random.Generator, style: Style, kind: str, width: float, depth: float, height: float, round_top: bool
) -> Item:
    """Any table: a top on something that carries it."""
    top = _top(rng, style)
    thick = rng.uniform(0.02, 0.045)
    if round_top:
        radius = width / 2
        parts = [cylinder(radius, thick, (0, 0, height - thick), top, 32)]
        if radius > 0.3 or rng.random() < 0.5:
            parts += _pedestal(rng, radius, height - thick, style.metal if rng.random() < 0.3 else style.wood(rng))
        else:
            for angle in (0.5, 2.6, 4.7):
                x, y = np.cos(angle), np.sin(angle)
                foot = (0.8 * radius * x, 0.8 * radius * y, 0)
                parts.append(rod(foot, (0.5 * radius * x, 0.5 * radius * y, height - thick), 0.014, style.wood(rng)))
        reach = radius * 0.68
        return Item(kind, parts, [Shelf(-reach, -reach, reach, reach, height, 1.2)]).centred()
    parts = [box((width, depth, thick), (0, 0, height - thick / 2), top, bevel=rng.uniform(0.003, 0.012))]
    parts += _support(rng, style, width, depth, height - thick, top)
    return Item(kind, parts, [Shelf.on_top(width, depth, height, 1.2, inset=0.03)]).centred()


def dining_table(rng: np.random.Generator, style: Style, seats: int) -> Item:
    if seats <= 4 and rng.random() < 0.35:
        size = rng.uniform(0.95, 1.2)
        return table(rng, style, "dining table", size, size, rng.uniform(0.73, 0.77), True)
    width = {2: rng.uniform(0.75, 0.95), 4: rng.uniform(1.2, 1.5), 6: rng.uniform(1.6, 2.0)}[seats]
    return table(rng, style, "dining table", width, rng.uniform(0.75, 0.98), rng.uniform(0.73, 0.77), False)


def coffee_table(rng: np.random.Generator, style: Style) -> Item:
    height = rng.uniform(0.34, 0.46)
    if rng.random() < 0.35:
        size = rng.uniform(0.65, 0.9)
        return table(rng, style, "coffee table", size, size, height, True)
    return table(rng, style, "coffee table", rng.uniform(0.85, 1.25), rng.uniform(0.45, 0.65), height, False)


def side_table(rng: np.random.Generator, style: Style) -> Item:
    size = rng.uniform(0.38, 0.5)
    return table(rng, style, "side table", size, size, rng.uniform(0.45, 0.6), rng.random() < 0.6)


def console_table(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(0.8, 1.2), rng.uniform(0.28, 0.36), rng.uniform(0.75, 0.86)
    return table(rng, style, "console table", width, depth, height, False)


def desk(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(1.15, 1.6), rng.uniform(0.6, 0.75), rng.uniform(0.72, 0.76)
    if rng.random() < 0.5:
        return table(rng, style, "desk", width, depth, height, False)
    wood = style.body(rng)
    parts = [box((width, depth, 0.03), (0, 0, height - 0.015), wood)]
    side = rng.choice([-1, 1])
    chest = drawers(rng, style, (0.4, depth - 0.06, height - 0.03), int(rng.integers(2, 5)), 1, wood)
    parts += moved(chest, shift(side * (width - 0.4) / 2 - side * 0.01, 0, 0))
    parts.append(box((0.03, depth - 0.06, height - 0.03), (-side * (width / 2 - 0.03), 0, (height - 0.03) / 2), wood))
    return Item("desk", parts, [Shelf.on_top(width, depth, height, 1.0, inset=0.03)])


def nightstand(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(0.38, 0.52), rng.uniform(0.34, 0.42), rng.uniform(0.42, 0.58)
    leg = rng.choice([0.0, 0.12])
    wood = style.body(rng)
    chest = drawers(rng, style, (width, depth, height - leg), int(rng.integers(1, 3)), 1, wood)
    parts = moved(chest, shift(0, 0, leg))
    if leg:
        feet = corners(width / 2 - 0.04, depth / 2 - 0.04)
        parts += [cylinder(0.018, leg, (x, y, 0), style.wood(rng), 10) for x, y in feet]
    return Item("nightstand", parts, [Shelf.on_top(width, depth, height, 1.0, inset=0.02)])
