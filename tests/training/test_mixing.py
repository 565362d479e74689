"""A run's model on the line between its start and its end."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from locus.cli import main
from locus.model import LoCUS
from locus.training import TrainingError
from locus.training.checkpoints import LAST, START, load_state
from locus.training.mixing import mix_with_start
from tests.training.launching import SETTINGS


def test_an_export_lies_between_the_start_and_the_end(run, tmp_path):
    run(replace(SETTINGS, steps=3, learning_rate=1e-2))
    folder = tmp_path / "run"
    before, after = load_state(folder / START), load_file(folder / "model.safetensors")
    assert before.step == 0
    assert any(not torch.equal(before.head[name], weight) for name, weight in after.items())
    assert main(["export", str(folder), "--hub", str(tmp_path / "mixed"), "--start", "0.25"]) == 0
    for name, weight in load_file(tmp_path / "mixed" / "model.safetensors").items():
        torch.testing.assert_close(weight, 0.75 * after[name] + 0.25 * before.head[name])


def test_what_cannot_be_mixed_is_said(run, tmp_path):
    run(replace(SETTINGS, steps=1))
    model = LoCUS.from_pretrained(tmp_path / "run")
    with pytest.raises(TrainingError, match=r"between 0 and 1, and is 1\.5"):
        mix_with_start(model, tmp_path / "run", 1.5)
    with pytest.raises(TrainingError, match=r"has no checkpoints/start\.pt to mix with"):
        mix_with_start(model, tmp_path, 0.3)
    assert load_state(tmp_path / "run" / LAST).step == 1
