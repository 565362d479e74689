"""What each method finds for one landmark: its patch, and how like it every other patch is."""

from collections.abc import Sequence

import cv2
import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from locus.evaluation.methods import Chance, Competitor, Method, Truth, Unavailable
from locus.evaluation.opened import Place
from locus.evaluation.ranking import Patches
from locus.evaluation.retrieval import Retrieval
from locus.features.viz import heat, span
from locus.objective import retrieval_sets
from locus.pages.pictures import Picture, resized, sheet
from locus.scenes.patches import patch_centres

WIDTH = 240
OTHERS = 4


def pictures(
    protocol: Retrieval, methods: Sequence[Competitor | Unavailable], place: Place
) -> list[tuple[str, Picture]]:
    """Rows of frames, one a method, glowing where a method finds the landmark; the first row shows where it is."""
    radius = protocol.radii[0]
    batch = next(protocol.drawn(place), None)
    if batch is None:
        return []
    rows, patches = batch
    landmark, positive = _landmark(patches, radius, protocol.kappa)
    per_frame = place.grid[0] * place.grid[1]
    own = landmark // per_frame
    counts = positive.reshape(len(rows), per_frame).sum(axis=1)
    counts[own] = 0
    most = np.argsort(-counts, kind="stable")[:OTHERS].tolist()
    chosen = [own, *(row for row in most if counts[row])]
    images = [place.frame(int(rows[each])).image for each in chosen]
    shown = [[_marked(image, positive, landmark, each, place.grid) for image, each in zip(images, chosen, strict=True)]]
    names = ["the landmark (square) and where it is seen (dots)"]
    for method in methods:
        if not isinstance(method, Method) or isinstance(method, Truth | Chance):
            continue
        features = method.features(place, radius)[rows]
        maps = [features[each] for each in chosen]
        query = features.flatten(0, 2)[landmark]
        limits = span(maps, query)
        shown.append(
            [resized(heat(image, each, query, limits), WIDTH) for image, each in zip(images, maps, strict=True)]
        )
        names.append(method.label)
    caption = f"{place.scene.name}, from top to bottom: {'; '.join(names)}. The landmark's own frame is the first."
    return [(caption, sheet(shown))]


def _landmark(patches: Patches, radius: float, kappa: float) -> tuple[int, Bool[ndarray, " n"]]:
    """The landmark that is seen in most other frames, and its positives."""
    geometry = (patches.positions, patches.environments, patches.frames, patches.landmarks)
    positive, _ = retrieval_sets(*geometry, radius, kappa, exclude_same_frame=True)
    frames = [len(patches.frames[column].unique()) for column in positive.T]
    best = int(np.argmax(frames))
    return int(patches.landmarks[best]), positive[:, best].numpy()


def _marked(image: Picture, positive: Bool[ndarray, " n"], landmark: int, frame: int, grid: tuple[int, int]) -> Picture:
    small = resized(image, WIDTH).copy()
    centres = patch_centres(grid, small.shape[1], small.shape[0]).reshape(-1, 2)
    count = len(centres)
    for x, y in centres[positive[frame * count : (frame + 1) * count]]:
        cv2.circle(small, (round(x), round(y)), 3, (255, 90, 30), -1, cv2.LINE_AA)
    if landmark // count == frame:
        x, y = centres[landmark % count]
        half = small.shape[0] / grid[0] / 2
        low, high = ((round(x + sign * half), round(y + sign * half)) for sign in (-1, 1))
        cv2.rectangle(small, low, high, (255, 220, 0), 2)
    return small
