"""The page that `locus inspect` writes: what it found, with pictures."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from locus import pages
from locus.pages.pictures import Picture, resized
from locus.scenes.consistency import NEAR, Carried
from locus.scenes.inspection import Inspection
from locus.scenes.patches import patch_points
from locus.scenes.scene import Frame
from locus.scenes.scene_pictures import depth_picture, overlap_picture, plan_picture, projected_picture
from locus.scenes.visibility import GRID

Captioned = tuple[str, Picture]
WIDTH = 300
FRAMES = 8  # shown, spread over the scene
MOST_PROBLEMS = 200  # listed, of each kind


def write_page(inspection: Inspection, path: Path) -> Path:
    """Write the page to `path`, whole or not at all."""
    depths = np.array([summary.depths for summary in inspection.summaries])
    near, far = (np.nanmin(depths[:, 0]), np.nanmax(depths[:, 2])) if not np.isnan(depths).all() else (0.0, 1.0)
    return pages.write(
        path,
        "inspection",
        name=inspection.scene.name,
        verdict=inspection.verdict,
        state="sound" if inspection.sound else "unsound" if inspection.diagnosis.conclusive else "open",
        facts=inspection.facts(),
        pairs=[_projected(inspection, a, b) for a, b in _pairs(inspection)],
        overview=_overview(inspection),
        near=near,
        far=far,
        frames=[_frame(frame, float(near), float(far)) for frame in _shown(inspection)],
        problems=[
            ("Skipped when the scene was opened", inspection.scene.skipped),
            ("Frames that cannot be read", inspection.unreadable),
            ("Labels that cannot be read", inspection.unlabelled),
            ("Frames worth a look", inspection.odd_frames()),
        ],
        most_problems=MOST_PROBLEMS,
    )


def _pairs(inspection: Inspection) -> list[tuple[int, int]]:
    """Three frames over the scene, each with one that sees about half of it if the scene is read right."""
    order = {source.name: index for index, source in enumerate(inspection.scene.sources)}
    indices = [order[inspection.summaries[row].name] for row in inspection.compared]
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


def _projected(inspection: Inspection, a: int, b: int) -> list[Captioned]:
    """What the consistency figure means, in pictures: as read, and with the repair if there is one."""
    scene, repair = inspection.scene, inspection.diagnosis.repair
    first, second = scene[a], scene[b]
    shown = [(f"{name}: {frame.name}", resized(frame.image, WIDTH)) for name, frame in (("A", first), ("B", second))]
    shown.append(("A projected into B" + (", as read" if repair else ""), projected_picture(first, second, WIDTH)))
    if repair:
        repaired = replace(scene, convention=repair)
        shown.append(("A projected into B, repaired", projected_picture(repaired[a], repaired[b], WIDTH)))
    return shown


def _overview(inspection: Inspection) -> list[Captioned]:
    if not inspection.geometries:
        return []
    poses = np.array([geometry.world_from_camera for geometry in inspection.geometries])
    plan, metres = plan_picture(inspection.cloud().astype(np.float64), poses)
    overlap = (
        "Overlap: the share of the patches of frame a (row) that frame b (column) sees, none (dark) to all (yellow)."
    )
    above = f"From above, {metres:.1f} m across: the points seen (grey), the cameras and where they look (red)."
    return [(overlap, overlap_picture(inspection.overlap)), (above, plan)]


def _shown(inspection: Inspection) -> list[Frame]:
    readable = {summary.name for summary in inspection.summaries}
    rows = [row for row, source in enumerate(inspection.scene.sources) if source.name in readable]
    return [inspection.scene[rows[i]] for i in np.unique(np.linspace(0, len(rows) - 1, FRAMES).round().astype(int))]


def _frame(frame: Frame, near: float, far: float) -> list[Captioned]:
    image = resized(frame.image, WIDTH)
    size = (image.shape[1], image.shape[0])
    grid = (min(GRID[0], frame.camera.height), min(GRID[1], frame.camera.width))
    valid, depth = (
        cv2.resize(values, size, interpolation=cv2.INTER_NEAREST)
        for values in (patch_points(frame, grid)[1].astype(np.uint8), frame.depth)
    )
    faded = np.where(valid[..., None] > 0, image, (image * 0.25 + 180).astype(np.uint8))
    return [(frame.name, image), ("depth", depth_picture(depth, near, far)), ("patches with a 3D point", faded)]
