"""Two images beside one another, with lines between the spots that match."""

import cv2
import numpy as np
from jaxtyping import Bool, UInt8
from numpy import ndarray

from locus.scenes.scene_pictures import beside
from locus.tasks.matching import Matches

Picture = UInt8[ndarray, "_ _ 3"]
HEIGHT = 480  # pixels of the picture; images keep their shape
GAP = 8
AGREES, DISAGREES = (70, 200, 60), (225, 60, 50)
FINER = 4  # bits of a pixel's fraction that OpenCV draws with


def match_picture(
    image_a: Picture, image_b: Picture, matches: Matches, inliers: Bool[ndarray, " n"] | None = None
) -> Picture:
    """Inliers as green lines over faint red ones of the other matches; without inliers, dark to bright by score."""
    images = [_scaled(image) for image in (image_a, image_b)]
    canvas = beside(images, GAP)
    shift = images[0].shape[1] + GAP
    ends_a = matches.pixels_a * [images[0].shape[1], HEIGHT] / matches.size_a
    ends_b = matches.pixels_b * [images[1].shape[1], HEIGHT] / matches.size_b + [shift, 0]
    if inliers is None:
        order = np.arange(len(matches))[::-1]  # the best on top
        span = max(float(np.ptp(matches.scores)), 1e-6) if len(matches) else 1.0
        levels = ((matches.scores - matches.scores.min(initial=np.inf)) / span * 255).astype(np.uint8)
        colours = cv2.applyColorMap(levels[:, None], cv2.COLORMAP_VIRIDIS)[:, 0, ::-1] if len(matches) else levels
        return _drawn(canvas, ends_a, ends_b, order, colours)
    colours = np.where(inliers[:, None], AGREES, DISAGREES)
    faint = _drawn(canvas, ends_a, ends_b, np.flatnonzero(~inliers), colours)
    canvas = cv2.addWeighted(faint, 0.4, canvas, 0.6, 0)
    return _drawn(canvas, ends_a, ends_b, np.flatnonzero(inliers), colours)


def _scaled(image: Picture) -> Picture:
    height, width = image.shape[:2]
    size = (max(1, round(width * HEIGHT / height)), HEIGHT)
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA if height > HEIGHT else cv2.INTER_CUBIC)


def _drawn(canvas: Picture, ends_a: ndarray, ends_b: ndarray, which: ndarray, colours: ndarray) -> Picture:
    canvas = canvas.copy()
    for index in which:
        colour = tuple(int(value) for value in colours[index])
        # OpenCV's pixels have their centres at whole numbers.
        a, b = (tuple(int(value) for value in ((end[index] - 0.5) * 2**FINER).round()) for end in (ends_a, ends_b))
        cv2.line(canvas, a, b, colour, 1, cv2.LINE_AA, FINER)
        for end in (a, b):
            cv2.circle(canvas, end, 3 << FINER, colour, -1, cv2.LINE_AA, FINER)
    return canvas
