"""Televisions, screens, keyboards, laptops, speakers, radiators, pianos."""

import numpy as np

from locus.houses import finishes, prints
from locus.houses.items import Item, Shelf
from locus.houses.motions import forward, moved, tilt
from locus.houses.patterns import stored
from locus.houses.solids import box, cylinder, panel
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import Surface


def _display(rng: np.random.Generator, width: float, height: float, foot: float, on: float) -> list[Surface]:
    """A flat screen standing upright at y = 0, its face towards +y."""
    black = finishes.plastic(rng, (0.05, 0.05, 0.055))
    parts = [box((width, 0.03, height), (0, 0, foot + height / 2), black, 0.006)]
    face = prints.screen(rng) if rng.random() < on else Material(stored(np.full((4, 4, 3), 0.03)), roughness=0.08)
    edge = 0.012
    corner = (width / 2 - edge, 0.0155, foot + edge)
    parts.append(panel(corner, (-width + 2 * edge, 0, 0), (0, 0, height - 2 * edge), face, fitted=True))
    return parts


def television(rng: np.random.Generator, style: Style) -> Item:
    width = rng.uniform(0.8, 1.35)
    height = width * 0.57
    black = finishes.plastic(rng, (0.06, 0.06, 0.06))
    parts = _display(rng, width, height, 0.06, 0.3)
    for x in (-width * 0.32, width * 0.32):
        parts.append(box((0.03, 0.22, 0.012), (x, 0, 0.006), black, 0.003))
        parts.append(box((0.02, 0.02, 0.06), (x, 0, 0.035), black, 0.003))
    return Item("television", parts).centred()


def computer_screen(rng: np.random.Generator, style: Style) -> Item:
    width = rng.uniform(0.48, 0.7)
    height = width * rng.uniform(0.52, 0.62)
    stand = finishes.plastic(rng, (0.1, 0.1, 0.1)) if rng.random() < 0.6 else finishes.metal(rng)
    parts = _display(rng, width, height, 0.13, 0.75)
    parts += [
        box((0.06, 0.02, 0.22), (0, -0.026, 0.12), stand),
        box((0.24, 0.18, 0.012), (0, 0.0, 0.006), stand, 0.004),
    ]
    return Item("computer screen", parts).centred()


def keyboard(rng: np.random.Generator, style: Style) -> Item:
    width, depth = 0.43, 0.14
    body = finishes.plastic(rng, (0.12, 0.12, 0.12))
    corner = (width / 2 - 0.006, depth / 2 - 0.006, 0.0185)
    keys = panel(corner, (0.012 - width, 0, 0), (0, 0.012 - depth, 0), prints.keyboard(rng), fitted=True)
    return Item("keyboard", [box((width, depth, 0.018), (0, 0, 0.009), body, 0.004), keys])


def laptop(rng: np.random.Generator, style: Style) -> Item:
    body = finishes.metal(rng, (0.6, 0.6, 0.62)) if rng.random() < 0.6 else finishes.plastic(rng, (0.1, 0.1, 0.1))
    keys = panel((0.14, 0.0, 0.0165), (-0.28, 0, 0), (0, -0.1, 0), prints.keyboard(rng), fitted=True)
    parts = [box((0.33, 0.23, 0.016), (0, 0, 0.008), body, 0.004), keys]
    lid = _display(rng, 0.33, 0.21, 0.0, 0.8)
    return Item("laptop", parts + moved(lid, tilt(rng.uniform(0.15, 0.4), -0.115, 0.022))).centred()


def speaker(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(0.16, 0.24), rng.uniform(0.2, 0.28), rng.uniform(0.28, 0.95)
    shell = style.body(rng) if rng.random() < 0.6 else finishes.plastic(rng, (0.08, 0.08, 0.08))
    cone = finishes.plastic(rng, (0.04, 0.04, 0.04))
    parts = [box((width, depth, height), (0, 0, height / 2), shell, 0.006)]
    for share, radius in ((0.85, 0.22), (0.6, 0.36)):
        disc = cylinder(radius * width, 0.006, (0, 0, 0), cone, 20)
        parts.append(disc.moved(forward(0, depth / 2, height * share)))
    return Item("speaker", parts)


def radiator(rng: np.random.Generator, style: Style, width: float) -> Item:
    """Back at y = 0, its foot above the skirting."""
    white = finishes.painted_wood(rng, (0.92, 0.92, 0.9))
    height, count = rng.uniform(0.5, 0.62), max(4, int(width / 0.07))
    parts = []
    for k in range(count):
        x = (k - (count - 1) / 2) * width / count
        parts.append(box((width / count * 0.72, 0.06, height), (x, 0.065, height / 2 + 0.12), white, 0.018, step=0.4))
    parts += [box((width, 0.02, 0.03), (0, 0.065, z), white, 0.004) for z in (0.16, height + 0.08)]
    return Item("radiator", parts)


def piano(rng: np.random.Generator, style: Style) -> Item:
    wood = finishes.plastic(rng, (0.06, 0.06, 0.06)) if rng.random() < 0.5 else style.wood(rng)
    width, height = 1.45, rng.uniform(1.08, 1.22)
    corner = (width / 2 - 0.08, 0.0, 0.7355)
    keys = panel(corner, (0.16 - width, 0, 0), (0, 0.15, 0), prints.keyboard(rng), fitted=True)
    parts = [
        box((width, 0.33, height), (0, -0.165, height / 2), wood, 0.01),
        box((width, 0.26, 0.1), (0, 0.13, 0.685), wood, 0.01),
        keys,
        box((width + 0.03, 0.37, 0.025), (0, -0.155, height + 0.0125), wood, 0.006),
    ]
    for x in (-width / 2 + 0.05, width / 2 - 0.05):
        parts.append(box((0.07, 0.07, 0.635), (x, 0.2, 0.3175), wood, 0.01))
        parts.append(box((0.08, 0.26, 0.07), (x, 0.13, 0.77), wood, 0.01))
    top = Shelf(-width / 2 + 0.05, -0.32, width / 2 - 0.05, 0.0, height + 0.025, 0.8)
    return Item("piano", parts, [top]).centred()
