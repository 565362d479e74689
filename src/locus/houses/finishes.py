"""Finishes: wood, stone, metal, plaster, tiles ... each call makes another one."""

import cv2
import numpy as np
from jaxtyping import Float, Float32

from locus.houses.patterns import Colour, any_hue, grid, hsv, mix, near, noise, painted, shaded, stored
from locus.render.materials import Material

WOODS: tuple[Colour, ...] = (
    (0.72, 0.53, 0.35),
    (0.80, 0.65, 0.46),
    (0.55, 0.36, 0.22),
    (0.38, 0.24, 0.16),
    (0.86, 0.75, 0.58),
    (0.62, 0.42, 0.28),
    (0.60, 0.54, 0.47),
    (0.28, 0.20, 0.16),
)


def wood_tone(rng: np.random.Generator) -> Colour:
    return near(rng, WOODS[rng.integers(len(WOODS))], 0.06)


def _looked_up(
    values: Float32[np.ndarray, "s s"], x: Float[np.ndarray, "s s"], y: Float[np.ndarray, "s s"]
) -> Float32[np.ndarray, "s s"]:
    """A repeating field read at other places (in repeats)."""
    size = values.shape[0]
    padded = np.pad(values, ((0, 1), (0, 1)), mode="wrap")
    return cv2.remap(padded, ((x % 1) * size).astype(np.float32), ((y % 1) * size).astype(np.float32), cv2.INTER_LINEAR)


def _cells(
    rng: np.random.Generator, size: int, columns: int, rows: int, shift: float, gap: float
) -> tuple[Float32[np.ndarray, "s s"], Float32[np.ndarray, "s s"], Float32[np.ndarray, "s s"]]:
    """Bricks, boards, tiles: rows of equal cells, each row shifted by `shift` of a cell against the last.

    Returns a random number per cell, another one, and the distance to the cell's border over `gap` (below 1: in the
    gap), the gap being a share of the tile's side."""
    x, y = grid(size)
    row = np.floor(y * rows)
    across = x * columns + row * shift
    column = np.floor(across) % columns
    index = (row * columns + column).astype(int)
    tone, other = rng.random(rows * columns), rng.random(rows * columns)
    in_x, in_y = across % 1, y * rows % 1
    border_x = np.minimum(in_x, 1 - in_x) / columns
    border_y = np.minimum(in_y, 1 - in_y) / rows
    border = np.minimum(border_x, border_y) / gap
    return tone[index].astype(np.float32), other[index].astype(np.float32), border.astype(np.float32)


def _grain(rng: np.random.Generator, size: int) -> np.ndarray:
    """Wood grain along x: growth rings bent by knots, fibres, pores. About unit variance."""
    _, y = grid(size)
    bend = noise(rng, size, 2.0, stretch=(3, 1), finest=24)
    rings = np.sin(2 * np.pi * (y * rng.integers(5, 11) + bend * rng.uniform(0.3, 0.8)))
    rings = np.sign(rings) * np.abs(rings) ** 0.7
    fibre = noise(rng, size, 0.8, stretch=(24, 1), coarsest=6)
    pores = np.minimum(noise(rng, size, 0.2, stretch=(10, 1), coarsest=30) + 1.2, 0)
    return (0.55 * rings + 0.6 * fibre + 0.5 * pores + 0.4 * bend).astype(np.float32)


def wood(rng: np.random.Generator, tone: Colour | None = None) -> Material:
    tone = tone or wood_tone(rng)
    picture = painted(tone, 0.09 * rng.uniform(0.6, 1.4) * _grain(rng, 256))
    return Material(stored(picture), tile=rng.uniform(0.5, 0.9), roughness=rng.uniform(0.3, 0.6))


def painted_wood(rng: np.random.Generator, colour: Colour) -> Material:
    """Paint or laminate: nearly even, a little grain and wear."""
    field = 0.02 * noise(rng, 128, 0.8, stretch=(12, 1), coarsest=3) + 0.02 * noise(rng, 128, 1.5)
    return Material(stored(painted(colour, field)), tile=0.8, roughness=rng.uniform(0.25, 0.6))


def floorboards(rng: np.random.Generator) -> Material:
    size, tone = 512, wood_tone(rng)
    rows = int(rng.choice([8, 10, 12, 16]))
    each, other, border = _cells(rng, size, 2, rows, 0.5 if rng.random() < 0.4 else rng.uniform(0.3, 0.5), 0.0018)
    grain = _grain(rng, size)
    x, y = grid(size)
    grain = _looked_up(grain, x + each * 7.3, y * 0.5 + other * 5.1)
    picture = painted(tone, 0.08 * grain + rng.uniform(0.12, 0.35) * (each - 0.5))
    picture *= (0.45 + 0.55 * np.clip(border, 0, 1))[..., None]
    return Material(stored(picture), tile=rng.uniform(1.8, 2.4), roughness=rng.uniform(0.25, 0.5))


def parquet(rng: np.random.Generator) -> Material:
    """Herringbone or basket weave."""
    size, tone = 512, wood_tone(rng)
    x, y = grid(size)
    blocks = int(rng.choice([4, 6]))
    if rng.random() < 0.6:
        # Herringbone: boards of 1 × 4 cells; moving one cell diagonally changes to the next board of the other sense.
        cell = blocks * 4
        column, row = np.floor(x * cell).astype(int), np.floor(y * cell).astype(int)
        phase = (column - row) % 8
        lying = phase < 4
        start_x = np.where(lying, column - phase, column)
        start_y = np.where(lying, row, row - (7 - phase))
        local_x, local_y = x * cell - start_x, y * cell - start_y
        along, across = np.where(lying, local_x, local_y), np.where(lying, local_y, local_x)
        key = (start_x % cell) * cell + start_y % cell + np.where(lying, 0, cell * cell)
        border = np.minimum(np.minimum(along, 4 - along), np.minimum(across, 1 - across)) * 14
    else:
        column, row = np.floor(x * blocks), np.floor(y * blocks)
        lying = (column + row) % 2 < 1
        in_x, in_y = x * blocks - column, y * blocks - row
        along, across = np.where(lying, in_x, in_y), np.where(lying, in_y, in_x) * 4
        strip = np.floor(across)
        key = (row * blocks + column) * 4 + strip
        across = across - strip
        border = np.minimum(np.minimum(along * 4, 4 - along * 4), np.minimum(across, 1 - across)) * 14
    each = rng.random(int(key.max()) + 1)[key.astype(int)].astype(np.float32)
    grain = _looked_up(_grain(rng, size), (along * 0.06 + each * 7.7).astype(np.float32), (across * 0.1 + each * 3.3))
    picture = painted(tone, 0.07 * grain + 0.3 * (each - 0.5)) * (0.5 + 0.5 * np.clip(border, 0, 1))[..., None]
    return Material(stored(picture), tile=rng.uniform(1.2, 1.9), roughness=rng.uniform(0.25, 0.45))


def _stone(rng: np.random.Generator, size: int, colour: Colour, vein: Colour) -> np.ndarray:
    """Marble: cloudy, with thin warped veins."""
    cloud = noise(rng, size, 1.4)
    field = np.abs(noise(rng, size, 1.5, finest=40))
    fine = np.abs(noise(rng, size, 1.2, coarsest=3))
    veins = np.exp(-((field / 0.10) ** 2)) * rng.uniform(0.4, 0.9) + 0.35 * np.exp(-((fine / 0.08) ** 2))
    return mix(colour, vein, veins * np.clip(0.6 + 0.4 * cloud, 0, 1)) * (1 + 0.04 * cloud)[..., None]


def marble(rng: np.random.Generator) -> Material:
    dark = rng.random() < 0.3
    colour = near(rng, (0.16, 0.16, 0.17) if dark else (0.88, 0.87, 0.84), 0.05)
    vein = near(rng, (0.75, 0.72, 0.66) if dark else (0.45, 0.43, 0.42), 0.1)
    return Material(stored(_stone(rng, 256, colour, vein)), tile=1.2, roughness=0.2)


def granite(rng: np.random.Generator) -> Material:
    colour = near(rng, hsv(rng.uniform(0, 0.12), rng.uniform(0, 0.2), rng.uniform(0.2, 0.75)), 0.05)
    speck = noise(rng, 256, 0.3, coarsest=16)
    coarse = noise(rng, 256, 0.8, coarsest=5)
    return Material(stored(painted(colour, 0.18 * speck + 0.08 * coarse)), tile=0.6, roughness=0.3)


def concrete(rng: np.random.Generator) -> Material:
    colour = near(rng, (0.58, 0.57, 0.55), 0.12)
    picture = painted(colour, 0.07 * noise(rng, 512, 1.3) + 0.02 * noise(rng, 512, 0.2))
    return Material(stored(picture), tile=2.6, roughness=rng.uniform(0.4, 0.8))


def tiles(rng: np.random.Generator, floor: bool) -> Material:
    """Squares, subway tiles or a checkerboard, with grout; plain, marbled or printed."""
    size = 512
    hue = any_hue(rng)
    colour = hsv(hue, rng.choice([0.03, 0.08, 0.35]), rng.uniform(0.45, 0.95))
    columns, rows, shift = [(4, 4, 0.0), (6, 6, 0.0), (4, 8, 0.5), (3, 3, 0.0), (8, 8, 0.0)][rng.integers(5)]
    each, _, border = _cells(rng, size, columns, rows, shift, rng.uniform(0.003, 0.007))
    x, y = grid(size)
    style = rng.choice(["plain", "marble", "checker", "printed", "terrazzo"])
    if style == "marble":
        picture = _stone(rng, size, colour, shaded(colour, 0.6))
    elif style == "checker":
        second = shaded(colour, rng.uniform(0.25, 0.7)) if sum(colour) > 1.2 else (0.9, 0.9, 0.88)
        odd = (np.floor(x * columns) + np.floor(y * rows)) % 2
        picture = mix(colour, second, odd if columns % 2 == 0 else (each > 0.5) * 1.0)
    elif style == "printed":
        second = hsv(hue + rng.uniform(0.1, 0.6), 0.5, rng.uniform(0.25, 0.7))
        in_x, in_y = np.abs(x * columns % 1 - 0.5), np.abs(y * rows % 1 - 0.5)
        radius = np.hypot(in_x, in_y)
        petals = np.cos(np.arctan2(in_y, in_x) * int(rng.choice([4, 8])))
        motif = (np.abs(radius - 0.3 - 0.1 * petals) < 0.05) | (radius < 0.09) | (in_x + in_y > 0.8)
        picture = mix(colour, second, motif * 0.85)
    elif style == "terrazzo":
        chips = noise(rng, size, 0.4, coarsest=12, finest=70)
        picture = mix(colour, hsv(hue + 0.4, 0.3, 0.4), (chips > 1.3) * 0.7) * (1 + 0.1 * (chips < -1.4))[..., None]
    else:
        picture = painted(colour, np.zeros((size, size)))
    picture = picture * (1 + 0.10 * (each - 0.5) + 0.025 * noise(rng, size, 1.2))[..., None]
    grout = near(rng, shaded(colour, 0.6) if rng.random() < 0.7 else (0.85, 0.85, 0.83), 0.05)
    picture = picture + (np.array(grout, np.float32) - picture) * (1 - np.clip(border, 0, 1))[..., None]
    scale = rng.uniform(1.3, 2.0) if floor else rng.uniform(0.8, 1.3)
    return Material(stored(picture), tile=scale, roughness=rng.uniform(0.15, 0.4))


def brick(rng: np.random.Generator) -> Material:
    size = 512
    white = rng.random() < 0.3
    colour = near(rng, (0.86, 0.84, 0.80) if white else (0.62, 0.34, 0.26), 0.08)
    each, other, border = _cells(rng, size, 6, 18, 0.5, 0.006)
    rough = noise(rng, size, 0.9)
    border = border + 0.4 * noise(rng, size, 0.6, coarsest=8) * 0.5
    picture = painted(colour, (0.1 if white else 0.35) * (each - 0.5) + 0.07 * rough)
    picture[..., 0] += (0.02 if white else 0.08) * (other - 0.5)
    mortar = near(rng, (0.78, 0.76, 0.72), 0.06)
    picture = picture + (np.array(mortar, np.float32) - picture) * np.clip(1.4 - border, 0, 1)[..., None]
    return Material(stored(picture), tile=1.35, roughness=0.95)


def plaster(rng: np.random.Generator, colour: Colour) -> Material:
    """A painted wall: roller marks, faint stains, uneven light."""
    field = 0.022 * noise(rng, 512, 1.6, finest=12) + 0.012 * noise(rng, 512, 0.3, coarsest=40)
    field += 0.012 * noise(rng, 512, 1.0, stretch=(1, 5), coarsest=6)
    if rng.random() < 0.3:
        field += 0.035 * np.abs(noise(rng, 512, 1.2, coarsest=4))
    return Material(stored(painted(colour, field)), tile=3.2, roughness=0.95)


def wallpaper(rng: np.random.Generator, colour: Colour) -> Material:
    """Stripes, dots, leaves, trellis or damask."""
    size = 512
    x, y = grid(size)
    if rng.random() < 0.6:
        second = shaded(colour, rng.uniform(0.72, 0.9))
    else:
        second = hsv(any_hue(rng), 0.35, rng.uniform(0.4, 0.8))
    style = rng.choice(["stripes", "dots", "leaves", "trellis", "damask", "chevron"])
    count = int(rng.integers(3, 8))
    if style == "stripes":
        share = (np.sin(2 * np.pi * count * 2 * x) > rng.uniform(-0.6, 0.6)) * 1.0
        share = np.maximum(share, (np.abs((x * count * 2) % 1 - 0.5) < 0.04) * 0.6)
    elif style == "dots":
        odd = np.floor(y * count * 2) % 2
        away = np.hypot((x * count * 2 + odd * 0.5) % 1 - 0.5, y * count * 2 % 1 - 0.5)
        share = (away < rng.uniform(0.12, 0.3)) * 1.0
    elif style == "trellis":
        a, b = (x + y) * count, (x - y) * count
        share = np.maximum(np.abs(np.sin(np.pi * a)) < 0.12, np.abs(np.sin(np.pi * b)) < 0.12) * 1.0
    elif style == "chevron":
        share = ((y * count * 3 + np.abs((x * count) % 1 - 0.5) * 2) % 1 < 0.4) * 1.0
    else:
        # A few random leaf-like strokes in a cell, mirrored: reads as damask or foliage.
        shifted = 0.5 * (np.floor(y * count) % 2)
        in_x = np.abs((x * count) % 1 - 0.5) if style == "damask" else (x * count + shifted) % 1 - 0.5
        in_y = (y * count) % 1 - 0.5
        share = np.zeros_like(x)
        for _ in range(7):
            cx, cy, turn = rng.uniform(0, 0.42), rng.uniform(-0.4, 0.4), rng.uniform(0, np.pi)
            if style == "leaves":
                cx = rng.uniform(-0.4, 0.4)
            along = (in_x - cx) * np.cos(turn) + (in_y - cy) * np.sin(turn)
            across = -(in_x - cx) * np.sin(turn) + (in_y - cy) * np.cos(turn)
            share = np.maximum(share, ((along / 0.2) ** 2 + (across / 0.07) ** 2 < 1) * rng.uniform(0.4, 1.0))
    picture = mix(colour, second, share * rng.uniform(0.5, 1.0))
    picture = picture * (1 + 0.02 * noise(rng, size, 0.2) + 0.02 * noise(rng, size, 1.5))[..., None]
    return Material(stored(picture), tile=rng.uniform(1.2, 2.2), roughness=0.9)


def carpet(rng: np.random.Generator) -> Material:
    colour = hsv(any_hue(rng), rng.uniform(0.03, 0.3), rng.uniform(0.35, 0.8))
    field = 0.14 * noise(rng, 512, 0.2, coarsest=60) + 0.05 * noise(rng, 512, 1.3)
    return Material(stored(painted(colour, field)), tile=1.8, roughness=1.0)


def panelling(rng: np.random.Generator, colour: Colour) -> Material:
    """Vertical tongue-and-groove boards."""
    x, _ = grid(256)
    groove = np.abs((x * 10) % 1 - 0.5) * 2
    field = -0.35 * (groove > 0.92) + 0.03 * noise(rng, 256, 0.8, stretch=(1, 16), coarsest=3)
    return Material(stored(painted(colour, field)), tile=1.1, roughness=0.5)


def metal(rng: np.random.Generator, colour: Colour | None = None) -> Material:
    colour = colour or near(rng, (0.78, 0.78, 0.78), 0.05)
    picture = stored(painted(colour, 0.03 * noise(rng, 64, 0.5, stretch=(20, 1))))
    return Material(picture, tile=0.4, roughness=rng.uniform(0.15, 0.35), metal=True)


def plastic(rng: np.random.Generator, colour: Colour) -> Material:
    return Material(stored(painted(colour, 0.015 * noise(rng, 64, 1.0))), tile=0.5, roughness=rng.uniform(0.2, 0.45))


def ceramic(rng: np.random.Generator, colour: Colour = (0.93, 0.93, 0.92)) -> Material:
    return Material(stored(painted(colour, 0.01 * noise(rng, 64, 1.5))), tile=0.6, roughness=0.15)


def glowing(colour: Colour, strength: float) -> Material:
    return Material(stored(np.broadcast_to(np.array(colour, np.float32), (4, 4, 3))), emission=strength)


def mirror() -> Material:
    return Material(np.full((4, 4, 3), 235, np.uint8), roughness=0.0, metal=True)
