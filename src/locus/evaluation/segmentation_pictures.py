"""Truth beside prediction, each object in one colour in every view."""

from collections.abc import Sequence

import cv2
import numpy as np

from locus.evaluation.methods import Competitor, Unavailable
from locus.evaluation.opened import Place
from locus.evaluation.segmentation import Segmentation, truth_of
from locus.pages.pictures import Picture, resized, sheet
from locus.tasks.region_pictures import label_colours, label_picture

WIDTH = 240
VIEWS = 4


def pictures(
    protocol: Segmentation, methods: Sequence[Competitor | Unavailable], place: Place
) -> list[tuple[str, Picture]]:
    """Columns are views; rows the image, the truth, and each method."""
    known = truth_of(place)
    colours = label_colours(known.classes)
    compared = [each for each in methods if isinstance(each, Competitor) and not each.bound]
    answers = [protocol.answer(method, place, known) for method in compared]
    scored = np.flatnonzero(answers[0].scored.any(axis=(1, 2))) if answers else np.arange(len(place))
    # The views of which most is labelled.
    chosen = scored[np.argsort(-(known.labels[scored] > 0).sum(axis=(1, 2)), kind="stable")][:VIEWS]
    rows = [[resized(place.frame(int(row)).image, WIDTH) for row in chosen]]
    for labels in (known.labels, *(answer.predicted for answer in answers)):
        strip = []
        for row in chosen:
            image = place.frame(int(row)).image
            size = (image.shape[1], image.shape[0])
            whole = cv2.resize(labels[row].astype(np.int32), size, interpolation=cv2.INTER_NEAREST)
            strip.append(resized(label_picture(image, whole, colours), WIDTH))
        rows.append(strip)
    names = ["images", "truth (grey where a patch straddles)", *(method.label for method in compared)]
    caption = f"{place.scene.name}, from top to bottom: {'; '.join(names)}. An object has one colour in all views."
    return [(caption, sheet(rows))]
