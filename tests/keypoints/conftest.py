"""Detectors with their real weights, skipped where those cannot be had; drawn images."""

from functools import cache

import cv2
import numpy as np
import pytest
from huggingface_hub import constants

from locus.errors import WeightsError
from locus.keypoints import detection, detector, glue


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Networks look at images of 256 pixels: a third of the time."""
    monkeypatch.setattr(detection, "SHORTER", 256)


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    """The Hugging Face hub is out of reach, and nothing was fetched before."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")


@pytest.fixture(scope="session")
def found():
    """A detector by its name."""
    return cache(lambda name, count=2048: _or_skip(detector, name, count))


@pytest.fixture(scope="session")
def glued():
    """A LightGlue by its name."""
    return cache(lambda name: _or_skip(glue, name))


def _or_skip(make, *arguments):
    try:
        return make(*arguments)
    except WeightsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def drawn():
    """An image of overlapping tilted shapes, smooth as a camera's: corners all over, none repeated."""

    @cache
    def draw(height=256, width=320, seed=0):
        rng = np.random.default_rng(seed)
        image = np.full((height, width, 3), 127, np.uint8)
        for _ in range(height * width // 600):
            centre, sides = rng.uniform(0, (width, height)), rng.uniform(8, 40, 2)
            box = cv2.boxPoints((centre.tolist(), sides.tolist(), rng.uniform(0, 90)))
            cv2.fillPoly(image, [box.astype(np.int32)], rng.integers(0, 255, 3).tolist())
        return cv2.GaussianBlur(image, (0, 0), 0.7)

    return draw
