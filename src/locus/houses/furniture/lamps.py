"""Lamps: on the floor, on tables, on the ceiling. Each is lit with the chance `lamps_on` when it is made."""

import numpy as np

from locus.houses import finishes
from locus.houses.items import Item
from locus.houses.patterns import hsv, shaded
from locus.houses.solids import ball, cylinder, lathe, rod, tube
from locus.houses.style import Style
from locus.render.lights import Lamp
from locus.render.surfaces import Surface

WARM = (1.0, 0.80, 0.55)


def _shade(
    rng: np.random.Generator, style: Style, low: float, high: float, height: float, z: float, on: bool
) -> list[Surface]:
    """A lampshade: an outer and an inner face, glowing when lit."""
    cream = rng.random() < 0.7
    colour = hsv(rng.uniform(0.08, 0.14), rng.uniform(0.03, 0.25), 0.93) if cream else style.accent(rng)
    glow = finishes.glowing(shaded(colour, 0.95), rng.uniform(0.9, 1.5)) if on else finishes.plastic(rng, colour)
    profile = [(low, 0.0), (low * 0.5 + high * 0.5, height / 2), (high, height)]
    inside = [(r - 0.004, h) for r, h in profile[::-1]]
    return [lathe(profile, glow, (0, 0, z), 24), lathe(inside, glow, (0, 0, z), 24)]


def _light(position: tuple[float, float, float], radius: float, strength: float, on: bool) -> list[Lamp]:
    if not on:
        return []
    r, g, b = (float(strength * c) for c in WARM)
    return [Lamp(position, radius, (r, g, b))]


def floor_lamp(rng: np.random.Generator, style: Style, lamps_on: float) -> Item:
    on = rng.random() < lamps_on
    height = rng.uniform(1.4, 1.75)
    radius = rng.uniform(0.15, 0.24)
    parts: list[Surface] = []
    if rng.random() < 0.3:
        for angle in 2 * np.pi * np.arange(3) / 3:
            foot = (0.25 * np.cos(angle), 0.25 * np.sin(angle), 0)
            parts.append(rod(foot, (0, 0, height - 0.3), 0.014, style.wood(rng)))
    else:
        parts.append(cylinder(rng.uniform(0.12, 0.17), 0.025, (0, 0, 0), style.metal, 24))
        parts.append(rod((0, 0, 0.02), (0, 0, height - 0.1), 0.012, style.metal))
    shade = _shade(rng, style, radius, radius * rng.uniform(0.6, 0.95), 0.28, height - 0.28, on)
    lamps = _light((0.0, 0.0, height - 0.14), 0.26, rng.uniform(0.5, 0.9), on)
    return Item("floor lamp", parts + shade, [], lamps)


def table_lamp(rng: np.random.Generator, style: Style, lamps_on: float) -> Item:
    on = rng.random() < lamps_on
    height = rng.uniform(0.34, 0.52)
    glaze = finishes.ceramic(rng, style.accent(rng)) if rng.random() < 0.6 else style.wood(rng)
    r = rng.uniform(0.05, 0.09)
    body = [(0, 0), (r, 0), (r * rng.uniform(0.8, 1.3), height * 0.2), (r * 0.4, height * 0.45)]
    body += [(0.012, height * 0.5), (0.012, height * 0.7)]
    radius = rng.uniform(0.11, 0.16)
    shade = _shade(rng, style, radius, radius * rng.uniform(0.55, 0.9), height * 0.42, height * 0.58, on)
    lamps = _light((0.0, 0.0, height * 0.8), 0.17, rng.uniform(0.2, 0.4), on)
    return Item("table lamp", [lathe(body, glaze), *shade], [], lamps)


def desk_lamp(rng: np.random.Generator, style: Style, lamps_on: float) -> Item:
    on = rng.random() < lamps_on
    colour = finishes.plastic(rng, style.accent(rng)) if rng.random() < 0.6 else style.metal
    elbow, tip = np.array([0.0, -0.08, 0.3]), np.array([0.0, 0.12, 0.44])
    parts = [
        cylinder(0.085, 0.02, (0, 0, 0), colour, 20),
        tube(np.array([[0, 0, 0.02], elbow]), 0.008, colour),
        tube(np.array([elbow, tip]), 0.008, colour),
    ]
    parts.append(lathe([(0.075, -0.07), (0.06, -0.01), (0.02, 0.02), (0.0, 0.022)], colour, (0, 0.12, 0.44), 18))
    bulb = finishes.glowing((1.0, 0.9, 0.75), 1.6 if on else 0.5)
    parts.append(ball(0.03, (0, 0.12, 0.39), bulb))
    return Item("table lamp", parts, [], _light((0.0, 0.12, 0.39), 0.1, 0.25, on)).centred()


def ceiling_lamp(rng: np.random.Generator, style: Style, lamps_on: float, drop: float) -> Item:
    """Hangs from z = 0 downwards by about `drop` (close to the ceiling if that is small)."""
    on = rng.random() < lamps_on
    strength = rng.uniform(0.9, 1.7)
    if drop < 0.25:
        radius = rng.uniform(0.16, 0.26)
        colour = finishes.glowing((1.0, 0.96, 0.88), 1.5 if on else 0.4)
        parts = [lathe([(0, -0.1), (radius * 0.6, -0.09), (radius, -0.03), (radius, -0.004)], colour, segments=28)]
        return Item("ceiling lamp", parts, [], _light((0.0, 0.0, -0.25), 0.22, strength, on))
    parts = [
        rod((0, 0, -drop + 0.1), (0, 0, -0.012), 0.006, style.metal),
        cylinder(0.05, 0.02, (0, 0, -0.022), style.metal, 18),
    ]
    form = rng.choice(["shade", "globe", "dome", "cluster"])
    radius = rng.uniform(0.15, 0.26)
    if form == "shade":
        parts += _shade(rng, style, radius, radius * 0.7, 0.2, -drop, on)
    elif form == "globe":
        parts.append(ball(radius * 0.7, (0, 0, -drop + 0.05), finishes.glowing((1.0, 0.95, 0.85), 1.4 if on else 0.4)))
    elif form == "dome":
        metal = finishes.plastic(rng, style.accent(rng)) if rng.random() < 0.5 else style.metal
        glow = finishes.glowing((1.0, 0.95, 0.85), 1.1 if on else 0.3)
        outer = [(1, 0), (0.85, 0.1), (0.4, 0.17), (0, 0.19)]
        inner = [(0, 0.185), (0.39, 0.165), (0.84, 0.095), (0.99, 0.0)]
        for profile, material in ((outer, metal), (inner, glow)):
            parts.append(lathe([(radius * r, z) for r, z in profile], material, (0, 0, -drop), 28))
    else:
        bulb = finishes.glowing((1.0, 0.93, 0.8), 1.5 if on else 0.4)
        for angle in 2 * np.pi * np.arange(5) / 5:
            x, y = 0.24 * np.cos(angle), 0.24 * np.sin(angle)
            parts.append(rod((0, 0, -drop + 0.12), (x, y, -drop + 0.08), 0.008, style.metal))
            parts.append(ball(0.05, (x, y, -drop + 0.06), bulb))
    return Item("ceiling lamp", parts, [], _light((0.0, 0.0, -drop), 0.3, strength, on))
