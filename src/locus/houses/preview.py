"""A contact sheet of houses: a few views of each, from different rooms."""

from pathlib import Path

import numpy as np
from PIL import Image

from locus.files import atomic
from locus.scenes.load import load_scene
from locus.scenes.scene import Scene

COLUMNS, ROWS = 6, 4
GAP = 4


def write_preview(folders: list[Path], out: Path) -> Path:
    """A sheet of 24 views, divided among the houses."""
    chosen = folders[: COLUMNS * ROWS]
    share = -(-COLUMNS * ROWS // len(chosen))
    pictures = [picture for folder in chosen for picture in _best(load_scene(folder), share)][: COLUMNS * ROWS]
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // COLUMNS)
    sheet = np.full((rows * (height + GAP) - GAP, COLUMNS * (width + GAP) - GAP, 3), 255, np.uint8)
    for k, picture in enumerate(pictures):
        row, column = divmod(k, COLUMNS)
        top, left = row * (height + GAP), column * (width + GAP)
        sheet[top : top + height, left : left + width] = picture
    file = out / "preview.jpg"
    with atomic(file) as partial:
        Image.fromarray(sheet).save(partial, "JPEG", quality=80, optimize=True)
    return file


def _best(scene: Scene, count: int) -> list[np.ndarray]:
    """The views with most things in them, of those that look from places or ways not shown yet."""
    kinds = {label.id: label.kind for label in scene.classes}
    scores, poses = [], []
    for frame in scene:
        assert frame.instance is not None
        assert frame.semantic is not None
        ids, sizes = np.unique(frame.instance[::4, ::4], return_counts=True)
        classes = np.unique(frame.semantic[::4, ::4])
        things = sum(kinds.get(int(k)) == "thing" for k in classes)
        scores.append(things + 0.2 * min(len(ids), 20) - 6 * sizes.max() / sizes.sum())
        poses.append(frame.world_from_camera)
    score = np.array(scores)
    way, position = np.array(poses)[:, :3, 2], np.array(poses)[:, :3, 3]
    chosen: list[int] = []
    for _ in range(min(count, len(scene))):
        best = int(np.argmax(score))
        chosen.append(best)
        # A view like one that is shown already counts less: from close by, or the same way.
        away = np.linalg.norm(position - position[best], axis=1)
        score -= 8 * np.exp(-((away / 3.5) ** 2)) * (0.6 + 0.4 * np.maximum(way @ way[best], 0))
        score[best] = -np.inf
    return [scene[k].image for k in chosen]
