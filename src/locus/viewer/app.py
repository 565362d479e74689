"""The page: its panel, and what happens when something is clicked, moved or uploaded."""

from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any

import numpy as np
import viser

from locus.errors import LocusError
from locus.tasks.place_graph import PlaceGraph
from locus.tasks.region_pictures import TINT, captioned, outlined, tiles
from locus.viewer.canvas import Canvas
from locus.viewer.colouring import feature_colours, landmark_colours
from locus.viewer.lighting import Lit, light
from locus.viewer.locating import LocatedImage, locate_frame, locate_image
from locus.viewer.panel import HELP, Panel, paragraph
from locus.viewer.picking import Hit, Ray
from locus.viewer.tree import GraphTree
from locus.viewer.viewed import ViewedScene

VIEWS = 4  # shown in the panel, of those that something is lit in


class Page:
    """One scene on one server. Everybody who opens the page sees, and changes, the same."""

    def __init__(self, server: viser.ViserServer, viewed: ViewedScene, graph: PlaceGraph | None = None) -> None:
        self.server, self.viewed = server, viewed
        self.lock = RLock()  # callbacks come from many threads
        self.canvas = Canvas(server, viewed)
        self.hit: Hit | None = None
        self.lit: Lit | None = None
        self.turn = 0  # how often the lights have changed
        self.drawn: dict[str, Any] = {}  # what each part was drawn for, so that nothing is sent twice
        self.by_feature = cache(lambda scale: feature_colours(viewed, scale))
        self.panel = Panel(server.gui, viewed, self.canvas)
        if graph is not None:
            self.tree = GraphTree(server, self.panel.tabs, graph, viewed.seen, self._guarded)
        self._connect()
        self.redraw()

    def _connect(self) -> None:
        panel, guarded = self.panel, self._guarded
        on_ray = guarded(lambda event: self.click(Ray.of(event.ray_origin, event.ray_direction)))
        self.server.scene.on_click()(on_ray)
        panel.threshold.on_update(guarded(lambda _: self.relight()))
        panel.scale.on_update(guarded(lambda _: self.choose(None)))
        for control in (panel.colours, panel.cut, panel.cameras, panel.balls, panel.balls_by, panel.least, panel.size):
            control.on_update(guarded(lambda _: self.redraw()))
        panel.clear.on_click(guarded(lambda _: self.choose(None)))
        panel.through.on_click(guarded(self._look_through))
        panel.locate.on_click(guarded(lambda _: self.localize_frame(panel.frame.value)))
        panel.upload.on_upload(guarded(lambda _: self.localize_upload()))

    def _guarded(self, action: Callable[[Any], None]) -> Callable[[Any], None]:
        """One at a time; whatever goes wrong is a sentence on the page, and the page stays."""

        def run(event: Any) -> None:
            with self.lock:
                try:
                    action(event)
                except LocusError as error:
                    self.panel.status.content = paragraph(str(error))

        return run

    def click(self, ray: Ray) -> None:
        hit = self.canvas.hit(ray, cameras=self.panel.cameras.value)
        if hit is None:
            self.panel.status.content = paragraph(f"Nothing is there. {HELP}")
        else:
            self.choose(hit)

    def choose(self, hit: Hit | None) -> None:
        """Light up what is like what was hit; nothing puts all lights out."""
        self.hit = hit
        self.relight()

    def relight(self) -> None:
        """The same with another threshold."""
        hit, scale = self.hit, self.panel.index
        if not self._new("light", (hit, scale, self.panel.threshold.value)):  # a slider's earlier values, come late
            return
        self.turn += 1
        self.lit = None
        if hit is not None:
            viewed = self.viewed
            query = viewed.query(hit, scale)
            features, landmarks = viewed.seen.features[scale], viewed.landmarks(scale).embedding
            self.lit = light(query, features, viewed.cloud, viewed.size, landmarks, self.panel.threshold.value)
        with self.server.atomic():
            self.canvas.light_cameras(self.lit)
            self.redraw()
            self._tell()

    def _tell(self) -> None:
        lit, hit, viewed, panel = self.lit, self.hit, self.viewed, self.panel
        on = lit is not None and hit is not None
        panel.clear.visible, panel.sheet.visible = on, on
        panel.through.visible = on and hit.kind == "image"
        if not on:
            panel.status.content = paragraph(HELP)
            return
        views, points, landmarks = int(lit.views.sum()), int(lit.points.sum()), int(lit.landmarks.sum())
        panel.status.content = paragraph(
            f"{viewed.described(hit, panel.index)}.",
            f"Lit: {views} of {len(viewed.seen)} views, {points:,} points, {landmarks} landmarks.",
        )
        pictures = [
            captioned(
                outlined(viewed.pictures[row], lit.masks[row]), f"{lit.scores[row]:.2f}  {viewed.names[row]}", 220
            )
            for row in lit.best(VIEWS)
        ]
        panel.sheet.visible = bool(pictures)
        if pictures:
            panel.sheet.image = tiles(pictures, columns=2)

    def redraw(self) -> None:
        """Cloud, landmarks and cameras as the panel says and as they are lit."""
        self._draw_cloud()
        self._draw_landmarks()
        if self._new("cameras", self.panel.cameras.value):
            self.canvas.show_cameras(self.panel.cameras.value)

    def _new(self, part: str, asked: Any) -> bool:
        """Whether a part of the page has to be drawn again."""
        before, self.drawn[part] = self.drawn.get(part), asked
        return before != asked

    def _draw_cloud(self) -> None:
        panel, heights = self.panel, self.canvas.heights
        if not self._new("cloud", (panel.colours.value, panel.index, panel.cut.value, self.turn)):
            return
        by_feature = panel.colours.value == "features"
        colours = self.by_feature(panel.index)[0] if by_feature else self.viewed.cloud.colours
        if self.lit is not None:
            grey = (colours.mean(axis=1, keepdims=True) * 0.45 + 60).astype(np.uint8)
            colours = np.where(self.lit.points[:, None], np.array(TINT, np.uint8), grey)
        self.canvas.draw_cloud(colours, heights - heights.min() <= panel.cut.value)

    def _draw_landmarks(self) -> None:
        panel, scale = self.panel, self.panel.index
        least, cut, by = panel.least.value, panel.cut.value, panel.balls_by.value
        if not self._new("landmarks", (panel.balls.value, by, least, panel.size.value, cut, scale, self.turn)):
            return
        landmarks = self.viewed.landmarks(scale)
        colours = self.by_feature(scale)[1] if by == "features" else landmark_colours(self.viewed, scale, by, least)
        lit = np.zeros(len(landmarks), bool) if self.lit is None else self.lit.landmarks
        height = landmarks.position @ self.canvas.up.astype(np.float32) - self.canvas.heights.min()
        shown = ((landmarks.score >= least) | lit) & (height <= cut) & panel.balls.value
        radii = landmarks.radius * np.float32(panel.size.value)
        self.canvas.draw_landmarks(landmarks.position, radii, colours, shown, lit)
        panel.legend.content = panel.legend_of(landmarks.label[shown], len(landmarks), self.viewed.classes)

    def localize_frame(self, name: str) -> None:
        self._show_located(locate_frame(self.viewed, self.viewed.names.index(name)))

    def localize_upload(self) -> None:
        file = self.panel.upload.value
        self.panel.answer.content = paragraph(f"Looking for {file.name} …")
        try:
            self._show_located(locate_image(self.viewed, file.name, file.content))
        except LocusError as error:
            self.canvas.draw_located(None)
            self.panel.answer.content = paragraph(str(error))

    def _show_located(self, located: LocatedImage) -> None:
        self.canvas.draw_located(located)
        self.panel.answer.content = paragraph(located.sentence)

    def _look_through(self, event: viser.GuiEvent) -> None:
        if self.hit is None or self.hit.kind != "image" or event.client is None:  # its tab may be closed by now
            return
        self.canvas.look_through(event.client, self.hit.index)
