"""Colours of the cloud and of the landmarks: by feature, by score, by class."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import UInt8
from numpy import ndarray

from locus.features import viz
from locus.pages.pictures import ramp
from locus.scenes.scene import LabelClass, class_kind
from locus.tasks.region_pictures import label_colours
from locus.viewer.viewed import ViewedScene

UNLABELLED = np.array([150, 150, 150], np.uint8)


def feature_colours(viewed: ViewedScene, scale: int) -> tuple[UInt8[ndarray, "n 3"], UInt8[ndarray, "m 3"]]:
    """The cloud's points and the landmarks of a scale, so coloured that similar features have similar colours."""
    height, width = viewed.pictures.shape[1:3]
    embedding = viewed.landmarks(scale).embedding
    maps = [*viewed.seen.features[scale], *([torch.from_numpy(embedding)[None]] if len(embedding) else [])]
    count = len(viewed.seen)
    coloured = viz.colours(maps)
    small = np.stack(coloured[:count])  # one pixel a patch: a point takes its patch's colour
    y, x = np.divmod(viewed.cloud.pixel, width)
    rows, columns = small.shape[1:3]
    points = small[viewed.cloud.frame, y * rows // height, x * columns // width]
    return points, coloured[count][0] if len(embedding) else np.zeros((0, 3), np.uint8)


def landmark_colours(
    viewed: ViewedScene, scale: int, by: Literal["score", "class"], least: float = 0.0
) -> UInt8[ndarray, "m 3"]:
    """Of the landmarks of a scale; scores from `least` (dark) to the highest (yellow)."""
    landmarks = viewed.landmarks(scale)
    if not len(landmarks):
        return np.zeros((0, 3), np.uint8)
    if by == "score":
        return ramp(landmarks.score[None], least, float(landmarks.score.max()))[0]
    return np.concatenate([class_colours(viewed.classes), UNLABELLED[None]])[landmarks.label]


def class_colours(names: tuple[str, ...]) -> UInt8[ndarray, "k 3"]:
    return label_colours([LabelClass(index + 1, name, class_kind(name)) for index, name in enumerate(names)])
