"""Two images beside one another, with lines between the spots that match."""

import cv2
import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from locus.pages.pictures import Picture, ramp, resized, sheet
from locus.tasks.matching import Matches

HEIGHT = 480  # pixels of the picture; images keep their shape
GAP = 8
AGREES, DISAGREES = (70, 200, 60), (225, 60, 50)
FINER = 4  # bits of a pixel's fraction that OpenCV draws with


def match_picture(
    image_a: Picture, image_b: Picture, matches: Matches, inliers: Bool[ndarray, " n"] | None = None
) -> Picture:
    """Inliers as green lines over faint red ones of the other matches; without inliers, dark to bright by score."""
    images = [resized(image, max(1, round(image.shape[1] * HEIGHT / image.shape[0]))) for image in (image_a, image_b)]
    canvas = sheet([images], GAP)
    shift = images[0].shape[1] + GAP
    ends_a = matches.pixels_a * images[0].shape[1::-1] / matches.size_a
    ends_b = matches.pixels_b * images[1].shape[1::-1] / matches.size_b + [shift, 0]
    if not len(matches):
        return canvas
    if inliers is None:
        order = np.arange(len(matches))[::-1]  # the best on top
        colours = ramp(matches.scores[None], float(matches.scores.min()), float(matches.scores.max()))[0]
        return _drawn(canvas, ends_a, ends_b, order, colours)
    colours = np.where(inliers[:, None], AGREES, DISAGREES)
    faint = _drawn(canvas, ends_a, ends_b, np.flatnonzero(~inliers), colours)
    canvas = cv2.addWeighted(faint, 0.4, canvas, 0.6, 0)
    return _drawn(canvas, ends_a, ends_b, np.flatnonzero(inliers), colours)


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
