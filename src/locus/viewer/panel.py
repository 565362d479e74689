"""The page's panel: what can be set and what is told, without what it does."""

from html import escape

import numpy as np
import viser
from jaxtyping import Int32
from numpy import ndarray

from locus.tasks.cosegmentation import MIN_SIMILARITY
from locus.viewer.canvas import Canvas
from locus.viewer.colouring import class_colours
from locus.viewer.viewed import ViewedScene

FEW = 150  # landmarks shown at first
ABOVE = 0.3  # metres over the cameras where the cloud is cut, so that one looks into rooms
HELP = "Click a point, a landmark or a camera's image: the same thing lights up everywhere. Drag to turn."


class Panel:
    """Its elements, top to bottom."""

    def __init__(self, gui: viser.GuiApi, viewed: ViewedScene, canvas: Canvas) -> None:
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(200, 90, 0))
        gui.main_panel.dock_right()
        gui.main_panel.set_width(350)
        gui.set_panel_label(f"LoCUS: {viewed.seen.scene.name}")
        if viewed.warning:
            gui.add_html(paragraph(f"Warning: {viewed.warning}"))
        self.status = gui.add_html(paragraph(HELP))
        self.threshold = gui.add_slider(
            "similarity",
            min=0.0,
            max=1.0,
            step=0.01,
            initial_value=MIN_SIMILARITY,
            hint="Cosine, at least, of what lights up",
        )
        self.sheet = gui.add_image(np.full((4, 4, 3), 255, np.uint8), visible=False, jpeg_quality=80)
        self.through = gui.add_button("Look through this camera", visible=False)
        self.clear = gui.add_button("Clear", visible=False)
        tabs = self.tabs = gui.add_tab_group()
        with tabs.add_tab("Show"):
            self._add_show(gui, viewed, canvas)
        with tabs.add_tab("Localize"):
            self._add_localize(gui, viewed)

    def _add_show(self, gui: viser.GuiApi, viewed: ViewedScene, canvas: Canvas) -> None:
        low, high = np.percentile(canvas.heights, (0.5, 99.8)) - canvas.heights.min()
        cut = float(np.median(canvas.poses[:, :3, 3] @ canvas.up) - canvas.heights.min()) + ABOVE
        scores = np.sort(viewed.landmarks(0).score)[::-1]
        least = float(scores[min(FEW, len(scores) - 1)]) if len(scores) else 0.0
        has = len(scores) > 0
        self.colours = gui.add_dropdown("points by", ("images", "features"))
        self.cut = gui.add_slider(
            "cut at (m)",
            min=0.0,
            max=round(float(high) + 0.1, 1),
            step=0.05,
            initial_value=round(float(np.clip(cut, low + 0.05, high + 0.1)), 1),
            hint="Points higher than this over the lowest one are left out: ceilings, for one",
        )
        self.cameras = gui.add_checkbox("cameras", True)
        self.balls = gui.add_checkbox("landmarks", has, disabled=not has)
        radii = viewed.model.radii
        self.scale = gui.add_dropdown("scale", [f"{index}: {radius:g} m" for index, radius in enumerate(radii)])
        by = ("score", "features", *(("class",) if viewed.classes else ()))
        self.balls_by = gui.add_dropdown("landmarks by", by, disabled=not has)
        self.least = gui.add_slider(
            "least score", min=0.0, max=1.0, step=0.01, initial_value=np.clip(least, 0, 1).round(2), disabled=not has
        )
        self.size = gui.add_slider("size (radii)", min=0.1, max=1.0, step=0.05, initial_value=0.4, disabled=not has)
        self.legend = gui.add_html("")

    def _add_localize(self, gui: viser.GuiApi, viewed: ViewedScene) -> None:
        gui.add_html(paragraph(f"There is {viewed.about_map}." if viewed.world else f"There is {viewed.about_map}"))
        names = [viewed.names[row] for row in viewed.left_out] if viewed.world else []
        self.frame = gui.add_dropdown("frame", names or ["none left out"], disabled=not names)
        self.locate = gui.add_button("Localize this frame", disabled=not names)
        self.upload = gui.add_upload_button("Localize an image …", mime_type="image/*", disabled=viewed.world is None)
        if viewed.world is not None:
            gui.add_html(DROP)
        self.answer = gui.add_html("")

    @property
    def index(self) -> int:
        """Of the scale chosen."""
        return int(self.scale.value.split(":")[0])

    def legend_of(self, shown: Int32[ndarray, " k"], count: int, classes: tuple[str, ...]) -> str:
        """How many of the landmarks are shown, and what their colours mean; of classes, those that are there."""
        keys = ""
        if self.balls_by.value == "class":
            there = [label for label in np.unique(shown) if label >= 0]
            colours = class_colours(classes)[there]
            keys = " ".join(
                f'<nobr><span style="color:rgb({r},{g},{b})">&#9679;</span> {escape(classes[label])}</nobr>'
                for label, (r, g, b) in zip(there, colours, strict=True)
            )
        elif self.balls_by.value == "score":
            keys = "From the least score, dark, to the highest, yellow."
        return paragraph(f"{len(shown)} of {count} landmarks shown.") + f'<div style="{STYLE}">{keys}</div>'


STYLE = "padding:0 0.75em 0.4em 0.75em;font-size:0.85em;line-height:1.4;overflow-wrap:anywhere"
# viser's upload button takes no drops; this hands what is dropped to it, as if it had been chosen there.
DROP = f"""<div style="{STYLE}"><div style="border:1px dashed #999;padding:0.7em;text-align:center"
ondragover="event.preventDefault()" ondrop="event.preventDefault();
if (event.dataTransfer.files.length) {{
  const field = document.querySelector('input[type=file]');
  field.files = event.dataTransfer.files;
  field.dispatchEvent(new Event('change', {{bubbles: true}}));
}}">or drop one here</div></div>"""


def paragraph(*sentences: str) -> str:
    """Names come from files, so nothing in them may be taken for HTML."""
    return f'<div style="{STYLE}">{"<br>".join(escape(sentence) for sentence in sentences)}</div>'
