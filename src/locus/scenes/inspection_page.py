"""The page that `locus inspect` writes: one HTML file that needs nothing else."""

import base64
import io
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
from PIL import Image

from locus.errors import LocusError
from locus.files import atomic
from locus.scenes.consistency import NEAR, Carried
from locus.scenes.inspection import Inspection
from locus.scenes.patches import patch_points
from locus.scenes.scene import Frame
from locus.scenes.scene_pictures import (
    Picture,
    beside,
    carried_picture,
    depth_picture,
    overlap_picture,
    plan_picture,
    resized,
)
from locus.scenes.visibility import GRID

WIDTH = 300
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1000px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; margin-bottom: .2em; } h2 { font-size: 1.15em; margin: 1.8em 0 .4em; }
.verdict { padding: .7em 1em; border-left: 6px solid #b3261e; background: #fbeae9; }
.verdict.sound { border-color: #2e7d32; background: #eaf4ea; }
table { border-collapse: collapse; } td { padding: .2em .8em .2em 0; vertical-align: top; }
td:first-child { color: #666; white-space: nowrap; }
figure { display: inline-block; margin: .4em 1em .8em 0; vertical-align: top; } img { max-width: 100%; }
figcaption { font-size: .85em; color: #555; max-width: 480px; } p.note { color: #555; font-size: .9em; margin: .2em 0; }
code { background: #f3f3f3; padding: .1em .3em; }
"""


def write_page(inspection: Inspection, path: Path) -> Path:
    """Write the page to `path`, whole or not at all."""
    page = render_page(inspection).encode()
    try:
        with atomic(path) as file:
            file.write_bytes(page)
    except OSError as error:
        raise LocusError(f"the page cannot be written to {path}: {error.strerror}") from None
    return path


def render_page(inspection: Inspection) -> str:
    name = escape(inspection.scene.name)
    rows = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in inspection.facts())
    css = "verdict sound" if inspection.sound else "verdict"
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{name}: is it sound?</title><style>{STYLE}</style>",
        f"<h1>{name}</h1><p class='{css}'>{escape(inspection.verdict)}</p><table>{rows}</table>",
        _carried_section(inspection),
        _overview_section(inspection),
        _frames_section(inspection),
        _problems_section(inspection),
    ]
    return "".join(parts)


def _carried_section(inspection: Inspection) -> str:
    """What the consistency figure means, in pictures, as read and as repaired."""
    repaired = inspection.diagnosis.repair
    scenes = [inspection.scene] + ([replace(inspection.scene, convention=repaired)] if repaired else [])
    figures = []
    for a, b in _pairs(inspection):
        first, second = scenes[0][a], scenes[0][b]
        pictures = [resized(first.image, WIDTH), resized(second.image, WIDTH)]
        pictures += [carried_picture(scene[a], scene[b], WIDTH) for scene in scenes]
        figures.append(figure(beside(pictures), f"{first.name} · {second.name} · the first carried into the second"))
    if not figures:
        return ""
    last = " as read, then with the repair" if repaired else ""
    note = (
        "Left: frame A. Next: frame B. Then: A's pixels where depth and poses put them in B"
        f"{last}. Sound data show the same picture as B there."
    )
    return f"<h2>One frame carried into another</h2><p class=note>{note}</p>" + "".join(figures)


def _pairs(inspection: Inspection) -> list[tuple[int, int]]:
    """Three frames over the scene, each with one that sees about half of it if the scene is read right."""
    order = {source.name: index for index, source in enumerate(inspection.scene.sources)}
    indices = [order[inspection.summaries[place].name] for place in inspection.compared]
    if len(indices) < 2:
        return []
    convention = inspection.diagnosis.repair or inspection.scene.convention
    carried = Carried(inspection.geometries, inspection.scene.convention)
    pairs = []
    for a in np.unique(np.linspace(0, len(indices) - 1, 5).round().astype(int))[:-1][-3:]:
        others = np.delete(np.arange(len(indices)), a)
        carried.pairs = np.stack([np.full(len(others), a), others], axis=-1)
        shared = carried.landings(convention, NEAR)[0].mean(axis=1)
        pairs.append((indices[a], indices[others[np.abs(shared - 0.5).argmin()]]))
    return pairs


def _overview_section(inspection: Inspection) -> str:
    if not inspection.geometries:
        return ""
    points = inspection.cloud().astype(np.float64)
    plan, metres = plan_picture(points, np.array([g.world_from_camera for g in inspection.geometries]))
    return (
        "<h2>Overlap and plan</h2>"
        + figure(
            overlap_picture(inspection.overlap),
            "Overlap: row a, column b; the share of frame a's patches that frame b sees, from none (dark) to all "
            "(yellow).",
        )
        + figure(plan, f"From above, {metres:.1f} m across: what was seen (grey), the cameras and where they look.")
    )


def _frames_section(inspection: Inspection) -> str:
    scene = inspection.scene
    depths = np.array([s.depths for s in inspection.summaries])
    low, high = (np.nanmin(depths[:, 0]), np.nanmax(depths[:, 2])) if not np.isnan(depths).all() else (0.0, 1.0)
    names = {summary.name for summary in inspection.summaries}
    readable = [index for index, source in enumerate(scene.sources) if source.name in names]
    chosen = [readable[i] for i in np.unique(np.linspace(0, len(readable) - 1, 8).round().astype(int))]
    figures = [figure(_frame_row(scene[i], float(low), float(high)), scene[i].name) for i in chosen]
    note = (
        f"Image, depth from {low:.1f} m (yellow) to {high:.1f} m (dark), grey where unknown, and the patches with an "
        "honest 3D point (the others dimmed)."
    )
    return f"<h2>Frames</h2><p class=note>{note}</p>" + "".join(figures)


def _frame_row(frame: Frame, low: float, high: float) -> Picture:
    image = resized(frame.image, WIDTH)
    grid = (min(GRID[0], frame.camera.height), min(GRID[1], frame.camera.width))
    valid = np.asarray(
        Image.fromarray(patch_points(frame, grid)[1]).resize((image.shape[1], image.shape[0]), Image.Resampling.NEAREST)
    )
    dimmed = np.where(valid[..., None], image, (image * 0.25 + 180).astype(np.uint8))
    depth = depth_picture(frame.depth, low, high)
    step = np.arange(image.shape[0]) * depth.shape[0] // image.shape[0]
    depth = depth[step][:, np.arange(WIDTH) * depth.shape[1] // WIDTH]
    return beside([image, depth, dimmed])


def _problems_section(inspection: Inspection) -> str:
    lists = (
        ("Skipped when opened", inspection.scene.skipped),
        ("Unreadable frames", inspection.unreadable),
        ("Unreadable labels", inspection.unlabelled),
        ("Odd frames", inspection.odd_frames()),
    )
    parts = []
    for title, reasons in lists:
        if reasons:
            rows = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in list(reasons.items())[:200])
            parts.append(f"<h2>{title} ({len(reasons)})</h2><table>{rows}</table>")
    return "".join(parts)


def figure(picture: Picture, caption: str) -> str:
    """A picture inside the page itself, with words below it."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "JPEG", quality=88)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f"<figure><img src='data:image/jpeg;base64,{data}'><figcaption>{escape(caption)}</figcaption></figure>"
