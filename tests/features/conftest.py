"""Small models, and a folder of images of several sizes."""

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from locus.model import LoCUS
from tests.features.extracted import SIZES


@pytest.fixture(scope="module")
def one_thread():
    """Images this small are slower with more, and much slower where others compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model():
    """No weights, and no head."""
    return LoCUS("classic", head="identity")


@pytest.fixture(scope="module")
def scaled():
    """Two scales."""
    torch.manual_seed(0)
    return LoCUS("classic", radii=(0.2, 0.5), head="linear", dimension=16)


@pytest.fixture
def folder(tmp_path):
    """Ten images of several sizes, some in a folder of their own."""
    rng, folder = np.random.default_rng(0), tmp_path / "images"
    (folder / "far").mkdir(parents=True)
    for i, (width, height) in enumerate(SIZES):
        pixels = cv2.resize(rng.integers(0, 256, (6, 7, 3), dtype=np.uint8), (width, height))
        Image.fromarray(pixels).save(folder / ("far" if i % 3 else ".") / f"{i:02d}.png")
    return folder
