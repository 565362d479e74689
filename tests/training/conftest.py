"""Rooms to train on in seconds."""

import numpy as np
import pytest
import torch

from locus.training import train
from tests.scenes import layouts, room
from tests.training.launching import SETTINGS


@pytest.fixture(scope="session")
def rooms(tmp_path_factory):
    """Three scenes of the native format, each of other colours; treat them as read-only."""
    root = tmp_path_factory.mktemp("rooms")
    for turn, name in enumerate(("first", "second", "unseen")):
        shots = room.shots(12)
        for shot in shots:
            shot.image = np.roll(shot.image, turn, axis=2)
        (root / name).mkdir()
        layouts.nerfstudio(root / name, shots)
    return root


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A small random transformer in transformers' layout."""
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    config = Dinov2Config(hidden_size=32, num_hidden_layers=4, num_attention_heads=2, image_size=56, patch_size=14)
    folder = tmp_path_factory.mktemp("tiny")
    Dinov2Model(config).save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def without_curves(request, monkeypatch):
    """Drawing the curves takes longer than these runs: only a test that asks for `curves` draws them."""
    if "curves" not in request.fixturenames:
        monkeypatch.setattr("locus.training.run.draw_curves", lambda rows, path: None)


@pytest.fixture
def curves():
    """Have runs draw their curves."""


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(rooms, cache, tmp_path):
    """Train on two rooms, validate on the third."""

    def run(settings=SETTINGS, out="run", scenes=("first", "second"), val=("unseen",)):
        paths = [rooms / name for name in scenes]
        return train(paths, tmp_path / out, settings, val=[rooms / name for name in val], cache=cache)

    return run
