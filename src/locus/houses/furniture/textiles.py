"""Rugs, curtains, blinds, loose cushions."""

import numpy as np

from locus.houses import fabrics
from locus.houses.items import Item
from locus.houses.motions import tilt
from locus.houses.solids import ball, box, cushion, cylinder, panel, rod, sheet
from locus.houses.style import Style


def rug(rng: np.random.Generator, style: Style, width: float, depth: float) -> Item:
    thick = rng.uniform(0.008, 0.016)
    material = fabrics.rug(rng)
    if rng.random() < 0.2 and abs(width - depth) < 0.5:
        radius = min(width, depth) / 2
        part = cylinder(radius, thick, (0, 0, 0.001), material, 40)
        part.uvs[:] = part.vertices[:, :2] / (2 * radius) + 0.5
        return Item("rug", [part])
    part = box((width, depth, thick), (0, 0, thick / 2 + 0.001), material, 0.004, step=0.15)
    part.uvs[:] = part.vertices[:, :2] / np.array([width, depth], np.float32) + 0.5
    return Item("rug", [part])


def curtains(rng: np.random.Generator, style: Style, width: float, foot: float, top: float) -> Item:
    """A rod with a cloth gathered at either side of a window; back at y = 0."""
    cloth = fabrics.sheer(rng) if rng.random() < 0.35 else fabrics.drape(rng)
    away = 0.11
    parts = [rod((-width / 2, away, top + 0.03), (width / 2, away, top + 0.03), 0.012, style.metal)]
    for x in (-width / 2, width / 2):
        parts.append(ball(0.022, (x, away, top + 0.03), style.metal))
        parts.append(rod((x * 0.97, 0, top + 0.03), (x * 0.97, away, top + 0.03), 0.008, style.metal))
    span = rng.uniform(0.12, 0.26) * width
    waves = max(3, int(span / 0.09))
    for side in (-1, 1):
        u = np.linspace(0, 1, waves * 8)
        outer, inner = side * (width / 2 - 0.03), side * (width / 2 - 0.03 - span)
        x = np.minimum(outer, inner) + u * span
        rows = []
        for z in np.linspace(foot, top + 0.02, 10):
            hang = (top - z) / max(top - foot, 0.1)
            fold = (0.014 + 0.010 * hang) * np.sin(2 * np.pi * waves * u + 0.3 * np.sin(3 * hang + side))
            rows.append(np.stack([x + 0.01 * np.sin(5 * hang), away + fold, np.full_like(u, z)], -1))
        parts.append(sheet(np.array(rows)[:, ::-1], cloth))
    return Item("curtain", parts)


def blind(rng: np.random.Generator, style: Style, width: float, height: float, drawn: float) -> Item:
    """A roller blind, drawn down by a share of the window; top at z = 0, back at y = 0."""
    cloth = fabrics.sheer(rng) if rng.random() < 0.5 else fabrics.drape(rng)
    long = height * drawn
    parts = [rod((-width / 2, 0.04, 0), (width / 2, 0.04, 0), 0.025, style.metal)]
    parts.append(panel((width / 2, 0.066, -long), (-width, 0, 0), (0, 0, long), cloth, step=0.15))
    parts.append(box((width, 0.015, 0.025), (0, 0.066, -long - 0.012), style.trim, 0.004))
    return Item("curtain", parts)


def cushion_loose(rng: np.random.Generator, style: Style) -> Item:
    side = rng.uniform(0.36, 0.48)
    cloth = style.cloth(rng) if rng.random() < 0.3 else fabrics.fabric(rng)
    part = cushion((side, 0.13, side), (0, 0, side / 2), cloth, bulge=0.5)
    return Item("cushion", [part.moved(tilt(rng.uniform(0.2, 0.35), 0, 0.03))]).centred()
