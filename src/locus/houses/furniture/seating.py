"""Sofas, armchairs, chairs, stools, benches, poufs."""

import numpy as np

from locus.houses import fabrics, finishes
from locus.houses.items import Item, Shelf
from locus.houses.solids import box, corners, cushion, cylinder, lathe, rod, sheet, tube
from locus.houses.style import Style
from locus.render.materials import Material
from locus.render.surfaces import Surface


def _legs(
    width: float, depth: float, height: float, thick: float, material: Material, splay: float = 0.0
) -> list[Surface]:
    """Four legs whose tops stand at the corners of a width × depth rectangle."""
    tops, out = corners(width / 2, depth / 2), 1 + splay
    if splay:
        return [rod((x * out, y * out, 0.0), (x, y, height), thick / 2, material) for x, y in tops]
    return [box((thick, thick, height), (x, y, height / 2), material, bevel=thick * 0.15) for x, y in tops]


def _upholstery(rng: np.random.Generator, style: Style) -> Material:
    return fabrics.leather(rng) if rng.random() < 0.25 else style.cloth(rng)


def sofa(rng: np.random.Generator, style: Style, seats: int | None = None, kind: str = "sofa") -> Item:
    """Two or three seats (one makes an armchair), arms square or rounded, on legs or a plinth."""
    seats = seats or int(rng.choice([2, 3, 3]))
    cloth = _upholstery(rng, style)
    pillow = cloth if rng.random() < 0.7 else style.cloth(rng)
    seat_width = rng.uniform(0.56, 0.72)
    arm = rng.uniform(0.12, 0.24)
    depth = rng.uniform(0.82, 0.98)
    leg = rng.uniform(0.05, 0.16)
    seat_top = rng.uniform(0.40, 0.46)
    back_top = seat_top + rng.uniform(0.32, 0.48)
    arm_top = seat_top + rng.uniform(0.12, 0.24)
    width = seats * seat_width + 2 * arm
    soft = rng.uniform(0.02, 0.07)
    back = rng.uniform(0.16, 0.24)
    cushion_height = 0.15
    base_top = seat_top - cushion_height
    parts = [box((width, depth, base_top - leg), (0, 0, (base_top + leg) / 2), cloth, soft)]
    for x in (-(width - arm) / 2, (width - arm) / 2):
        size, round_by = (arm, depth, arm_top - leg - 0.01), min(soft * 1.5, arm * 0.45)
        parts.append(box(size, (x, 0, (arm_top + leg + 0.01) / 2), cloth, round_by))
    inner = width - 2 * arm - 0.01
    parts.append(box((inner, back, back_top - leg), (0, -(depth - back) / 2, (back_top + leg) / 2), cloth, soft))
    for k in range(seats):
        x = (k - (seats - 1) / 2) * seat_width
        size = (seat_width - 0.012, depth - back - 0.01, cushion_height)
        parts.append(cushion(size, (x, back / 2 + 0.01, seat_top - cushion_height / 2), pillow, bulge=0.15))
        height = back_top - seat_top + rng.uniform(-0.02, 0.05)
        centre = (x, -depth / 2 + back + 0.085, seat_top + height / 2 + 0.012)
        parts.append(cushion((seat_width - 0.02, 0.16, height), centre, pillow, bulge=0.25))
    legs = style.metal if rng.random() < 0.4 else style.wood(rng)
    parts += _legs(width - 0.14, depth - 0.14, leg + 0.004, 0.045, legs)
    seat = Shelf(-inner / 2, -depth / 2 + back + 0.18, inner / 2, depth / 2 - 0.02, seat_top + 0.012, 1.5)
    return Item(kind, parts, [seat])


def armchair(rng: np.random.Generator, style: Style) -> Item:
    if rng.random() < 0.55:
        return sofa(rng, style, seats=1, kind="armchair")
    # A shell chair: one bent sheet on splayed legs.
    cloth = _upholstery(rng, style)
    width, seat, high = rng.uniform(0.64, 0.76), rng.uniform(0.36, 0.42), rng.uniform(0.8, 1.02)
    parts = [cushion((width - 0.08, 0.58, 0.14), (0, 0.03, seat), cloth, bulge=0.2)]
    turn = np.linspace(np.pi * 1.12, np.pi * -0.12, 15)
    rise = np.linspace(0, 1, 6)
    low = seat - 0.07
    top = low + (high - low) * (0.55 + 0.45 * np.sin(np.clip(turn, 0, np.pi)))
    x = width / 2 * np.cos(turn)[None] * (1 + 0.08 * rise[:, None])
    y = -0.36 * np.sin(turn)[None] * (1 + 0.15 * rise[:, None]) + 0.04
    z = low + (top[None] - low) * rise[:, None]
    inner = np.stack([x, y, z], -1)
    outer = np.stack([x * 1.09, y * 1.09 - 0.01, z + 0.01], -1)
    rim = np.stack([inner[-1], outer[-1]])
    parts += [sheet(inner[:, ::-1], cloth), sheet(outer, cloth), sheet(rim[:, ::-1], cloth)]
    parts += _legs(width * 0.6, 0.4, low, 0.035, style.wood(rng), splay=0.35)
    return Item("armchair", parts, [Shelf(-0.22, -0.15, 0.22, 0.25, seat + 0.085, 1.0)]).centred()


def chair(rng: np.random.Generator, style: Style) -> Item:
    """Slats, a ladder, a panel or a shell for a back; wood, cloth or plastic."""
    wood = style.body(rng)
    width, depth = rng.uniform(0.40, 0.48), rng.uniform(0.40, 0.47)
    seat, high = rng.uniform(0.44, 0.47), rng.uniform(0.82, 1.0)
    thick = rng.uniform(0.028, 0.042)
    form = rng.choice(["slats", "ladder", "panel", "shell", "padded"])
    top = wood
    parts = []
    if form == "shell":
        shell = finishes.plastic(rng, style.accent(rng) if rng.random() < 0.5 else (0.92, 0.92, 0.9))
        u = np.linspace(-1, 1, 9)[None]
        front = [(0.22, 0.0), (0.2, 0.012), (0.0, -0.015), (-0.16, 0.0)]
        path = np.array([*front, (-0.2, 0.06), (-0.23, 0.2), (-0.25, high - seat - 0.02)])
        x = np.broadcast_to(u * width / 2, (len(path), 9)) * np.linspace(1, 0.85, len(path))[:, None]
        y = path[:, :1] + 0.04 * u**2 * (np.arange(len(path))[:, None] > 3)
        z = seat + path[:, 1:] + 0.03 * u**2
        top_side = np.stack([x, np.broadcast_to(y, x.shape), z], -1)
        parts += [sheet(top_side[:, ::-1], shell), sheet(top_side - np.array([0, 0.006, 0.014]), shell)]
        legs = style.metal if rng.random() < 0.4 else wood
        parts += _legs(width * 0.55, depth * 0.5, seat - 0.02, 0.03, legs, splay=0.5)
        return Item("chair", parts, [Shelf(-0.15, -0.1, 0.15, 0.15, seat + 0.035, 1)]).centred()
    padded = form == "padded" or rng.random() < 0.3
    if padded:
        top = style.cloth(rng)
        parts.append(cushion((width, depth, 0.07), (0, 0, seat - 0.03), top, bulge=0.2))
    else:
        parts.append(box((width, depth, 0.025), (0, 0, seat - 0.0125), wood, bevel=0.01))
    inset = thick / 2 + 0.01
    for x in (-width / 2 + inset, width / 2 - inset):
        parts.append(box((thick, thick, seat - 0.03), (x, depth / 2 - inset, (seat - 0.03) / 2), wood))
        parts.append(box((thick, thick, high), (x, -depth / 2 + thick / 2 - 0.005, high / 2), wood))
    for y in (depth / 2 - inset, -depth / 2 + thick / 2):
        parts.append(box((width - 2 * inset - thick, 0.02, 0.05), (0, y, seat - 0.075), wood))
    span, back = width - 2 * inset - thick, -depth / 2 + thick / 2 - 0.005
    if form == "slats":
        for x in np.linspace(-span / 2 + 0.03, span / 2 - 0.03, int(rng.integers(4, 8))):
            parts.append(box((0.016, 0.016, high - seat - 0.06), (x, back, (high + seat) / 2 - 0.03), wood, 0.004))
        parts.append(box((span, 0.022, 0.07), (0, back, high - 0.04), wood))
    elif form == "ladder":
        for z in np.linspace(seat + 0.14, high - 0.05, int(rng.integers(2, 5))):
            parts.append(box((span, 0.018, 0.05), (0, back, z), wood))
    else:
        size = (span, 0.05 if padded else 0.016, (high - seat) * 0.6)
        parts.append((cushion if padded else box)(size, (0, back, high - (high - seat) * 0.33), top))
    return Item("chair", parts, [Shelf(-0.15, -0.12, 0.15, 0.15, seat + (0.02 if padded else 0.002), 1)]).centred()


def office_chair(rng: np.random.Generator, style: Style) -> Item:
    black = finishes.plastic(rng, (0.1, 0.1, 0.11))
    cloth = fabrics.fabric(rng, plain=True) if rng.random() < 0.7 else fabrics.leather(rng)
    seat, high = rng.uniform(0.44, 0.52), rng.uniform(0.45, 0.7)
    wheel = [(0.0, -0.027), (0.02, -0.02), (0.027, 0), (0.02, 0.02), (0.0, 0.027)]
    parts = []
    for angle in 2 * np.pi * (np.arange(5) + 0.25) / 5:
        x, y = 0.29 * np.cos(angle), 0.29 * np.sin(angle)
        parts.append(rod((0, 0, 0.1), (x, y, 0.06), 0.018, black))
        parts.append(lathe(wheel, black, (x, y, 0.028)))
    parts.append(cylinder(0.028, seat - 0.16, (0, 0, 0.09), style.metal, 12))
    parts.append(cushion((0.48, 0.46, 0.09), (0, 0.02, seat - 0.03), cloth, bulge=0.2))
    parts.append(cushion((0.44, 0.08, high), (0, -0.23, seat + 0.12 + high / 2), cloth, bulge=0.3))
    parts.append(box((0.06, 0.03, 0.3), (0, -0.285, seat + 0.1), black))
    if rng.random() < 0.7:
        for side in (-1, 1):
            parts.append(box((0.05, 0.26, 0.03), (side * 0.27, 0.0, seat + 0.2), black, 0.012))
            parts.append(box((0.03, 0.05, 0.2), (side * 0.27, -0.02, seat + 0.09), black))
    return Item("office chair", parts).centred()


def stool(rng: np.random.Generator, style: Style, high: bool = False) -> Item:
    height = rng.uniform(0.62, 0.72) if high else rng.uniform(0.42, 0.5)
    wood = style.body(rng)
    radius = rng.uniform(0.15, 0.19)
    if rng.random() < 0.5:
        profile = [(0, -0.05), (radius, -0.05), (radius + 0.01, -0.025), (radius - 0.01, 0), (0, 0.005)]
        seat = lathe(profile, style.cloth(rng), (0, 0, height))
    else:
        seat = cylinder(radius, 0.03, (0, 0, height - 0.03), wood)
    legs = style.metal if rng.random() < 0.4 else wood
    parts = [seat, *_legs(radius * 1.2, radius * 1.2, height - 0.03, 0.03, legs, splay=0.35)]
    if high:
        ring = np.linspace(0, 2 * np.pi, 25)
        foot = np.stack([radius * 0.95 * np.cos(ring), radius * 0.95 * np.sin(ring), np.full(25, 0.25)], -1)
        parts.append(tube(foot, 0.009, style.metal))
    return Item("stool", parts).centred()


def bench(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(0.9, 1.3), rng.uniform(0.32, 0.4), rng.uniform(0.42, 0.48)
    wood = style.wood(rng)
    parts = [box((width, depth, 0.035), (0, 0, height - 0.0175), wood)]
    parts += _legs(width - 0.16, depth - 0.1, height - 0.035, 0.045, style.metal if rng.random() < 0.3 else wood)
    if rng.random() < 0.5:
        parts.append(cushion((width - 0.06, depth - 0.04, 0.06), (0, 0, height + 0.03), style.cloth(rng), bulge=0.1))
        height += 0.062
    return Item("bench", parts, [Shelf(-width / 2 + 0.05, -depth / 2, width / 2 - 0.05, depth / 2, height + 0.003, 1)])


def pouf(rng: np.random.Generator, style: Style) -> Item:
    radius, height = rng.uniform(0.22, 0.32), rng.uniform(0.3, 0.42)
    profile = [(0, 0), (0.86, 0.0), (1, 0.25), (1, 0.7), (0.85, 0.95), (0, 1)]
    return Item("pouf", [lathe([(radius * r, height * z) for r, z in profile], style.cloth(rng))])
