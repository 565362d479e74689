"""Changes on the page: what is gone in red, what is new in green, and an arrow from where a thing was."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import viser
from jaxtyping import Float32
from numpy import ndarray

from locus.errors import LocusError
from locus.files import load_json
from locus.viewer.panel import paragraph

GONE, NEW, ARROW = (220, 30, 30), (20, 170, 70), (40, 40, 40)
POINT = 0.05  # metres across

Points = Float32[ndarray, "_ 3"]


@dataclass(frozen=True, eq=False)
class ShownChange:
    """A change as `locus changes --json` tells it."""

    words: str
    before: Points
    """Where it was; no points if it is new."""
    after: Points


def read_changes(path: Path) -> list[ShownChange]:
    """The changes in a file that `locus changes --json` wrote."""
    if not path.is_file():
        raise LocusError(f"{path} does not exist; `locus changes --json` writes it")
    try:
        return [_change(number, each) for number, each in enumerate(load_json(path)["changes"], 1)]
    except (LocusError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise LocusError(f"{path} does not hold changes ({error}); `locus changes --json` writes them") from None


def _change(number: int, told: dict[str, Any]) -> ShownChange:
    before, after = (_points(told[where]) for where in ("before", "after"))
    if not len(before) + len(after):
        raise ValueError(f"change {number} is nowhere")
    where = " → ".join(" ".join(f"{value:.2f}" for value in each.mean(axis=0)) for each in (before, after) if len(each))
    return ShownChange(f"{number}. {told['change']} ({float(told['probability']):.2f}): {where}", before, after)


def _points(told: dict[str, Any] | None) -> Points:
    points = np.array([] if told is None else told["points"], np.float32).reshape(-1, 3)
    if not np.isfinite(points).all():
        raise ValueError("a point is not finite")
    return points


def show_changes(server: viser.ViserServer, changes: list[ShownChange]) -> None:
    """Draw the changes, and list them below the panel with a box that hides them."""
    handles: list[Any] = []
    for name, colour in (("before", GONE), ("after", NEW)):
        points = np.concatenate([np.zeros((0, 3), np.float32), *(getattr(change, name) for change in changes)])
        handles.append(
            server.scene.add_point_cloud(
                f"/changes/{name}", points, colour, point_size=POINT, point_shape="circle", precision="float32"
            )
        )
    moved = [
        np.stack([change.before.mean(axis=0), change.after.mean(axis=0)])
        for change in changes
        if len(change.before) and len(change.after)
    ]
    if moved:
        handles.append(server.scene.add_arrows("/changes/moved", np.stack(moved), ARROW))
    with server.gui.add_folder("Changes"):
        shown = server.gui.add_checkbox("changes", True)
        words = [change.words for change in changes] or ["Nothing has changed."]
        server.gui.add_html(paragraph("Gone is red, new is green, and arrows show what has moved.", *words))

    @shown.on_update
    def _(_: object) -> None:
        for handle in handles:
            handle.visible = shown.value
