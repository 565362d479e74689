"""Toys."""

import numpy as np

from locus.houses import fabrics, finishes
from locus.houses.items import Item
from locus.houses.motions import forward
from locus.houses.patterns import hsv
from locus.houses.solids import ball, box, corners, cylinder, lathe
from locus.houses.style import Style


def toy(rng: np.random.Generator, style: Style) -> Item:
    """Building blocks, a ball, a bear, a car or stacking rings."""
    form = rng.choice(["blocks", "ball", "bear", "car", "rings"])
    paint = style.paints[0]
    if form == "ball":
        radius, colour = rng.uniform(0.07, 0.13), hsv(rng.random(), 0.7, 0.85)
        return Item("toy", [ball(radius, (0, 0, 0), fabrics.fabric(rng, colour, plain=False))]).centred()
    if form == "blocks":
        blocks = []
        for k in range(int(rng.integers(4, 9))):
            side = rng.uniform(0.04, 0.07)
            x, y = (rng.uniform(-0.16, 0.16), rng.uniform(-0.16, 0.16)) if k else (0.0, 0.0)
            blocks.append((side, x, y))
        parts, taken = [], []
        for side, x, y in blocks:
            if all(abs(x - a) > (side + s) / 2 or abs(y - b) > (side + s) / 2 for s, a, b in taken):
                taken.append((side, x, y))
                tint = hsv(rng.random(), 0.75, 0.85)
                parts.append(box((side, side, side), (x, y, side / 2), paint, 0.004, tint=tint))
        return Item("toy", parts).centred()
    if form == "bear":
        fur = finishes.carpet(rng)
        size = rng.uniform(0.8, 1.4)
        tint = hsv(rng.uniform(0.05, 0.1), 0.4, rng.uniform(0.6, 0.95))
        body = [(0, 0, 0.11, 0.1), (0, 0.02, 0.25, 0.075)]  # and head: x, y, z and radius
        ears, feet = [(x, 0, 0.31, 0.03) for x in (-0.06, 0.06)], [(x, 0.1, 0.045, 0.045) for x in (-0.07, 0.07)]
        hands, snout = [(x, 0.03, 0.15, 0.04) for x in (-0.11, 0.11)], [(0, 0.09, 0.24, 0.03)]
        balls = np.array(body + ears + feet + hands + snout) * size
        parts = [ball(r, (x, y, z), fur, tint=tint) for x, y, z, r in balls]
        for x, y, z, r in np.array([(way * 0.028, 0.09, 0.275, 0.01) for way in (-1, 1)]) * size:
            parts.append(ball(r, (x, y, z), style.paints[2], tint=(0.2, 0.2, 0.2)))
        return Item("toy", parts).centred()
    if form == "car":
        tint = hsv(rng.random(), 0.8, 0.8)
        parts = [
            box((0.26, 0.12, 0.06), (0, 0, 0.065), paint, 0.02, tint=tint),
            box((0.13, 0.1, 0.05), (-0.02, 0, 0.115), paint, 0.02, tint=tint),
        ]
        for x, y in corners(0.08, 0.065):
            parts.append(cylinder(0.035, 0.02, (0, 0, 0), style.paints[2], 14).moved(forward(x, y - 0.01, 0.035)))
        return Item("toy", parts).centred()
    parts = []
    for k in range(5):
        r = 0.09 - 0.013 * k
        profile = [(0.02, 0), (r, 0.0), (r + 0.008, 0.015), (r, 0.03), (0.02, 0.03)]
        parts.append(lathe(profile, paint, (0, 0, 0.03 * k), 20, tint=hsv(k / 6, 0.8, 0.9)))
    return Item("toy", [*parts, ball(0.028, (0, 0, 0.172), paint, tint=hsv(0.1, 0.8, 0.9))]).centred()
