"""Pictures, mirrors, clocks, books, boxes, baskets, bins, candles."""

import numpy as np

from locus.houses import fabrics, finishes, prints
from locus.houses.furniture.storage import books_in_row
from locus.houses.items import Item
from locus.houses.motions import forward, pose, shift
from locus.houses.patterns import any_hue, hsv, near, painted, stored
from locus.houses.solids import box, cylinder, lathe, panel, rod
from locus.houses.style import Style
from locus.render.materials import Material


def picture(rng: np.random.Generator, style: Style) -> Item:
    """A framed picture; back at y = 0, its middle at z = 0. Painting with or without mount, or a bare canvas."""
    width, height = rng.uniform(0.25, 0.9), rng.uniform(0.25, 0.8)
    photographs = style.textures
    art = photographs[rng.integers(len(photographs))] if photographs and rng.random() < 0.7 else prints.art(rng)
    art = Material(art.texture, roughness=art.roughness)
    frames = (style.wood(rng), style.metal, style.paints[0], style.paints[2])
    frame = frames[rng.integers(4)]
    edge = rng.uniform(0.012, 0.045)
    x, z = width / 2 + edge / 2, height / 2 + edge / 2
    parts = [box((width + 2 * edge, 0.025, edge), (0, 0.013, way * z), frame, 0.004) for way in (1, -1)]
    parts += [box((edge, 0.025, height), (way * x, 0.013, 0), frame, 0.004) for way in (-1, 1)]
    mount = rng.uniform(0.04, 0.09) if rng.random() < 0.45 and min(width, height) > 0.3 else 0.0
    if mount:
        paper = Material(stored(painted(near(rng, (0.95, 0.94, 0.91), 0.02), np.zeros((4, 4)))))
        parts.append(panel((width / 2, 0.008, -height / 2), (-width, 0, 0), (0, 0, height), paper))
    inner_w, inner_h = width - 2 * mount, height - 2 * mount
    parts.append(panel((inner_w / 2, 0.010, -inner_h / 2), (-inner_w, 0, 0), (0, 0, inner_h), art, fitted=True))
    return Item("picture", parts)


def wall_mirror(rng: np.random.Generator, style: Style, width: float, height: float) -> Item:
    edge = 0.03
    frame = style.wood(rng) if rng.random() < 0.5 else style.metal
    parts = [box((width + 2 * edge, 0.018, height + 2 * edge), (0, 0.01, 0), frame, 0.005)]
    parts.append(panel((width / 2, 0.0195, -height / 2), (-width, 0, 0), (0, 0, height), finishes.mirror()))
    return Item("mirror", parts)


def clock(rng: np.random.Generator, style: Style) -> Item:
    radius = rng.uniform(0.12, 0.2)
    profile = [(0, 0), (0.012, 0.01), (0.012, 0.03), (0, 0.036), (-0.006, 0.03)]
    rim = lathe([(radius + r, z) for r, z in profile], style.metal, segments=32).moved(forward(0, 0.001, 0))
    disc = cylinder(radius, 0.02, (0, 0, 0), prints.clock_face(rng), 32).moved(forward(0, 0.001, 0))
    disc.uvs[:, 0] = 0.5 - disc.vertices[:, 0] / (2 * radius)
    disc.uvs[:, 1] = 0.5 + disc.vertices[:, 2] / (2 * radius)
    return Item("clock", [rim, disc])


def books(rng: np.random.Generator, style: Style) -> Item:
    """A few books lying in a pile or standing."""
    spines = prints.book_spines(rng)
    if rng.random() < 0.5:
        return Item("book", books_in_row(rng, spines, -0.1, rng.uniform(0.02, 0.15), 0.1, 0.001, 0.3, 0.2)).centred()
    parts, z = [], 0.0
    for _ in range(int(rng.integers(1, 5))):
        thick = rng.uniform(0.015, 0.04)
        flat = books_in_row(rng, spines, 0.0, 0.05, 0.1, 0.0, 0.26, 0.2)[0]
        low, high = flat.vertices.min(axis=0), flat.vertices.max(axis=0)
        middle, scale = (high + low) / 2, thick / (high - low)[0]
        turn = rng.normal(0, 0.15)
        lay = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [-scale, 0, 0, 0], [0, 0, 0, 1.0]])
        parts.append(flat.moved(pose(0, 0, z + thick / 2, turn) @ lay @ shift(*(-middle).tolist())))
        z += thick + 0.0005
    return Item("book", parts).centred()


def carton(rng: np.random.Generator, style: Style, largest: float) -> Item:
    """A storage or cardboard box, with a lid or open flaps."""
    width, depth, height = rng.uniform(0.18, largest), rng.uniform(0.18, largest), rng.uniform(0.12, largest * 0.75)
    colour = near(rng, (0.66, 0.5, 0.34), 0.08) if rng.random() < 0.5 else style.accent(rng)
    card = finishes.painted_wood(rng, colour)
    parts = [box((width, depth, height), (0, 0, height / 2), card, 0.003)]
    if rng.random() < 0.5:
        parts.append(box((width + 0.012, depth + 0.012, 0.04), (0, 0, height - 0.012), card, 0.003))
    else:
        tape = finishes.plastic(rng, (0.75, 0.65, 0.45))
        parts.append(box((0.05, depth + 0.002, 0.001), (0, 0, height + 0.001), tape, 0.0))
    label = Material(stored(np.full((4, 4, 3), 0.9)))
    parts.append(panel((0.05, depth / 2 + 0.007, height * 0.4), (-0.1, 0, 0), (0, 0, 0.06), label))
    return Item("box", parts)


def basket(rng: np.random.Generator, style: Style) -> Item:
    radius, height = rng.uniform(0.15, 0.24), rng.uniform(0.22, 0.42)
    weave = fabrics.wicker(rng)
    profile = [(0, 0), (radius * 0.85, 0), (radius, height), (radius - 0.012, height), (radius * 0.84, 0.02), (0, 0.02)]
    parts = [lathe(profile, weave, segments=24, smooth=False)]
    if rng.random() < 0.6:
        heap = [(0.88, 0.7), (0.7, 1.0), (0.3, 1.1), (0, 1.06)]
        parts.append(lathe([(radius * r, height * z) for r, z in heap], style.cloth(rng)))
    return Item("basket", parts)


def waste_bin(rng: np.random.Generator, style: Style) -> Item:
    radius, height = rng.uniform(0.12, 0.17), rng.uniform(0.28, 0.55)
    shell = style.metal if rng.random() < 0.5 else finishes.plastic(rng, style.accent(rng))
    lid = [(radius + 0.008, height), (radius + 0.008, height + 0.02), (radius * 0.7, height + 0.05), (0, height + 0.06)]
    body = cylinder(radius * 0.9, height, (0, 0, 0), shell, 24, top_radius=radius)
    return Item("bin", [body, lathe(lid, finishes.plastic(rng, (0.12, 0.12, 0.12)), segments=24)])


def candle(rng: np.random.Generator, style: Style) -> Item:
    wax = finishes.plastic(rng, hsv(any_hue(rng), rng.uniform(0, 0.4), 0.9))
    parts = []
    for k in range(int(rng.integers(1, 4))):
        x, y, height = 0.07 * k, 0.02 * (k % 2), rng.uniform(0.06, 0.2)
        parts.append(cylinder(0.028, height, (x, y, 0), wax, 14))
        parts.append(rod((x, y, height), (x, y, height + 0.012), 0.0015, style.paints[2]))
    return Item("candle", parts).centred()


def photo_frame(rng: np.random.Generator, style: Style) -> Item:
    """A small framed picture that stands on furniture."""
    width, height = rng.uniform(0.12, 0.2), rng.uniform(0.15, 0.24)
    parts = [box((width + 0.03, 0.015, height + 0.03), (0, 0, height / 2 + 0.016), style.wood(rng), 0.003)]
    parts.append(panel((width / 2, 0.0085, 0.016), (-width, 0, 0), (0, 0, height), prints.art(rng), fitted=True))
    parts.append(box((0.02, 0.07, 0.01), (0, -0.04, 0.005), style.wood(rng), 0.0))
    return Item("picture", parts).centred()
