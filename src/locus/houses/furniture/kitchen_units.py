"""Kitchens: rows of units with sink, hob and oven, cabinets, cooker hood, fridge, island."""

import numpy as np

from locus.houses import finishes, prints
from locus.houses.furniture.storage import drawers
from locus.houses.items import Item, Shelf
from locus.houses.motions import forward, moved, shift
from locus.houses.patterns import any_hue, hsv
from locus.houses.solids import box, corners, cylinder, lathe, panel, sheet, tube
from locus.houses.style import Style

WORKTOP = 0.9
DEPTH = 0.6


class KitchenLook:
    """The materials that one kitchen shares."""

    def __init__(self, rng: np.random.Generator, style: Style) -> None:
        tops = (finishes.granite, finishes.marble, lambda r: style.wood(r), finishes.concrete)
        self.front = style.body(rng) if rng.random() < 0.6 else finishes.painted_wood(rng, style.accent(rng))
        self.body = self.front if rng.random() < 0.5 else style.paints[0]
        self.top = tops[rng.integers(len(tops))](rng)
        self.steel = finishes.metal(rng, (0.75, 0.75, 0.76))
        self.black = finishes.plastic(rng, (0.06, 0.06, 0.07))


def counter(
    rng: np.random.Generator, style: Style, look: KitchenLook, width: float, hole: tuple[float, float] | None
) -> Item:
    """A run of base units under one worktop; `hole` is the span (x0, x1) of a sink let into it."""
    units = max(1, round(width / 0.6))
    plinth, thick = 0.1, 0.035
    parts = [box((width, DEPTH - 0.08, plinth), (0, -0.03, plinth / 2), look.black, 0.002)]
    for k in range(units):
        x = (k - (units - 1) / 2) * width / units
        rows = int(rng.choice([1, 1, 3, 4]))
        size = (width / units - 0.002, DEPTH - 0.03, WORKTOP - thick - plinth)
        parts += moved(drawers(rng, style, size, rows, 1, look.body, look.front), shift(x, -0.015, plinth))
    boards = [(-width / 2, width / 2, -DEPTH / 2, DEPTH / 2)]
    if hole is not None:
        x0, x1 = hole
        beside = [(-width / 2, x0, -DEPTH / 2, DEPTH / 2), (x1, width / 2, -DEPTH / 2, DEPTH / 2)]
        boards = [board for board in beside if board[1] - board[0] > 0.005]
        boards += [(x0, x1, -DEPTH / 2, -0.2), (x0, x1, 0.2, DEPTH / 2)]
    for left, right, back, front in boards:
        centre = ((left + right) / 2, (back + front) / 2, WORKTOP - thick / 2)
        parts.append(box((right - left, front - back, thick), centre, look.top, 0.004))
    low, high = -width / 2 + 0.03, width / 2 - 0.03
    # Nothing stands over the sink.
    spans = [(low, high)] if hole is None else [(low, hole[0] - 0.03), (hole[1] + 0.03, high)]
    shelves = [Shelf(x0, -DEPTH / 2 + 0.02, x1, DEPTH / 2 - 0.08, WORKTOP, 0.5) for x0, x1 in spans]
    return Item("kitchen counter", parts, shelves)


def sink(rng: np.random.Generator, look: KitchenLook, width: float) -> Item:
    """A basin seen into from above, with a tap behind; its rim lies on the worktop, so its origin is there."""
    material = look.steel if rng.random() < 0.7 else finishes.ceramic(rng)
    deep, half_w, half_d, wall = 0.17, width / 2, 0.2, 0.012
    rim, inner = 0.02, 0.4 - 2 * wall
    solids = [((width, wall, deep), (0.0, way * (half_d - wall / 2), -deep / 2)) for way in (-1, 1)]
    solids += [((wall, inner, deep), (way * (half_w - wall / 2), 0.0, -deep / 2)) for way in (-1, 1)]
    solids += [((width - 2 * wall, inner, wall), (0.0, 0.0, -deep + wall / 2))]
    solids += [((width + 2 * rim, rim, 0.006), (0.0, way * (half_d + rim / 2), 0.004)) for way in (-1, 1)]
    solids += [((rim, 0.4, 0.006), (way * (half_w + rim / 2), 0.0, 0.004)) for way in (-1, 1)]
    parts = [box(size, centre, material, 0.002) for size, centre in solids]
    turn = np.linspace(np.pi, 0.1, 12)
    arc = np.stack([np.zeros(12), -0.14 + 0.075 * np.cos(turn) + 0.0, 0.24 + 0.075 * np.sin(turn)], -1)
    arc = np.concatenate([[[0, -0.215, 0.0], [0, -0.215, 0.12]], arc])
    parts.append(tube(arc, 0.011, look.steel, 10))
    parts.append(box((0.016, 0.05, 0.012), (0.035, -0.215, 0.06), look.steel))
    return Item("sink", parts)


def hob(rng: np.random.Generator, look: KitchenLook) -> Item:
    width = 0.56
    corner = (-width / 2 + 0.01, -0.24, 0.0085)
    plate = panel(corner, (width - 0.02, 0, 0), (0, 0.48, 0), prints.hob_plate(rng), fitted=True)
    parts = [box((width, 0.5, 0.008), (0, 0, 0.004), look.black, 0.002), plate]
    if rng.random() < 0.4:
        burner = [(0.03, 0), (0.045, 0.004), (0.045, 0.012), (0, 0.014)]
        for x, y in corners(0.13, 0.11):
            parts.append(lathe(burner, look.black, (x, y, 0.009), 14))
            parts.append(box((0.17, 0.008, 0.01), (x, y, 0.03), look.black, 0.0))
            parts.append(box((0.008, 0.17, 0.01), (x, y, 0.031), look.black, 0.0))
    return Item("hob", parts)


def oven(rng: np.random.Generator, look: KitchenLook) -> Item:
    """The front of a built-in oven, 0.56 wide, that stands a little proud of the units; hangs at their face."""
    shell = look.steel if rng.random() < 0.6 else look.black
    glass = finishes.plastic(rng, (0.04, 0.04, 0.045))
    parts = [box((0.57, 0.02, 0.56), (0, 0.011, 0.28), shell, 0.004)]
    parts.append(box((0.44, 0.006, 0.3), (0, 0.024, 0.22), glass, 0.002))
    parts.append(box((0.44, 0.014, 0.016), (0, 0.05, 0.41), look.steel, 0.005))
    parts += [box((0.014, 0.03, 0.014), (x, 0.036, 0.41), look.steel, 0.0) for x in (-0.2, 0.2)]
    for x in np.linspace(-0.22, 0.22, 5):
        if abs(x) > 0.05:
            knob = cylinder(0.018, 0.02, (0, 0, 0), look.black if shell is look.steel else look.steel, 12)
            parts.append(knob.moved(forward(x, 0.021, 0.5)))
    parts.append(box((0.09, 0.003, 0.035), (0, 0.0225, 0.5), glass, 0.0))
    return Item("oven", parts)


def cabinet(style: Style, look: KitchenLook, width: float) -> Item:
    """A wall cabinet; its back is at y = 0."""
    deep, high = 0.33, 0.62
    doors = max(1, round(width / 0.5))
    parts = [box((width, deep - 0.018, high), (0, (deep - 0.018) / 2, high / 2), look.body, 0.003)]
    for k in range(doors):
        x = (k - (doors - 1) / 2) * width / doors
        parts.append(box((width / doors - 0.006, 0.018, high - 0.006), (x, deep - 0.009, high / 2), look.front, 0.003))
        edge = x + (width / doors / 2 - 0.04) * (1 if k % 2 == 0 else -1)
        parts.append(box((0.012, 0.018, 0.12), (edge, deep + 0.009, 0.1), style.metal, 0.003))
    return Item("kitchen cabinet", parts)


def cooker_hood(look: KitchenLook, ceiling: float) -> Item:
    """Back at y = 0; reaches up to `ceiling` above its lower edge."""
    width = 0.6
    parts = [box((width, 0.48, 0.06), (0, 0.241, 0.03), look.steel, 0.004)]

    def ring(half: float, front: float, z: float) -> list[tuple[float, float, float]]:
        return [(-half, 0.002, z), (half, 0.002, z), (half, front, z), (-half, front, z), (-half, 0.002, z)]

    funnel = np.array([ring(width / 2, 0.48, 0.06), ring(0.13, 0.26, 0.26)])
    parts += [sheet(funnel[:, k : k + 2], look.steel) for k in range(4)]
    parts.append(box((0.26, 0.26, ceiling - 0.26), (0, 0.131, (ceiling + 0.26) / 2), look.steel, 0.004))
    return Item("cooker hood", parts)


def fridge(rng: np.random.Generator, style: Style) -> Item:
    width, depth, height = rng.uniform(0.58, 0.7), rng.uniform(0.6, 0.66), rng.uniform(1.6, 1.95)
    pick = rng.random()
    if pick < 0.4:
        shell = finishes.metal(rng, (0.72, 0.73, 0.74))
    else:
        shell = finishes.plastic(rng, (0.92, 0.92, 0.92) if pick < 0.8 else style.accent(rng))
    split = height * rng.choice([0.35, 0.65])
    parts = [box((width, depth - 0.07, height), (0, -0.035, height / 2), shell, 0.01)]
    for low, high in ((0.03, split - 0.005), (split + 0.005, height)):
        parts.append(box((width, 0.065, high - low), (0, depth / 2 - 0.033, (low + high) / 2), shell, 0.015))
        middle = high - 0.25 if low < 0.1 else low + 0.25
        x, y = -width / 2 + 0.05, depth / 2
        parts.append(box((0.02, 0.02, 0.32), (x, y + 0.025, middle), style.metal, 0.006))
        parts += [box((0.014, 0.03, 0.014), (x, y + 0.008, middle + end), style.metal, 0.0) for end in (-0.13, 0.13)]
    for _ in range(int(rng.integers(0, 6))):
        # Notes and magnets.
        x, z = rng.uniform(-width / 2 + 0.1, width / 2 - 0.12), rng.uniform(split + 0.1, height - 0.15)
        size = (rng.uniform(0.04, 0.12), 0.002, rng.uniform(0.04, 0.14))
        tint = hsv(any_hue(rng), rng.uniform(0, 0.7), 0.95)
        parts.append(box(size, (x, depth / 2 + 0.001, z), style.paints[0], 0.0, tint=tint))
    top = Shelf(-width / 2 + 0.05, -depth / 2, width / 2 - 0.05, depth / 2 - 0.1, height, 0.4)
    return Item("fridge", parts, [top])


def island(rng: np.random.Generator, style: Style, look: KitchenLook) -> Item:
    width, depth = rng.uniform(1.1, 1.7), rng.uniform(0.75, 0.95)
    size = (width - 0.1, depth - 0.25, WORKTOP - 0.14)
    chest = drawers(rng, style, size, 3, max(2, int(width / 0.5)), look.body, look.front)
    parts = moved(chest, shift(0, 0.1, 0.1))
    parts.append(box((width - 0.14, depth - 0.35, 0.1), (0, 0.1, 0.05), look.black, 0.002))
    parts.append(box((width, depth, 0.04), (0, 0, WORKTOP - 0.02), look.top, 0.004))
    return Item("kitchen island", parts, [Shelf.on_top(width, depth, WORKTOP, 1.0, inset=0.05)])
