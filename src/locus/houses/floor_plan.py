"""The floor plan of a house: rooms in a rectangle, doors and openings between them, windows to the outside."""

from dataclasses import dataclass, field

INNER_WALL = 0.12
OUTER_WALL = 0.28

# How much a room dislikes to be walked through.
PRIVACY = {"corridor": 0, "living": 1, "dining": 1, "kitchen": 2, "study": 4, "bedroom": 5, "bathroom": 9}

Rectangle = tuple[float, float, float, float]
"""x0, y0, x1, y1."""


@dataclass(frozen=True)
class Hole:
    """A rectangular hole in one side of a room: from s0 to s1 along the side, from z0 to z1 in height."""

    kind: str
    """door, opening or window."""
    s0: float
    s1: float
    z0: float
    z1: float


@dataclass
class RoomSide:
    """One wall of a room, seen from inside: it starts at its left end and runs to the right."""

    start: tuple[float, float]
    right: tuple[float, float]
    normal: tuple[float, float]
    """Into the room."""
    length: float
    outer: bool
    holes: list[Hole] = field(default_factory=list)

    def at(self, along: float, away: float = 0.0) -> tuple[float, float]:
        """The point of the floor plan that lies `along` the side and `away` from it."""
        return (
            self.start[0] + along * self.right[0] + away * self.normal[0],
            self.start[1] + along * self.right[1] + away * self.normal[1],
        )

    def along(self, x: float, y: float) -> float:
        return (x - self.start[0]) * self.right[0] + (y - self.start[1]) * self.right[1]


@dataclass
class Room:
    use: str
    inner: Rectangle
    """Between the faces of its walls."""
    sides: list[RoomSide]

    @property
    def area(self) -> float:
        x0, y0, x1, y1 = self.inner
        return (x1 - x0) * (y1 - y0)

    @property
    def centre(self) -> tuple[float, float]:
        x0, y0, x1, y1 = self.inner
        return (x0 + x1) / 2, (y0 + y1) / 2


@dataclass(frozen=True)
class Passage:
    """A door or an opening between two rooms."""

    kind: str
    rooms: tuple[int, int]
    sides: tuple[int, int]
    centre: tuple[float, float]
    width: float
    height: float

    def hole(self, side: RoomSide) -> Hole:
        """What it cuts out of a side."""
        middle = side.along(*self.centre)
        return Hole(self.kind, middle - self.width / 2, middle + self.width / 2, 0.0, self.height)


@dataclass
class FloorPlan:
    rooms: list[Room]
    passages: list[Passage]
    height: float
    """From floor to ceiling."""
