"""The taste of one household: colours and materials that recur through its rooms."""

from dataclasses import dataclass

import numpy as np

from locus.houses import fabrics, finishes
from locus.houses.patterns import Colour, any_hue, hsv, near
from locus.render.materials import Material

METALS = ((0.8, 0.8, 0.8), (0.75, 0.62, 0.38), (0.22, 0.22, 0.22))


@dataclass(frozen=True, eq=False)
class Style:
    floor: Material
    trim: Material
    door: Material
    door_panels: tuple[tuple[float, float], ...]
    window_frame: Material
    sill: Material
    metal: Material
    woods: tuple[Material, ...]
    paints: tuple[Material, ...]
    cloths: tuple[Material, ...]
    hue: float
    textures: tuple[Material, ...] = ()
    """Photographs of a user's, taken for wall pictures and materials."""

    def wall_colour(self, rng: np.random.Generator) -> Colour:
        """Mostly off-white, often a light tint."""
        if rng.random() < 0.45:
            return hsv(rng.uniform(0.08, 0.16), rng.uniform(0.01, 0.08), rng.uniform(0.84, 0.93))
        return hsv(self.hue + rng.normal(0, 0.08), rng.uniform(0.03, 0.2), rng.uniform(0.72, 0.92))

    def accent(self, rng: np.random.Generator) -> Colour:
        hue = self.hue + rng.normal(0, 0.05) if rng.random() < 0.5 else any_hue(rng)
        return hsv(hue, rng.uniform(0.15, 0.65), rng.uniform(0.3, 0.8))

    def wood(self, rng: np.random.Generator) -> Material:
        return self.woods[rng.integers(len(self.woods))]

    def body(self, rng: np.random.Generator) -> Material:
        """For the body of furniture: wood or paint."""
        return self.wood(rng) if rng.random() < 0.6 else self.paints[rng.integers(len(self.paints))]

    def cloth(self, rng: np.random.Generator) -> Material:
        """Sometimes one that recurs in the house, mostly a new one."""
        if self.textures and rng.random() < 0.3:
            return self.textures[rng.integers(len(self.textures))]
        return self.cloths[rng.integers(len(self.cloths))] if rng.random() < 0.4 else fabrics.fabric(rng)


def draw_style(rng: np.random.Generator, textures: tuple[Material, ...] = ()) -> Style:
    hue = any_hue(rng)
    white = near(rng, (0.93, 0.92, 0.90), 0.02)
    floors = (finishes.floorboards, finishes.floorboards, finishes.parquet, finishes.carpet, finishes.concrete)
    trim = finishes.painted_wood(rng, white) if rng.random() < 0.75 else finishes.wood(rng)
    door = finishes.painted_wood(rng, white) if rng.random() < 0.55 else finishes.wood(rng)
    panels = (((0.08, 0.42), (0.5, 0.94)), ((0.06, 0.94),), (), ((0.07, 0.3), (0.36, 0.62), (0.68, 0.94)))
    dark = rng.random() < 0.25
    paint = [white, hsv(hue, rng.uniform(0.1, 0.5), rng.uniform(0.4, 0.9)), near(rng, (0.2, 0.2, 0.22), 0.1)]
    return Style(
        floor=floors[rng.integers(len(floors))](rng),
        trim=trim,
        door=door,
        door_panels=panels[rng.integers(len(panels))],
        window_frame=finishes.painted_wood(rng, (0.2, 0.2, 0.21) if dark else white),
        sill=finishes.marble(rng) if rng.random() < 0.4 else trim,
        metal=finishes.metal(rng, near(rng, METALS[rng.integers(len(METALS))])),
        woods=tuple(finishes.wood(rng) for _ in range(4)),
        paints=tuple(finishes.painted_wood(rng, colour) for colour in paint),
        cloths=tuple(fabrics.fabric(rng) for _ in range(3)),
        hue=hue,
        textures=textures,
    )
