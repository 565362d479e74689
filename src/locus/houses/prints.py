"""Fitted pictures: art, book spines, screens, clock faces, keys, hobs, and the view out of the window."""

import cv2
import numpy as np
from jaxtyping import Float32

from locus.houses.patterns import Colour, any_hue, grid, hsv, mix, noise, painted, shaded, stored
from locus.render.materials import Material


def _palette(rng: np.random.Generator, count: int) -> list[Colour]:
    hue, spread = any_hue(rng), rng.choice([0.05, 0.15, 0.5])
    return [hsv(hue + rng.normal(0, spread), rng.uniform(0.1, 0.85), rng.uniform(0.15, 0.95)) for _ in range(count)]


def _ink(colour: Colour) -> tuple[float, ...]:
    """A colour to draw with on a canvas of bytes."""
    return tuple(255 * c for c in colour)


def art(rng: np.random.Generator) -> Material:
    """A picture for the wall: landscape, abstract, portrait-like, geometric, line drawing or photograph-like."""
    size = 256
    x, y = grid(size)
    colours = _palette(rng, 6)
    style = rng.choice(["landscape", "fields", "circles", "blocks", "strokes", "still", "botanical"])
    if style == "landscape":
        picture = mix(colours[0], shaded(colours[0], 1.5), y * 1.6)
        sun = np.hypot(x - rng.uniform(0.2, 0.8), y - rng.uniform(0.15, 0.4)) < rng.uniform(0.05, 0.12)
        picture[sun] = (0.97, 0.9, 0.7)
        for k in range(int(rng.integers(2, 5))):
            ridge = 0.35 + 0.14 * k + 0.06 * noise(rng, size, 1.6)[0] * (1 + 0.3 * k)
            below = y > ridge[None]
            picture[below] = (painted(shaded(colours[1 + k], 1.1 - 0.2 * k), 0.08 * noise(rng, size, 0.8)))[below]
    elif style == "fields":
        edges = np.sort(rng.uniform(0.1, 0.9, 2)) + 0.03 * noise(rng, size, 1.5)[:1].T
        picture = np.where((y < edges[:, :1])[..., None], np.array(colours[0]), np.array(colours[1]))
        picture = np.where((y > edges[:, 1:])[..., None], np.array(colours[2]), picture)
        picture = picture * (1 + 0.1 * noise(rng, size, 1.2))[..., None]
    elif style == "circles":
        picture = painted(shaded(colours[0], 1.2), 0.03 * noise(rng, size, 0.5))
        for _ in range(int(rng.integers(4, 14))):
            centre, radius = rng.uniform(0, 1, 2), rng.uniform(0.04, 0.28)
            away = np.hypot(x - centre[0], y - centre[1])
            picture[(away < radius) & (away > radius * rng.choice([0.0, 0.0, 0.7]))] = colours[rng.integers(6)]
    elif style == "blocks":
        picture = np.broadcast_to(np.array((0.93, 0.92, 0.88), np.float32), (size, size, 3)).copy()
        for _ in range(int(rng.integers(5, 12))):
            left, top = rng.uniform(-0.1, 0.8, 2)
            wide, high = rng.uniform(0.08, 0.5, 2)
            picture[(x > left) & (x < left + wide) & (y > top) & (y < top + high)] = colours[rng.integers(6)]
    elif style == "strokes":
        canvas = np.full((size, size, 3), np.array(shaded(colours[0], 1.3)) * 255, np.uint8)
        for _ in range(int(rng.integers(15, 50))):
            ends = rng.integers(0, size, (3, 2))
            bend = np.linspace(0, 1, 20)[:, None]
            curve = (1 - bend) ** 2 * ends[0] + 2 * bend * (1 - bend) * ends[1] + bend**2 * ends[2]
            ink, thick = _ink(colours[rng.integers(6)]), int(rng.integers(1, 12))
            cv2.polylines(canvas, [curve.astype(np.int32)], False, ink, thick, cv2.LINE_AA)
        picture = canvas.astype(np.float32) / 255
    elif style == "still":
        picture = mix(colours[0], shaded(colours[0], 0.6), y) * (1 + 0.06 * noise(rng, size, 1.2))[..., None]
        picture[y > 0.7] = painted(colours[1], 0.08 * noise(rng, size, 1.0, stretch=(8, 1)))[y > 0.7]
        for _ in range(int(rng.integers(3, 7))):
            cx, wide, high = rng.uniform(0.15, 0.85), rng.uniform(0.05, 0.14), rng.uniform(0.08, 0.35)
            round_x, round_y = (x - cx) / wide, (y - (0.75 - high / 2)) / (high / 2)
            inside = np.abs(round_x) ** 2.5 + np.abs(round_y) ** 2.5 < 1
            picture[inside] = painted(colours[rng.integers(2, 6)], -0.5 * (round_x + 0.3) ** 2)[inside]
    else:
        canvas = np.full((size, size, 3), 238, np.uint8)
        for _ in range(int(rng.integers(3, 6))):
            foot, tip = (int(rng.integers(100, 156)), 240), (int(rng.integers(40, 216)), int(rng.integers(20, 90)))
            green = _ink(hsv(rng.uniform(0.2, 0.45), 0.5, rng.uniform(0.25, 0.6)))
            cv2.line(canvas, foot, tip, green, 2, cv2.LINE_AA)
            for share in np.linspace(0.25, 1, 7):
                at = (int(foot[0] + share * (tip[0] - foot[0])), int(foot[1] + share * (tip[1] - foot[1])))
                for turn in (30, 150):
                    axes, angle = (int(rng.integers(10, 24)), 6), turn + rng.normal(0, 15)
                    cv2.ellipse(canvas, at, axes, angle, 0, 360, green, -1, cv2.LINE_AA)
        picture = canvas.astype(np.float32) / 255
    return Material(stored(np.asarray(picture, np.float32)), roughness=float(rng.choice([0.9, 0.3])))


SPINES = 16


def book_spines(rng: np.random.Generator) -> Material:
    """Sixteen spines side by side, each a sixteenth of the width."""
    canvas = np.zeros((256, 256, 3), np.float32)
    for k in range(SPINES):
        colour = np.array(hsv(any_hue(rng), rng.uniform(0.05, 0.8), rng.uniform(0.15, 0.92)), np.float32)
        ink = np.array((0.95, 0.92, 0.82) if colour.sum() < 1.6 else hsv(any_hue(rng), 0.6, 0.25), np.float32)
        left, right = 16 * k, 16 * k + 16
        canvas[:, left:right] = colour
        for edge in rng.integers(8, 60, 2):
            thick = int(rng.integers(2, 8))
            canvas[edge : edge + thick, left:right] = ink
            canvas[255 - edge - thick : 255 - edge, left:right] = ink
        row = int(rng.integers(70, 95))
        while row < 180:
            step = int(rng.integers(4, 14))
            canvas[row : row + step, left + 5 : left + 5 + int(rng.integers(3, 7))] = ink
            row += step + int(rng.integers(2, 7))
        canvas[:, left] *= 0.6
        canvas[:, right - 1] *= 0.6
    return Material(stored(canvas * (1 + 0.03 * noise(rng, 256, 0.8))[..., None]), roughness=0.6)


def screen(rng: np.random.Generator) -> Material:
    """A screen that shows something: windows with lines of text, or a film."""
    canvas = stored(painted(hsv(any_hue(rng), 0.5, 0.35), 0.25 * noise(rng, 256, 2.0))).copy()
    if rng.random() < 0.6:
        for _ in range(int(rng.integers(1, 4))):
            left, top = int(rng.integers(5, 120)), int(rng.integers(5, 110))
            right, bottom = left + int(rng.integers(80, 130)), top + int(rng.integers(80, 140))
            dark = rng.random() < 0.4
            canvas[top:bottom, left:right] = 35 if dark else 240
            canvas[top : top + 10, left:right] = (90, 110, 150)
            for row in range(top + 18, min(bottom, 250) - 6, 8):
                end = left + 8 + int(rng.integers(10, 70))
                canvas[row : row + 3, left + 8 : end] = rng.integers(90, 230, 3) if dark else 90
        return Material(canvas, roughness=0.3, emission=0.5)
    return Material(art(rng).texture, roughness=0.2, emission=0.45)


def clock_face(rng: np.random.Generator) -> Material:
    dark = rng.random() < 0.3
    paper, ink = ((40,) * 3, (230,) * 3) if dark else ((240, 238, 230), (25,) * 3)
    canvas = np.full((128, 128, 3), paper, np.uint8)
    for hour in range(12):
        way = np.array([np.sin(hour * np.pi / 6), -np.cos(hour * np.pi / 6)])
        inner, outer = ((64 + radius * way).astype(int).tolist() for radius in (44 if hour % 3 == 0 else 50, 57))
        cv2.line(canvas, inner, outer, ink, 3, cv2.LINE_AA)
    for length, thick in ((28, 5), (44, 3)):
        turn = rng.uniform(0, 2 * np.pi)
        tip = (int(64 + length * np.sin(turn)), int(64 - length * np.cos(turn)))
        cv2.line(canvas, (64, 64), tip, ink, thick, cv2.LINE_AA)
    return Material(canvas, roughness=0.4)


def keyboard(rng: np.random.Generator) -> Material:
    x, y = grid(128)
    key = (np.abs(x * 15 % 1 - 0.5) < 0.38) & (np.abs(y * 5 % 1 - 0.5) < 0.36)
    dark = rng.random() < 0.6
    cap = (0.28, 0.28, 0.29) if dark else (0.9, 0.9, 0.9)
    return Material(stored(mix((0.1, 0.1, 0.1), cap, key * 1.0)), roughness=0.5)


def hob_plate(rng: np.random.Generator) -> Material:
    x, y = grid(128)
    picture = painted((0.07, 0.07, 0.075), np.zeros((128, 128)))
    for cx, cy in ((0.28, 0.3), (0.72, 0.3), (0.28, 0.7), (0.72, 0.7)):
        away = np.hypot(x - cx, y - cy)
        picture[np.abs(away - rng.uniform(0.11, 0.17)) < 0.012] = (0.5, 0.5, 0.52)
    return Material(stored(picture), roughness=0.1)


def panorama(rng: np.random.Generator, weather: str) -> Float32[np.ndarray, "h w 3"]:
    """The view outside as linear radiance: sky with clouds above hills, houses, trees and grass."""
    height, width = 512, 1024
    cloud = cv2.resize(noise(rng, 256, 1.6, stretch=(1, 2)), (width, height))
    down = np.broadcast_to(np.linspace(0, 1, height, dtype=np.float32)[:, None], (height, width))
    if weather == "sunny":
        sky = mix((0.36, 0.55, 0.88), (0.78, 0.87, 0.96), down * 2)
        sky += (1 - sky) * np.clip(cloud * 0.7 - 0.2, 0, 0.9)[..., None]
        level = 3.4
    elif weather == "overcast":
        sky = painted((0.86, 0.88, 0.92), 0.1 * cloud)
        level = 3.6
    else:
        sky = mix((0.05, 0.07, 0.16), (0.22, 0.20, 0.30), down * 2)
        level = 0.18
    canvas = stored(sky).copy()
    horizon = 255
    _ridges(rng, canvas, horizon)
    grass = painted(hsv(rng.uniform(0.17, 0.28), rng.uniform(0.15, 0.35), rng.uniform(0.35, 0.5)), np.zeros((1, 1)))
    canvas[horizon:] = stored(grass)[0, 0]
    if rng.random() < 0.6:
        for _ in range(int(rng.integers(5, 14))):
            _house_outside(rng, canvas, horizon, weather == "evening")
    if rng.random() < 0.8:
        _trees(rng, canvas, horizon)
    texture = cv2.resize(noise(rng, 512, 0.7, coarsest=8), (width, height))
    canvas = canvas.astype(np.float32) / 255
    canvas[horizon - 60 :] *= (1 + 0.12 * texture[horizon - 60 :])[..., None]
    return (np.clip(canvas, 0, 1) ** 2.2 * level).astype(np.float32)


def _ridges(rng: np.random.Generator, canvas: np.ndarray, horizon: int) -> None:
    """Far hills, the further the bluer."""
    for k in range(2):
        ridge = cv2.resize(noise(rng, 256, 1.8, finest=20)[:1], (1024, 1))[0]
        top = horizon - 10 - 8 * (1 - k) - 5 * ridge
        colour = np.array(hsv(rng.uniform(0.3, 0.55), 0.2 + 0.15 * k, 0.68 - 0.15 * k)) * 255
        canvas[np.arange(512)[:, None] > top[None]] = colour.astype(np.uint8)


def _house_outside(rng: np.random.Generator, canvas: np.ndarray, horizon: int, lit: bool) -> None:
    left, wide, high = int(rng.integers(0, 980)), int(rng.integers(25, 60)), int(rng.integers(14, 42))
    foot, roof = horizon + int(rng.integers(0, 8)), int(rng.integers(5, 14))
    wall = _ink(hsv(rng.uniform(0, 0.12), rng.uniform(0.05, 0.35), rng.uniform(0.55, 0.92)))
    tile = _ink(hsv(rng.uniform(0, 0.06), rng.uniform(0.1, 0.6), rng.uniform(0.25, 0.55)))
    cv2.rectangle(canvas, (left, foot - high), (left + wide, foot), wall, -1)
    gable = np.array([[left - 3, foot - high], [left + wide // 2, foot - high - roof], [left + wide + 3, foot - high]])
    cv2.fillPoly(canvas, [gable.astype(np.int32)], tile)
    pane = (240.0, 190.0, 100.0) if lit else (70.0, 80.0, 95.0)
    for x in range(left + 5, left + wide - 5, 10):
        for y in range(foot - high + 4, foot - 6, 11):
            cv2.rectangle(canvas, (x, y), (x + 4, y + 5), pane, -1)


def _trees(rng: np.random.Generator, canvas: np.ndarray, horizon: int) -> None:
    for _ in range(int(rng.integers(25, 90))):
        x, size = int(rng.integers(0, 1024)), rng.uniform(7, 24)
        green = hsv(rng.uniform(0.18, 0.34), rng.uniform(0.25, 0.5), rng.uniform(0.22, 0.45))
        cv2.line(canvas, (x, horizon + 8), (x, int(horizon - size)), (70.0, 55.0, 45.0), 2)
        for _ in range(14):
            at = (int(x + rng.normal(0, size * 0.4)), int(horizon - size * 1.1 + rng.normal(0, size * 0.4)))
            shade, radius = _ink(shaded(green, rng.uniform(0.7, 1.3))), int(size * rng.uniform(0.2, 0.45))
            cv2.circle(canvas, at, radius, shade, -1, cv2.LINE_AA)
