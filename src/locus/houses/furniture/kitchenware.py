"""What stands on worktops and tables: kettles, pots, dishes, bottles, fruit."""

import numpy as np

from locus.houses import finishes
from locus.houses.items import Item
from locus.houses.patterns import any_hue, hsv
from locus.houses.solids import ball, box, cylinder, lathe, tube
from locus.houses.style import Style


def kettle(rng: np.random.Generator, style: Style) -> Item:
    material = finishes.metal(rng) if rng.random() < 0.5 else finishes.plastic(rng, style.accent(rng))
    body = [(0, 0), (0.085, 0), (0.085, 0.02), (0.075, 0.1), (0.06, 0.19), (0.03, 0.21)]
    lid = [(0.012, 0.215), (0.012, 0.23), (0, 0.23)]
    turn = np.linspace(0, np.pi, 9)
    handle = np.stack([0.07 + 0.05 * np.sin(turn), np.zeros(9), 0.11 + 0.075 * np.cos(turn)], -1)
    spout = np.array([[-0.06, 0, 0.13], [-0.09, 0, 0.155], [-0.11, 0, 0.185]])
    parts = [lathe(body + lid, material), tube(handle, 0.01, material), tube(spout, 0.014, material)]
    return Item("kettle", parts).centred()


def microwave(rng: np.random.Generator, style: Style) -> Item:
    shell = finishes.plastic(rng, (0.9, 0.9, 0.9)) if rng.random() < 0.5 else finishes.metal(rng)
    glass = finishes.plastic(rng, (0.05, 0.05, 0.05))
    parts = [
        box((0.46, 0.32, 0.26), (0, 0, 0.14), shell, 0.008),
        box((0.3, 0.006, 0.18), (-0.06, 0.163, 0.14), glass, 0.002),
        box((0.09, 0.005, 0.2), (0.165, 0.1625, 0.14), glass, 0.002),
        cylinder(0.15, 0.01, (0, 0, 0), glass, 12),
    ]
    return Item("microwave", parts).centred()


def toaster(rng: np.random.Generator, style: Style) -> Item:
    shell = finishes.metal(rng) if rng.random() < 0.5 else finishes.plastic(rng, style.accent(rng))
    slot = finishes.plastic(rng, (0.05, 0.05, 0.05))
    parts = [box((0.27, 0.16, 0.18), (0, 0, 0.09), shell, 0.03)]
    parts += [box((0.18, 0.03, 0.003), (0, y, 0.181), slot, 0.0) for y in (-0.035, 0.035)]
    return Item("toaster", [*parts, box((0.012, 0.03, 0.02), (0.141, 0, 0.11), slot)])


def pot(rng: np.random.Generator, style: Style) -> Item:
    material = finishes.metal(rng, (0.7, 0.7, 0.71)) if rng.random() < 0.6 else finishes.ceramic(rng, style.accent(rng))
    radius, height = rng.uniform(0.09, 0.13), rng.uniform(0.09, 0.16)
    body = [(0, 0), (radius, 0), (radius, height)]
    lid = [(radius + 0.006, height), (radius * 0.6, height + 0.02), (0, height + 0.028)]
    parts = [lathe(body + lid, material, smooth=False)]
    parts.append(ball(0.016, (0, 0, height + 0.042), finishes.plastic(rng, (0.08, 0.08, 0.08))))
    parts += [box((0.05, 0.06, 0.012), (side * (radius + 0.02), 0, height * 0.8), material, 0.004) for side in (-1, 1)]
    return Item("pot", parts)


def dishes(rng: np.random.Generator, style: Style) -> Item:
    """A cup, a bowl, a plate or a stack of them."""
    glaze = finishes.ceramic(rng, hsv(any_hue(rng), rng.choice([0.03, 0.4]), rng.uniform(0.5, 0.95)))
    form = rng.choice(["cup", "plates", "bowl", "place"])
    if form == "cup":
        profile = [(0, 0), (0.03, 0), (0.04, 0.03), (0.042, 0.09), (0.038, 0.09), (0.034, 0.02), (0, 0.012)]
        turn = np.linspace(0, np.pi, 7)
        handle = np.stack([0.038 + 0.025 * np.sin(turn), np.zeros(7), 0.05 + 0.025 * np.cos(turn)], -1)
        parts = [lathe(profile, glaze), tube(handle, 0.005, glaze)]
    elif form == "bowl":
        parts = [lathe([(0, 0), (0.04, 0), (0.08, 0.03), (0.1, 0.07), (0.095, 0.07), (0.07, 0.03), (0, 0.015)], glaze)]
    else:
        count = int(rng.integers(3, 8)) if form == "plates" else 1
        profile = [(0, 0), (0.07, 0), (0.125, 0.018), (0.122, 0.022), (0.07, 0.008), (0, 0.008)]
        parts = [lathe(profile, glaze, (0, 0, 0.01 * k), 24) for k in range(count)]
        if form == "place":
            steel = finishes.metal(rng)
            parts += [box((0.018, 0.19, 0.004), (x, 0, 0.003), steel, 0.001) for x in (-0.15, 0.15)]
    return Item("dishes", parts).centred()


def bottle(rng: np.random.Generator, style: Style) -> Item:
    material = finishes.plastic(rng, hsv(any_hue(rng), rng.uniform(0.1, 0.8), rng.uniform(0.1, 0.8)))
    r, h = rng.uniform(0.028, 0.042), rng.uniform(0.18, 0.32)
    profile = [(0, 0), (r, 0), (r, h * 0.6), (r * 0.4, h * 0.78), (r * 0.36, h * 0.97), (0, h * 0.98)]
    label = cylinder(r + 0.0008, h * 0.25, (0, 0, h * 0.2), finishes.plastic(rng, hsv(any_hue(rng), 0.3, 0.9)), 18)
    return Item("bottle", [lathe(profile, material), label])


def fruit_bowl(rng: np.random.Generator, style: Style) -> Item:
    bowl = style.wood(rng) if rng.random() < 0.5 else finishes.ceramic(rng, style.accent(rng))
    profile = [(0, 0), (0.06, 0), (0.12, 0.04), (0.15, 0.085), (0.143, 0.085), (0.1, 0.035), (0, 0.015)]
    parts = [lathe(profile, bowl, segments=24)]
    skin = style.paints[0]
    for k in range(int(rng.integers(4, 8))):
        angle, away = k * 2.4, 0.065 if k < 5 else 0.0
        tint = hsv(rng.choice([0.0, 0.08, 0.14, 0.28, 0.11]), 0.85, 0.85)
        centre = (away * np.cos(angle), away * np.sin(angle), 0.065 + (0.055 if k > 4 else 0))
        parts.append(ball(rng.uniform(0.034, 0.042), centre, skin, tint=tint))
    return Item("fruit bowl", parts)
