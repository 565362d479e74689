"""Two small labelled rooms, and methods that need no weights."""

import pytest
import torch

from locus import load_scene
from locus.evaluation.scene_patches import read_patches
from tests.training.conftest import rooms, tiny  # noqa: F401  fixtures

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def patches(rooms):  # noqa: F811
    return read_patches(load_scene(rooms / "first"), (9, 12))


@pytest.fixture(scope="session")
def tokens(tmp_path_factory):
    """The folder of cached tokens."""
    return tmp_path_factory.mktemp("tokens")
