"""Beds, made with mattress, blanket and pillows."""

import numpy as np

from locus.houses import fabrics
from locus.houses.items import Item, Shelf
from locus.houses.patterns import any_hue, hsv
from locus.houses.solids import box, cushion, sheet
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import Surface


def bed(rng: np.random.Generator, style: Style, single: bool) -> Item:
    width = rng.uniform(0.92, 1.1) if single else rng.uniform(1.45, 1.85)
    length = rng.uniform(2.0, 2.12)
    frame_top, mattress = rng.uniform(0.26, 0.36), rng.uniform(0.16, 0.24)
    wood = style.cloth(rng) if rng.random() < 0.3 else style.body(rng)
    head = rng.uniform(0.75, 1.2)
    parts = [box((width, length - 0.06, 0.16), (0, 0.03, frame_top - 0.08), wood, 0.01)]
    parts.append(box((width + 0.06, 0.06, head - 0.02), (0, -length / 2 + 0.03, head / 2 + 0.01), wood, 0.015))
    parts += [
        box((0.06, 0.06, frame_top - 0.16), (x, y, (frame_top - 0.16) / 2), wood)
        for x in (-width / 2 + 0.06, width / 2 - 0.06)
        for y in (-length / 2 + 0.14, length / 2 - 0.07)
    ]
    linen = fabrics.fabric(rng, hsv(any_hue(rng), rng.uniform(0, 0.1), rng.uniform(0.85, 0.96)), plain=True)
    top = frame_top + mattress
    size = (width - 0.06, length - 0.14, mattress)
    parts.append(box(size, (0, 0.01, frame_top + mattress / 2), linen, 0.05, step=0.2))
    duvet = style.cloth(rng)
    reach = length * rng.uniform(0.6, 0.78)
    parts.append(_blanket(rng, duvet, width + 0.05, reach, length / 2 - reach / 2 + 0.01, top, frame_top - 0.06))
    pillows = fabrics.fabric(rng) if rng.random() < 0.5 else linen
    count = 1 if single else 2
    for k in range(count):
        x = (k - (count - 1) / 2) * width / 2 * 0.95
        size = (min(0.68, width / count * 0.86), 0.42, 0.15)
        parts.append(cushion(size, (x, -length / 2 + 0.31, top + 0.082), pillows))
    shelf = Shelf(-width / 2 + 0.1, -0.1, width / 2 - 0.1, length / 2 - 0.1, top + 0.062, 1.2)
    return Item("bed", parts, [shelf])


def _blanket(
    rng: np.random.Generator, cloth: Material, width: float, length: float, y: float, top: float, hem: float
) -> Surface:
    """Cloth that lies on the mattress with a few folds and hangs down at both sides and the foot."""
    across = np.concatenate([[-1, -0.99, -0.97], np.linspace(-0.93, 0.93, 15), [0.97, 0.99, 1]])
    along = np.concatenate([np.linspace(-1, 0.92, 15), [0.97, 0.99, 1]])
    u, v = np.meshgrid(across, along)
    hang = top - hem
    side = np.clip((np.abs(u) - 0.95) / 0.05, 0, 1)
    foot = np.clip((v - 0.95) / 0.05, 0, 1)
    height = top + 0.05 - np.maximum(side, foot) * hang
    folds = 0.012 * np.sin(u * 7 + rng.uniform(0, 6) + 2 * v) + 0.01 * np.sin(v * 9 + rng.uniform(0, 6) + 3 * u)
    height = height + folds * (1 - np.maximum(side, foot))
    x = u * width / 2 + 0.012 * np.sin(v * 14) * side * np.sign(u)
    return sheet(np.stack([x, y + v * length / 2, height], -1), cloth)
