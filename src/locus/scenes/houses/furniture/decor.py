"""Rugs, curtains, cushions, pictures, clocks, mirrors, vases, plants, books, boxes, baskets, bins, candles, toys."""

import numpy as np

from locus.scenes.houses import fabrics, finishes, prints
from locus.scenes.houses.furniture.storage import books_in_row
from locus.scenes.houses.model import Model
from locus.scenes.houses.patterns import Colour, any_hue, hsv, near, painted, stored
from locus.scenes.houses.solids import ball, box, cushion, cylinder, lathe, panel, rod, sheet, tube
from locus.scenes.houses.style import Style
from locus.scenes.render.materials import Material
from locus.scenes.render.parts import Part, merged


def rug(rng: np.random.Generator, style: Style, width: float, depth: float) -> Model:
    thick = rng.uniform(0.008, 0.016)
    material = fabrics.rug(rng)
    if rng.random() < 0.2 and abs(width - depth) < 0.5:
        radius = min(width, depth) / 2
        part = cylinder(radius, thick, (0, 0, 0.001), material, 40)
        part.uvs[:] = part.vertices[:, :2] / (2 * radius) + 0.5
        return Model("rug", [part])
    part = box((width, depth, thick), (0, 0, thick / 2 + 0.001), material, 0.004, step=0.15)
    part.uvs[:] = part.vertices[:, :2] / np.array([width, depth], np.float32) + 0.5
    return Model("rug", [part])


def curtains(rng: np.random.Generator, style: Style, width: float, foot: float, top: float) -> Model:
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
            fold = (0.022 + 0.018 * hang) * np.sin(2 * np.pi * waves * u + 0.3 * np.sin(3 * hang + side))
            rows.append(np.stack([x + 0.01 * np.sin(5 * hang), away + fold, np.full_like(u, z)], -1))
        points = np.array(rows)
        parts.append(sheet(points[:, ::-1], cloth))
    return Model("curtain", parts)


def blind(rng: np.random.Generator, style: Style, width: float, height: float, drawn: float) -> Model:
    """A roller blind, drawn down by a share of the window; top at z = 0, back at y = 0."""
    cloth = fabrics.sheer(rng) if rng.random() < 0.5 else fabrics.drape(rng)
    long = height * drawn
    parts = [rod((-width / 2, 0.04, 0), (width / 2, 0.04, 0), 0.025, style.metal)]
    parts.append(panel((width / 2, 0.066, -long), (-width, 0, 0), (0, 0, long), cloth, step=0.15))
    parts.append(box((width, 0.015, 0.025), (0, 0.066, -long - 0.012), style.trim, 0.004))
    return Model("curtain", parts)


def cushion_loose(rng: np.random.Generator, style: Style) -> Model:
    side = rng.uniform(0.36, 0.48)
    part = cushion(
        (side, 0.13, side), (0, 0, side / 2), style.cloth(rng) if rng.random() < 0.3 else fabrics.fabric(rng), bulge=0.5
    )
    lean = -rng.uniform(0.2, 0.35)
    matrix = np.array(
        [[1, 0, 0, 0], [0, np.cos(lean), np.sin(lean), 0], [0, -np.sin(lean), np.cos(lean), 0.03], [0, 0, 0, 1.0]]
    )
    return Model("cushion", [part.moved(matrix)]).centred()


def picture(rng: np.random.Generator, style: Style) -> Model:
    """A framed picture; back at y = 0, its middle at z = 0. Painting with or without mount, or a bare canvas."""
    width, height = rng.uniform(0.25, 0.9), rng.uniform(0.25, 0.8)
    photographs = style.textures
    art = photographs[rng.integers(len(photographs))] if photographs and rng.random() < 0.7 else prints.art(rng)
    art = Material(art.texture, roughness=art.roughness)
    frames = (style.wood(rng), style.metal, style.paints[0], style.paints[2])
    frame = frames[rng.integers(4)]
    edge = rng.uniform(0.012, 0.045)
    parts = []
    for size, centre in (
        ((width + 2 * edge, 0.025, edge), (0.0, 0.013, height / 2 + edge / 2)),
        ((width + 2 * edge, 0.025, edge), (0.0, 0.013, -height / 2 - edge / 2)),
        ((edge, 0.025, height), (-width / 2 - edge / 2, 0.013, 0.0)),
        ((edge, 0.025, height), (width / 2 + edge / 2, 0.013, 0.0)),
    ):
        parts.append(box(size, centre, frame, 0.004))
    mount = rng.uniform(0.04, 0.09) if rng.random() < 0.45 and min(width, height) > 0.3 else 0.0
    if mount:
        paper = Material(stored(painted(near(rng, (0.95, 0.94, 0.91), 0.02), np.zeros((4, 4)))))
        parts.append(panel((width / 2, 0.008, -height / 2), (-width, 0, 0), (0, 0, height), paper))
    inner_w, inner_h = width - 2 * mount, height - 2 * mount
    parts.append(panel((inner_w / 2, 0.010, -inner_h / 2), (-inner_w, 0, 0), (0, 0, inner_h), art, fitted=True))
    return Model("picture", parts)


def wall_mirror(rng: np.random.Generator, style: Style, width: float, height: float) -> Model:
    edge = 0.03
    frame = style.wood(rng) if rng.random() < 0.5 else style.metal
    parts = [box((width + 2 * edge, 0.018, height + 2 * edge), (0, 0.01, 0), frame, 0.005)]
    parts.append(panel((width / 2, 0.0195, -height / 2), (-width, 0, 0), (0, 0, height), finishes.mirror()))
    return Model("mirror", parts)


def clock(rng: np.random.Generator, style: Style) -> Model:
    radius = rng.uniform(0.12, 0.2)
    up = np.array([[1, 0, 0, 0], [0, 0, 1, 0.001], [0, -1, 0, 0], [0, 0, 0, 1.0]])
    rim = lathe(
        [(radius, 0), (radius + 0.012, 0.01), (radius + 0.012, 0.03), (radius, 0.036), (radius - 0.006, 0.03)],
        style.metal,
        segments=32,
    ).moved(up)
    face = panel(
        (radius * 0.98, 0.026, -radius * 0.98),
        (-2 * radius * 0.98, 0, 0),
        (0, 0, 2 * radius * 0.98),
        prints.clock_face(rng),
        fitted=True,
    )
    disc = cylinder(radius, 0.02, (0, 0, 0), face.material, 32).moved(up)
    disc.uvs[:, 0] = 0.5 - disc.vertices[:, 0] / (2 * radius)
    disc.uvs[:, 1] = 0.5 + disc.vertices[:, 2] / (2 * radius)
    return Model("clock", [rim, disc])


def vase(rng: np.random.Generator, style: Style) -> Model:
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
            parts.append(
                ball(
                    rng.uniform(0.018, 0.035),
                    (float(tip[0]), float(tip[1]), float(tip[2])),
                    petal,
                    tint=near(rng, colour, 0.1),
                    squash=0.7,
                )
            )
    return Model("vase", parts).centred()


def plant(rng: np.random.Generator, style: Style, height: float) -> Model:
    """A pot with broad leaves, sword leaves, a small tree or a fern."""
    pot_r = 0.08 + 0.1 * min(height, 1.4) * rng.uniform(0.8, 1.2)
    pot_h = pot_r * rng.uniform(1.3, 2.0)
    choice = rng.random()
    colour = style.accent(rng) if choice < 0.3 else ((0.93, 0.93, 0.92) if choice < 0.55 else (0.66, 0.4, 0.3))
    pot = fabrics.wicker(rng) if choice > 0.8 else finishes.ceramic(rng, colour)
    soil = finishes.granite(rng)
    parts: list[Part] = [
        lathe(
            [(0, 0), (pot_r * 0.72, 0), (pot_r, pot_h), (pot_r * 0.92, pot_h), (pot_r * 0.88, pot_h * 0.9)],
            pot,
            segments=24,
        ),
        cylinder(pot_r * 0.9, 0.01, (0, 0, pot_h * 0.86), soil, 20, tint=(0.35, 0.25, 0.2)),
    ]
    green: Colour = hsv(rng.uniform(0.22, 0.38), rng.uniform(0.4, 0.75), rng.uniform(0.25, 0.55))
    texture = finishes.painted_wood(rng, green).texture
    leaf = Material(texture, tile=0.4, roughness=0.6, thin=True)
    bark = finishes.wood(rng, (0.4, 0.3, 0.22))
    form = rng.choice(["broad", "sword", "tree", "fern"])
    crown = height - pot_h
    count = int(rng.integers(14, 26))
    if form == "tree":
        parts.append(
            tube(
                np.array([[0, 0, pot_h * 0.85], [0.02, 0.01, pot_h + crown * 0.3], [0, 0, pot_h + crown * 0.6]]),
                0.012 + 0.01 * height,
                bark,
            )
        )
        count = int(40 + 60 * min(height, 1.5))
    leaves = []
    for k in range(count):
        angle = k * 2.4 + rng.normal(0, 0.3)
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        if form == "sword":
            start, long, wide = (
                np.array([*(way[:2] * pot_r * 0.4), pot_h * 0.86]),
                crown * rng.uniform(0.6, 1.0),
                0.04 + 0.02 * height,
            )
            lean, droop = rng.uniform(0.05, 0.35), 0.1
        elif form == "tree":
            out = rng.uniform(0.05, 0.32) * crown
            start = np.array([*(way[:2] * out), pot_h + crown * (0.55 + 0.4 * rng.random() * (1 - out / crown))])
            long, wide, lean, droop = rng.uniform(0.1, 0.2), 0.07, rng.uniform(0.8, 1.5), 0.3
        else:
            start, long = np.array([*(way[:2] * pot_r * 0.3), pot_h * 0.86]), crown * rng.uniform(0.5, 0.95)
            wide = long * (0.32 if form == "broad" else 0.1)
            lean, droop = rng.uniform(0.2, 1.0), rng.uniform(0.3, 0.9)
        leaves.append(
            _leaf(start, way, long, wide, lean, droop, leaf, near(rng, (0.9, 0.92, 0.85), 0.15), form == "broad")
        )
    return Model("plant", [*parts, merged(leaves)]).centred()


def _leaf(
    start: np.ndarray,
    way: np.ndarray,
    long: float,
    wide: float,
    lean: float,
    droop: float,
    material: Material,
    tint: Colour,
    stalked: bool,
) -> Part:
    """A leaf that rises from `start`, leans outwards and droops at its tip."""
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
    points = np.stack([centre - across * half + fold, centre, centre + across * half + fold], axis=1)
    part = sheet(points, material)
    shade = np.array(tint, np.float32) ** np.float32(2.2)
    return Part(part.vertices, part.normals, part.uvs, part.faces, material, np.tile(shade, (len(part.vertices), 1)))


def books(rng: np.random.Generator, style: Style) -> Model:
    """A few books lying in a pile or standing."""
    spines = prints.book_spines(rng)
    if rng.random() < 0.5:
        return Model("book", books_in_row(rng, spines, -0.1, rng.uniform(0.02, 0.15), 0.1, 0.001, 0.3, 0.2)).centred()
    parts, z = [], 0.0
    for _ in range(int(rng.integers(1, 5))):
        thick = rng.uniform(0.015, 0.04)
        flat = books_in_row(rng, spines, 0.0, 0.05, 0.1, 0.0, 0.26, 0.2)[0]
        size = flat.vertices.max(axis=0) - flat.vertices.min(axis=0)
        middle = (flat.vertices.max(axis=0) + flat.vertices.min(axis=0)) / 2
        scale = thick / size[0]
        turn = rng.normal(0, 0.15)
        lay = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [-scale, 0, 0, 0], [0, 0, 0, 1.0]])
        spin = np.array(
            [
                [np.cos(turn), -np.sin(turn), 0, 0],
                [np.sin(turn), np.cos(turn), 0, 0],
                [0, 0, 1, z + thick / 2],
                [0, 0, 0, 1.0],
            ]
        )
        centre = np.eye(4)
        centre[:3, 3] = -middle
        parts.append(flat.moved(spin @ lay @ centre))
        z += thick + 0.0005
    return Model("book", parts).centred()


def carton(rng: np.random.Generator, style: Style, largest: float) -> Model:
    """A storage or cardboard box, with a lid or open flaps."""
    width, depth, height = rng.uniform(0.18, largest), rng.uniform(0.18, largest), rng.uniform(0.12, largest * 0.75)
    card = (
        finishes.painted_wood(rng, near(rng, (0.66, 0.5, 0.34), 0.08))
        if rng.random() < 0.5
        else finishes.painted_wood(rng, style.accent(rng))
    )
    parts = [box((width, depth, height), (0, 0, height / 2), card, 0.003)]
    if rng.random() < 0.5:
        parts.append(box((width + 0.012, depth + 0.012, 0.04), (0, 0, height - 0.012), card, 0.003))
    else:
        tape = finishes.plastic(rng, (0.75, 0.65, 0.45))
        parts.append(box((0.05, depth + 0.002, 0.001), (0, 0, height + 0.001), tape, 0.0))
    label = Material(stored(np.full((4, 4, 3), 0.9)))
    parts.append(panel((0.05, depth / 2 + 0.007, height * 0.4), (-0.1, 0, 0), (0, 0, 0.06), label))
    return Model("box", parts)


def basket(rng: np.random.Generator, style: Style) -> Model:
    radius, height = rng.uniform(0.15, 0.24), rng.uniform(0.22, 0.42)
    weave = fabrics.wicker(rng)
    profile = [(0, 0), (radius * 0.85, 0), (radius, height), (radius - 0.012, height), (radius * 0.84, 0.02), (0, 0.02)]
    parts = [lathe(profile, weave, segments=24, smooth=False)]
    if rng.random() < 0.6:
        cloth = style.cloth(rng)
        parts.append(
            lathe(
                [
                    (radius * 0.88, height * 0.7),
                    (radius * 0.7, height * 1.0),
                    (radius * 0.3, height * 1.1),
                    (0, height * 1.06),
                ],
                cloth,
            )
        )
    return Model("basket", parts)


def waste_bin(rng: np.random.Generator, style: Style) -> Model:
    radius, height = rng.uniform(0.12, 0.17), rng.uniform(0.28, 0.55)
    shell = style.metal if rng.random() < 0.5 else finishes.plastic(rng, style.accent(rng))
    lid = [(radius + 0.008, height), (radius + 0.008, height + 0.02), (radius * 0.7, height + 0.05), (0, height + 0.06)]
    return Model(
        "bin",
        [
            cylinder(radius * 0.9, height, (0, 0, 0), shell, 24, top_radius=radius),
            lathe(lid, finishes.plastic(rng, (0.12, 0.12, 0.12)), segments=24),
        ],
    )


def candle(rng: np.random.Generator, style: Style) -> Model:
    wax = finishes.plastic(rng, hsv(any_hue(rng), rng.uniform(0, 0.4), 0.9))
    parts = []
    for k in range(int(rng.integers(1, 4))):
        at = (0.07 * k, 0.02 * (k % 2), 0.0)
        height = rng.uniform(0.06, 0.2)
        parts.append(cylinder(0.028, height, at, wax, 14))
        parts.append(rod((at[0], at[1], height), (at[0], at[1], height + 0.012), 0.0015, style.paints[2]))
    return Model("candle", parts).centred()


def toy(rng: np.random.Generator, style: Style) -> Model:
    """Building blocks, a ball, a bear, a car or stacking rings."""
    form = rng.choice(["blocks", "ball", "bear", "car", "rings"])
    paint = style.paints[0]
    if form == "ball":
        return Model(
            "toy",
            [
                ball(
                    rng.uniform(0.07, 0.13), (0, 0, 0.0), fabrics.fabric(rng, hsv(rng.random(), 0.7, 0.85), plain=False)
                )
            ],
        ).centred()
    if form == "blocks":
        parts = []
        for k in range(int(rng.integers(4, 9))):
            side = rng.uniform(0.04, 0.07)
            at = (rng.uniform(-0.16, 0.16), rng.uniform(-0.16, 0.16)) if k else (0.0, 0.0)
            parts.append((side, at))
        solid, taken = [], []
        for side, (x, y) in parts:
            if all(abs(x - a) > (side + s) / 2 or abs(y - b) > (side + s) / 2 for s, a, b in taken):
                taken.append((side, x, y))
                solid.append(
                    box((side, side, side), (x, y, side / 2), paint, 0.004, tint=hsv(rng.random(), 0.75, 0.85))
                )
        return Model("toy", solid).centred()
    if form == "bear":
        fur = finishes.carpet(rng)
        size = rng.uniform(0.8, 1.4)
        tint = hsv(rng.uniform(0.05, 0.1), 0.4, rng.uniform(0.6, 0.95))
        places = [
            ((0, 0, 0.11), 0.1),
            ((0, 0.02, 0.25), 0.075),
            ((-0.06, 0, 0.31), 0.03),
            ((0.06, 0, 0.31), 0.03),
            ((-0.07, 0.1, 0.045), 0.045),
            ((0.07, 0.1, 0.045), 0.045),
            ((-0.11, 0.03, 0.15), 0.04),
            ((0.11, 0.03, 0.15), 0.04),
            ((0, 0.09, 0.24), 0.03),
        ]
        parts = [ball(r * size, (x * size, y * size, z * size), fur, tint=tint) for (x, y, z), r in places]
        eyes = [
            ball(0.01 * size, (s * 0.028 * size, 0.09 * size, 0.275 * size), style.paints[2], tint=(0.2, 0.2, 0.2))
            for s in (-1, 1)
        ]
        return Model("toy", parts + eyes).centred()
    if form == "car":
        tint = hsv(rng.random(), 0.8, 0.8)
        parts = [
            box((0.26, 0.12, 0.06), (0, 0, 0.065), paint, 0.02, tint=tint),
            box((0.13, 0.1, 0.05), (-0.02, 0, 0.115), paint, 0.02, tint=tint),
        ]
        for x in (-0.08, 0.08):
            for y in (-0.065, 0.065):
                side = np.array([[1, 0, 0, x], [0, 0, 1, y - 0.01], [0, -1, 0, 0.035], [0, 0, 0, 1.0]])
                parts.append(cylinder(0.035, 0.02, (0, 0, 0), style.paints[2], 14).moved(side))
        return Model("toy", parts).centred()
    parts = []
    for k in range(5):
        r = 0.09 - 0.013 * k
        parts.append(
            lathe(
                [(0.02, 0), (r, 0.0), (r + 0.008, 0.015), (r, 0.03), (0.02, 0.03)],
                paint,
                (0, 0, 0.03 * k),
                20,
                tint=hsv(k / 6, 0.8, 0.9),
            )
        )
    return Model("toy", [*parts, ball(0.028, (0, 0, 0.172), paint, tint=hsv(0.1, 0.8, 0.9))]).centred()


def photo_frame(rng: np.random.Generator, style: Style) -> Model:
    """A small framed picture that stands on furniture."""
    width, height = rng.uniform(0.12, 0.2), rng.uniform(0.15, 0.24)
    parts = [box((width + 0.03, 0.015, height + 0.03), (0, 0, height / 2 + 0.016), style.wood(rng), 0.003)]
    parts.append(panel((width / 2, 0.0085, 0.016), (-width, 0, 0), (0, 0, height), prints.art(rng), fitted=True))
    parts.append(box((0.02, 0.07, 0.01), (0, -0.04, 0.005), style.wood(rng), 0.0))
    return Model("picture", parts).centred()
