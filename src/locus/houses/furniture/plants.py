"""Plants in pots, and vases."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from locus.houses import fabrics, finishes
from locus.houses.items import Item
from locus.houses.patterns import any_hue, hsv, near
from locus.houses.solids import ball, cylinder, lathe, linear, sheet, tube
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import merged


def plant(rng: np.random.Generator, style: Style, height: float) -> Item:
    """A pot with broad leaves, sword leaves, a small tree or a fern."""
    pot_r = 0.08 + 0.1 * min(height, 1.4) * rng.uniform(0.8, 1.2)
    pot_h = pot_r * rng.uniform(1.3, 2.0)
    choice = rng.random()
    colour = style.accent(rng) if choice < 0.3 else ((0.93, 0.93, 0.92) if choice < 0.55 else (0.66, 0.4, 0.3))
    pot = fabrics.wicker(rng) if choice > 0.8 else finishes.ceramic(rng, colour)
    soil = finishes.granite(rng)
    profile = [(0, 0), (0.72, 0), (1, 1), (0.92, 1), (0.88, 0.9)]
    parts = [
        lathe([(pot_r * r, pot_h * z) for r, z in profile], pot, segments=24),
        cylinder(pot_r * 0.9, 0.01, (0, 0, pot_h * 0.86), soil, 20, tint=(0.35, 0.25, 0.2)),
    ]
    green = hsv(rng.uniform(0.22, 0.38), rng.uniform(0.4, 0.75), rng.uniform(0.25, 0.55))
    leaf = Material(finishes.painted_wood(rng, green).texture, tile=0.4, roughness=0.6, thin=True)
    bark = finishes.wood(rng, (0.4, 0.3, 0.22))
    form = rng.choice(["broad", "sword", "tree", "fern"])
    crown = height - pot_h
    count = int(rng.integers(14, 26))
    if form == "tree":
        trunk = [(0, 0, pot_h * 0.85), (0.02, 0.01, pot_h + crown * 0.3), (0, 0, pot_h + crown * 0.6)]
        parts.append(tube(np.array(trunk), 0.012 + 0.01 * height, bark))
        count = int(40 + 60 * min(height, 1.5))
    leaves = []
    for k in range(count):
        angle = k * 2.4 + rng.normal(0, 0.3)
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        if form == "sword":
            start, long = np.array([*(way[:2] * pot_r * 0.4), pot_h * 0.86]), crown * rng.uniform(0.6, 1.0)
            wide, lean, droop = 0.04 + 0.02 * height, rng.uniform(0.05, 0.35), 0.1
        elif form == "tree":
            out = rng.uniform(0.05, 0.32) * crown
            start = np.array([*(way[:2] * out), pot_h + crown * (0.55 + 0.4 * rng.random() * (1 - out / crown))])
            long, wide, lean, droop = rng.uniform(0.1, 0.2), 0.07, rng.uniform(0.8, 1.5), 0.3
        else:
            start, long = np.array([*(way[:2] * pot_r * 0.3), pot_h * 0.86]), crown * rng.uniform(0.5, 0.95)
            wide = long * (0.32 if form == "broad" else 0.1)
            lean, droop = rng.uniform(0.2, 1.0), rng.uniform(0.3, 0.9)
        part = sheet(_leaf(start, way, long, wide, lean, droop, stalked=form == "broad"), leaf)
        leaves.append(replace(part, tint=linear(near(rng, (0.9, 0.92, 0.85), 0.15), len(part.vertices))))
    return Item("plant", [*parts, merged(leaves)]).centred()


def _leaf(
    start: np.ndarray, way: np.ndarray, long: float, wide: float, lean: float, droop: float, stalked: bool
) -> Float[np.ndarray, "7 3 3"]:
    """Points of a leaf that rises from `start`, leans outwards along `way` and droops at its tip."""
    t = np.linspace(0, 1, 7)
    bend = lean + droop * t**1.5 * 1.6
    steps = long / 6 * np.stack([np.sin(bend), np.cos(bend)], -1)
    run = np.concatenate([[[0, 0]], np.cumsum(steps[:-1], axis=0)])
    centre = start + run[:, :1] * way + run[:, 1:] * np.array([0, 0, 1.0])
    centre[:, 2] = np.maximum(centre[:, 2], 0.03)
    outline = np.sin(np.pi * np.clip(t, 0.03, 0.99) ** (1.6 if stalked else 0.8)) ** 0.8
    across = np.cross(way, [0, 0, 1.0])
    half = wide / 2 * outline[:, None]
    fold = np.array([0, 0, 0.15]) * half
    return np.stack([centre - across * half + fold, centre, centre + across * half + fold], axis=1)


def small_plant(rng: np.random.Generator, style: Style) -> Item:
    """For a shelf or a table."""
    return plant(rng, style, rng.uniform(0.22, 0.42))


def large_plant(rng: np.random.Generator, style: Style) -> Item:
    """For the floor."""
    return plant(rng, style, rng.uniform(0.6, 1.6))


def vase(rng: np.random.Generator, style: Style) -> Item:
    height, r = rng.uniform(0.16, 0.38), rng.uniform(0.05, 0.1)
    glaze = finishes.ceramic(rng, style.accent(rng)) if rng.random() < 0.7 else finishes.marble(rng)
    z = np.linspace(0, 1, 12)
    wave = 1 + rng.uniform(0.1, 0.4) * np.sin(z * rng.uniform(3, 6) + rng.uniform(0, 3))
    radius = r * wave * (1 - rng.uniform(0.2, 0.6) * z**2)
    profile = [(0.0, 0.0), *((float(a), float(b * height)) for a, b in zip(radius, z, strict=True))]
    profile += [(float(radius[-1]) * 0.85, height), (float(radius[-1]) * 0.8, height * 0.85)]
    parts = [lathe(profile, glaze, segments=24)]
    if rng.random() < 0.6:
        stem = finishes.plastic(rng, (0.25, 0.4, 0.2))
        petal = style.paints[0]
        colour = hsv(any_hue(rng), 0.6, 0.9)
        for _ in range(int(rng.integers(4, 9))):
            angle, lean = rng.uniform(0, 2 * np.pi), rng.uniform(0.02, 0.12)
            tip = np.array([lean * np.cos(angle), lean * np.sin(angle), height + rng.uniform(0.1, 0.28)])
            parts.append(tube(np.array([[0, 0, height * 0.8], tip * [0.5, 0.5, 0.85], tip]), 0.003, stem, 5))
            size, tint = rng.uniform(0.018, 0.035), near(rng, colour, 0.1)
            parts.append(ball(size, tuple(tip), petal, tint=tint, squash=0.7))
    return Item("vase", parts).centred()
