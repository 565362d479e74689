"""Building a house from a seed: plan, shell, furniture, light; and what its cameras need."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32

from locus.houses import prints, shell
from locus.houses.classes import CLASS_ID
from locus.houses.floor_plan import PRIVACY, FloorPlan, Hole, Passage, RoomSide
from locus.houses.ground import free_ground
from locus.houses.items import Item, boxes_of
from locus.houses.placing import Placed, open_space
from locus.houses.planning import draw_plan
from locus.houses.rooms import bathroom, bedroom, corridor, dining, kitchen, living, study
from locus.houses.rooms.common import Household
from locus.houses.style import Style, draw_style
from locus.render.baking import Baked, bake
from locus.render.cameras import Ground
from locus.render.lights import Lights, Outside, Window
from locus.render.lit_mesh import LitMesh
from locus.render.materials import Material
from locus.render.surfaces import Surface, Thing, join
from locus.scenes.rays import Tracer

FURNISH = {
    "living": living.furnish,
    "kitchen": kitchen.furnish,
    "bedroom": bedroom.furnish,
    "bathroom": bathroom.furnish,
    "study": study.furnish,
    "dining": dining.furnish,
    "corridor": corridor.furnish,
}


@dataclass(frozen=True, eq=False)
class House:
    """A furnished house. `things` hold all that is seen, `placed` what was put into the rooms."""

    seed: int
    plan: FloorPlan
    things: list[Thing]
    placed: list[Placed]
    lights: Lights

    def ground(self) -> Ground:
        """Where a camera can stand."""
        doors = [boxes_of(thing.parts) for thing in self.things if thing.semantic == CLASS_ID["door"]]
        return free_ground(self.plan, np.concatenate([thing.boxes for thing in self.placed] + doors))

    def lit(self) -> LitMesh:
        """Light the house; takes seconds."""
        mesh = join(self.things)
        # Grown, so that what is fixed to the walls belongs to the room.
        grown = np.array([-0.05, -0.05, 0.05, 0.05])
        rooms = np.array([np.array(room.inner) + grown for room in self.plan.rooms], np.float32)

        def light(tracer: Tracer, albedo: Float32[np.ndarray, "f 3"]) -> Baked:
            return bake(mesh, tracer, self.lights, albedo, rooms, self.seed)

        return LitMesh(mesh, self.lights, light)


def stream(seed: int, name: str) -> np.random.Generator:
    """A random stream of its own for each purpose, so that a change in one leaves the others as they were."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def build(
    seed: int, outside_models: dict[str, list[Callable[[], Item]]] | None = None, textures: tuple[Material, ...] = ()
) -> House:
    """FloorPlan, build and furnish the house of a seed."""
    plan = draw_plan(stream(seed, "plan"))
    style = draw_style(stream(seed, "style"), textures)
    builder = _Builder(seed, plan, style)
    weather = draw_weather(stream(seed, "weather"))
    leaves = builder.shell()
    lamps_on = {"sunny": 0.3, "overcast": 0.6, "evening": 0.95}[weather]
    home = Household(stream(seed, "furniture"), style, lamps_on, outside_models or {})
    placed: list[Placed] = []
    for number, room in enumerate(plan.rooms):
        space = open_space(plan, number, home.rng)
        space.solid += leaves.get(number, [])
        FURNISH[room.use](space, home)
        builder.walls[number].parts.extend(space.wall_parts)
        placed += space.placed
    for thing in placed:
        builder.add(thing.kind, thing.parts)
    lamps = [lamp for thing in placed for lamp in thing.lamps]
    outside = draw_outside(stream(seed, "outside"), weather, builder.windows)
    return House(seed, plan, builder.things, placed, Lights(outside, builder.windows, lamps))


class _Builder:
    """Collects things and numbers them."""

    def __init__(self, seed: int, plan: FloorPlan, style: Style) -> None:
        self.seed, self.plan, self.style = seed, plan, style
        self.things: list[Thing] = []
        self.walls: list[Thing] = []
        self.windows: list[Window] = []

    def add(self, kind: str, parts: list[Surface]) -> Thing:
        thing = Thing(CLASS_ID[kind], len(self.things) + 1, parts)
        self.things.append(thing)
        return thing

    def shell(self) -> dict[int, list[tuple[float, ...]]]:
        """Floors, ceilings, walls, doors, windows. Returns the boxes that open door leaves take in each room."""
        rng = stream(self.seed, "shell")
        plan, style = self.plan, self.style
        for room in plan.rooms:
            floor, ceiling, walls = shell.room_parts(rng, room, style, plan.height)
            self.add("floor", floor)
            self.add("ceiling", ceiling)
            self.walls.append(self.add("wall", walls))
        bars = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2]))
        for number, room in enumerate(plan.rooms):
            for side in room.sides:
                for hole in side.holes:
                    if hole.kind == "window":
                        self._window(number, side, hole, bars)
        leaves: dict[int, list[tuple[float, ...]]] = {}
        for passage in plan.passages:
            parts = shell.door_parts(passage, plan, style)
            if passage.kind == "door":
                number, leaf = self._leaf(rng, passage)
                leaves.setdefault(number, []).extend(tuple(box) for box in boxes_of(leaf))
                parts += leaf
            self.add("door", parts)
        return leaves

    def _leaf(self, rng: np.random.Generator, passage: Passage) -> tuple[int, list[Surface]]:
        """An open leaf and the room in which it stands: rather the more private one, rather along a corner, and never
        before another door. Where it would always be in the way, the door has none."""
        angle = float(rng.uniform(np.radians(88), np.radians(97)))
        rooms = self.plan.rooms
        others = [other for other in self.plan.passages if other is not passage]
        for end in sorted((0, 1), key=lambda k: -PRIVACY[rooms[passage.rooms[k]].use]):
            side = rooms[passage.rooms[end]].sides[passage.sides[end]]
            middle = side.along(*passage.centre)
            for way in (1, -1) if middle < side.length / 2 else (-1, 1):
                hinge = middle - way * passage.width / 2
                size = (passage.width - 0.03, passage.height - 0.02)
                leaf = shell.leaf_parts(side, hinge, way, size, angle, self.style)
                if not any(_before(other, box) for other in others for box in boxes_of(leaf)):
                    return passage.rooms[end], leaf
        return passage.rooms[0], []

    def _window(self, number: int, side: RoomSide, hole: Hole, bars: tuple[int, int]) -> None:
        columns = max(bars[0], 1 + int((hole.s1 - hole.s0) / 1.3))
        thing = self.add("window", shell.window_parts(side, hole, self.style, columns, bars[1]))
        x, y = side.at((hole.s0 + hole.s1) / 2, -0.16)
        half = (hole.s1 - hole.s0) / 2
        self.windows.append(
            Window(
                (x, y, (hole.z0 + hole.z1) / 2),
                (side.right[0] * half, side.right[1] * half, 0.0),
                (0.0, 0.0, (hole.z1 - hole.z0) / 2),
                (*side.normal, 0.0),
                number,
                thing.semantic,
                thing.instance,
            )
        )


def _before(passage: Passage, box: Float[np.ndarray, " 6"]) -> bool:
    """Whether a box stands in the way through a passage, or right before it."""
    along, through = passage.width / 2 + 0.1, 0.9
    half = np.array([along, through] if passage.sides[0] in (0, 2) else [through, along])
    return bool((np.maximum(box[:2] - passage.centre, passage.centre - box[3:5]) < half).all())


def draw_weather(rng: np.random.Generator) -> str:
    return str(rng.choice(["sunny", "overcast", "evening"], p=[0.55, 0.28, 0.17]))


def draw_outside(rng: np.random.Generator, weather: str, windows: list[Window]) -> Outside:
    """The sun stands where it shines through one of the windows."""
    window = windows[rng.integers(len(windows))]
    azimuth = np.arctan2(-window.inward[1], -window.inward[0]) + rng.uniform(-0.8, 0.8)
    height = rng.uniform(0.35, 0.95)
    sun = np.array([np.cos(azimuth) * np.cos(height), np.sin(azimuth) * np.cos(height), np.sin(height)], np.float32)
    warmth = 1 - 0.35 * (0.95 - height)
    colour = np.array([1.0, 0.95 * warmth**0.4, 0.88 * warmth], np.float32)
    strength = rng.uniform(5.0, 9.0) if weather == "sunny" else 0.0
    return Outside(prints.panorama(rng, weather), sun, colour * np.float32(strength))
