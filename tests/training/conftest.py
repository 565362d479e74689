"""Rooms to train on in seconds."""

import numpy as np
import pytest
import torch

from tests.scenes import layouts, room


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
