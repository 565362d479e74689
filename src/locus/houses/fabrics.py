"""Cloth: upholstery, bedding, curtains, rugs, towels, wicker."""

import numpy as np

from locus.houses.patterns import Colour, any_hue, grid, hsv, mix, noise, painted, shaded, stored
from locus.render.materials import Material


def cloth_colour(rng: np.random.Generator) -> Colour:
    """Mostly muted, sometimes bold."""
    if rng.random() < 0.3:
        return hsv(any_hue(rng), rng.uniform(0.35, 0.7), rng.uniform(0.35, 0.8))
    return hsv(any_hue(rng), rng.uniform(0.02, 0.35), rng.uniform(0.25, 0.92))


def _weave(rng: np.random.Generator, size: int) -> np.ndarray:
    threads = noise(rng, size, 0.3, stretch=(1, 12), coarsest=10) + noise(rng, size, 0.3, stretch=(12, 1), coarsest=10)
    return threads / 1.4 + 0.6 * noise(rng, size, 1.2, finest=20)


def fabric(rng: np.random.Generator, colour: Colour | None = None, plain: bool | None = None) -> Material:
    """Woven cloth, plain or with stripes, checks, dots, zigzag or sprinkled shapes."""
    size = 256
    colour = colour or cloth_colour(rng)
    if plain is None:
        plain = rng.random() < 0.5
    picture = painted(colour, np.zeros((size, size)))
    if not plain:
        x, y = grid(size)
        second = hsv(any_hue(rng), rng.uniform(0.05, 0.55), rng.uniform(0.3, 0.95))
        count = int(rng.integers(2, 7))
        style = rng.choice(["stripes", "checks", "dots", "zigzag", "sprinkles", "bands"])
        if style == "stripes":
            share = (np.sin(2 * np.pi * count * x) > rng.uniform(-0.5, 0.7)) * 1.0
        elif style == "checks":
            share = 0.5 * (np.sin(2 * np.pi * count * x) > 0) + 0.5 * (np.sin(2 * np.pi * count * y) > 0)
        elif style == "dots":
            odd = np.floor(y * count * 2) % 2
            share = (np.hypot((x * count + odd / 2) % 1 - 0.5, (y * count * 2) % 1 - 0.5) < 0.25) * 1.0
        elif style == "zigzag":
            share = ((y * count * 2 + 2 * np.abs((x * count) % 1 - 0.5)) % 1 < 0.5) * 1.0
        elif style == "bands":
            steps = rng.random(16)
            share = steps[(y * 16).astype(int)] * 1.0
        else:
            share = (noise(rng, size, 0.2, coarsest=5, finest=11) > 1.0) * 1.0
        picture = mix(colour, second, share * rng.uniform(0.5, 0.95))
    picture = picture * (1 + 0.075 * _weave(rng, size))[..., None]
    return Material(stored(picture), tile=rng.uniform(0.35, 0.8), roughness=1.0)


def leather(rng: np.random.Generator) -> Material:
    colour = hsv(rng.uniform(0.02, 0.09), rng.uniform(0.2, 0.7), rng.uniform(0.15, 0.6))
    wrinkle = np.abs(noise(rng, 256, 0.9, coarsest=8))
    field = 0.06 * noise(rng, 256, 1.4) - 0.10 * np.exp(-((wrinkle / 0.12) ** 2))
    return Material(stored(painted(colour, field)), tile=0.6, roughness=0.42)


def sheer(rng: np.random.Generator) -> Material:
    """Curtain cloth that glows with the light behind it."""
    colour = hsv(any_hue(rng), rng.uniform(0, 0.12), rng.uniform(0.85, 0.97))
    picture = painted(colour, 0.05 * _weave(rng, 128))
    return Material(stored(picture), tile=0.5, roughness=1.0, thin=True)


def drape(rng: np.random.Generator) -> Material:
    heavy = fabric(rng)
    return Material(heavy.texture, tile=heavy.tile, roughness=1.0, thin=True)


def wicker(rng: np.random.Generator) -> Material:
    x, y = grid(128)
    colour = hsv(rng.uniform(0.07, 0.11), rng.uniform(0.3, 0.55), rng.uniform(0.5, 0.8))
    odd = np.floor(x * 8) % 2
    over = np.abs(np.sin(np.pi * (y * 16 + odd)))
    field = 0.3 * (over - 0.7) - 0.25 * (np.abs((x * 8) % 1 - 0.5) > 0.42) + 0.08 * noise(rng, 128, 0.5)
    return Material(stored(painted(colour, field)), tile=0.25, roughness=0.9)


def rug(rng: np.random.Generator) -> Material:
    """A fitted rug: border bands and a mirrored field, stripes, a grid of lozenges, or abstract shapes."""
    size = 512
    x, y = grid(size)
    hue = any_hue(rng)
    colours = [hsv(hue + rng.normal(0, 0.12), rng.uniform(0.1, 0.7), rng.uniform(0.2, 0.9)) for _ in range(4)]
    style = rng.choice(["oriental", "stripes", "lozenges", "abstract", "shag", "berber"])
    if style == "oriental":
        mirrored_x, mirrored_y = np.abs(x - 0.5), np.abs(y - 0.5)
        field = np.zeros_like(x)
        for _ in range(9):
            cx, cy, r = rng.uniform(0, 0.4), rng.uniform(0, 0.42), rng.uniform(0.03, 0.12)
            away_x, away_y = np.abs(mirrored_x - cx), np.abs(mirrored_y - cy)
            away = away_x + away_y if rng.random() < 0.5 else np.hypot(away_x, away_y)
            field += np.where(away < r, rng.choice([-1.0, 1.0, 2.0]), 0)
        small = np.sin(mirrored_x * 130) * np.sin(mirrored_y * 130) > 0.4
        picture = mix(colours[0], colours[1], np.clip(field * 0.5, 0, 1))
        picture += (mix(colours[2], colours[2], field) - picture) * ((field < 0)[..., None] * 0.9)
        picture += (np.array(colours[3]) - picture) * (small * 0.35)[..., None]
        edge = np.minimum(np.minimum(x, 1 - x), np.minimum(y, 1 - y))
        for outer, colour in ((0.13, colours[2]), (0.11, colours[1]), (0.04, colours[3])):
            picture[edge < outer] = colour
        band = (edge > 0.045) & (edge < 0.105)
        picture[band & (np.sin(x * 90) * np.sin(y * 90) > 0.2)] = colours[0]
    elif style == "stripes":
        widths = rng.integers(0, 4, 24)
        picture = np.array(colours, np.float32)[widths[(y * 24).astype(int)]]
    elif style == "lozenges":
        count = int(rng.integers(3, 7))
        away = np.abs(x * count % 1 - 0.5) + np.abs(y * count % 1 - 0.5)
        picture = mix(colours[0], colours[1], (np.abs(away - 0.4) < 0.07) * 1.0)
        picture[away < 0.15] = colours[2]
    elif style == "abstract":
        picture = np.broadcast_to(np.array(colours[0], np.float32), (size, size, 3)).copy()
        for colour in colours[1:] * 2:
            blob = noise(rng, size, 2.5, finest=8)
            picture[blob > rng.uniform(0.5, 1.2)] = colour
    else:
        picture = painted(colours[0], 0.05 * noise(rng, size, 1.2))
        if style == "berber":
            lines = np.abs(np.sin(np.pi * (x * 4 + y * 4 + 0.03 * noise(rng, size, 1.5)))) < 0.06
            lines |= np.abs(np.sin(np.pi * (x * 4 - y * 4))) < 0.06
            picture[lines] = shaded(colours[0], 0.3) if sum(colours[0]) > 1.4 else (0.9, 0.88, 0.82)
    picture = picture * (1 + 0.10 * noise(rng, size, 0.2, coarsest=50) + 0.04 * noise(rng, size, 1.3))[..., None]
    return Material(stored(picture), roughness=1.0)
