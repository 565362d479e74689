"""The graph of a map on the page: a tree of rooms, objects and spots; a click shows each in 3D and in its views."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import viser
from jaxtyping import UInt8
from numpy import ndarray

from locus.features.dense import SceneFeatures
from locus.tasks.naming import crops
from locus.tasks.place_graph import GraphPlace, PlaceGraph
from locus.tasks.region_pictures import TINT, tiles
from locus.viewer.panel import paragraph

FEW = 8  # neighbours that are named
COLOURS = {"room": (70, 70, 70), "object": (200, 90, 0), "spot": (120, 120, 120)}  # of buttons
SPOTS = 12  # of a place that get a button
SIDE = 150  # pixels of a picture
BOX = [(a, b) for a in range(8) for b in range(a + 1, 8) if (a ^ b).bit_count() == 1]  # corners that an edge joins
BESIDE = (70, 110, 220)


class GraphTree:
    """A tab of the panel, and what it draws. Only the chosen place's spots have buttons: there are thousands."""

    def __init__(
        self,
        server: viser.ViserServer,
        tabs: viser.GuiTabGroupHandle,
        graph: PlaceGraph,
        seen: SceneFeatures,
        guarded: Callable[[Callable[[Any], None]], Callable[[Any], None]],
    ) -> None:
        self.server, self.graph, self.seen, self.guarded = server, graph, seen, guarded
        self.spots: list[viser.GuiButtonHandle] = []
        gui = server.gui
        with tabs.add_tab("Graph"):
            counts = ", ".join(f"{len(graph.of(kind))} {kind}s" for kind in ("room", "object", "spot"))
            self.told = gui.add_html(paragraph(f"{counts}. Click one."))
            self.pictures = gui.add_image(np.full((4, 4, 3), 255, np.uint8), visible=False, jpeg_quality=80)
            self.below = gui.add_folder("Spots on it", visible=False, expand_by_default=False)
            for room in graph.inside(None):
                inside = [place for place in graph.inside(room.id) if place.kind == "object"]
                with gui.add_folder(f"{room.id}: {len(inside)} objects", expand_by_default=room == graph.places[0]):
                    for place in (room, *sorted(inside, key=lambda each: -np.prod(each.extent))):
                        self._add_button(place)

    def _add_button(self, place: GraphPlace) -> viser.GuiButtonHandle:
        button = self.server.gui.add_button(title_of(place), color=COLOURS[place.kind])
        button.on_click(self.guarded(lambda event: self.choose(place, event.client)))
        return button

    def choose(self, place: GraphPlace, client: viser.ClientHandle | None = None) -> None:
        """Box it, turn to it, tell of it, and list the spots on it."""
        with self.server.atomic():
            self.told.content = paragraph(*described(self.graph, place))
            self.server.scene.remove_by_name("/graph")
            self._draw_box("/graph/box", place, TINT)
            for a, b, _ in self.graph.edges:
                if place.id in (a, b):
                    other = b if a == place.id else a
                    self._draw_box(f"/graph/{other}", self.graph[other], BESIDE, 1.0)
            pictures = [] if place.kind == "room" else crops(place, self.seen)
            self.pictures.visible = bool(pictures)
            if pictures:
                self.pictures.image = tiles([_small(each) for each in pictures], columns=len(pictures))
            if place.kind != "spot":
                self._list_spots(place)
        if client is not None:
            client.camera.look_at = np.array(place.position)

    def _list_spots(self, place: GraphPlace) -> None:
        for button in self.spots:
            button.remove()
        with self.below:
            inside = [each for each in self.graph.inside(place.id) if each.kind == "spot"]
            best = sorted(inside, key=lambda each: -len(each.views))[:SPOTS]
            self.spots = [self._add_button(each) for each in best]
        self.below.visible = bool(self.spots)

    def _draw_box(self, name: str, place: GraphPlace, colour: tuple[int, int, int], thickness: float = 4.0) -> None:
        corners = np.indices((2, 2, 2)).reshape(3, -1).T - 0.5
        at = np.array(place.position) + corners * np.array(place.extent)
        self.server.scene.add_line_segments(
            name, at[np.array(BOX)].astype(np.float32), colour, thickness=thickness, thickness_units="screen"
        )


def title_of(place: GraphPlace) -> str:
    """What its button says: its name if it has one, and how large it is."""
    name = place.id if place.label is None else f"{place.label} ({place.id})"
    return name if place.kind == "spot" else f"{name}, {_size(place)}"


def _size(place: GraphPlace) -> str:
    return " × ".join(f"{length:.1f}" for length in place.extent) + " m"


def described(graph: PlaceGraph, place: GraphPlace) -> list[str]:
    """A place in sentences."""
    name = place.id if place.label is None else f"{place.id}: {place.label}, {place.probability:.0%} likely"
    where = f", in {place.inside}" if place.inside else ""
    told = [f"{name}.", f"{_size(place)}, seen in {len(place.views)} frames{where}."]
    inside = graph.inside(place.id)
    if inside:
        counts = ((kind, sum(each.kind == kind for each in inside)) for kind in ("object", "spot"))
        told.append(f"In it: {', '.join(f'{count} {kind}s' for kind, count in counts if count)}.")
    relations = {
        "On": [b for a, b, kind in graph.edges if kind == "on" and a == place.id],
        "On it": [a for a, b, kind in graph.edges if kind == "on" and b == place.id],
        "Near": [b if a == place.id else a for a, b, kind in graph.edges if kind == "near" and place.id in (a, b)],
    }
    for word, others in relations.items():
        if others:
            told.append(f"{word}: {', '.join(others[:FEW])}{f' and {len(others) - FEW} more' * (len(others) > FEW)}.")
    return told


def _small(picture: UInt8[ndarray, "h w 3"]) -> UInt8[ndarray, "side side 3"]:
    """In a square, its sides in proportion."""
    scale = SIDE / max(picture.shape[:2])
    rows, columns = (max(1, round(length * scale)) for length in picture.shape[:2])
    square = np.full((SIDE, SIDE, 3), 255, np.uint8)
    square[(SIDE - rows) // 2 :, (SIDE - columns) // 2 :][:rows, :columns] = cv2.resize(picture, (columns, rows))
    return square
