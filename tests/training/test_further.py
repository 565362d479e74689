"""Training that begins with a trained model: `locus train --from`."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from locus.cli import main
from locus.files import load_json
from locus.model.shipped import MODELS
from locus.training import PRESETS, TrainingError, beginning_with
from locus.training.checkpoints import START, load_state
from tests.training.launching import SETTINGS, weights


@pytest.fixture
def trained(run, tmp_path):
    """A run of two scales, long enough that its last weights are the kept ones."""
    summary = run(replace(SETTINGS, radii=(0.3, 0.6), kappa=20.0, validate_every=6), out="trained")
    assert summary.best["step"] == 6
    return summary


def test_training_begins_with_what_the_model_has_learned(trained, run, rooms, cache, tmp_path, capsys):
    words = ["--from", str(tmp_path / "trained"), "--steps", "2", "--validate-every", "1", "--frames-per-batch", "6"]
    words += ["--landmarks", "60", "--cache", str(cache), "--val", str(rooms / "unseen")]
    scenes = [str(rooms / name) for name in ("first", "second")]
    assert main(["train", *scenes, "--out", str(tmp_path / "further"), *words]) == 0
    first = json.loads((tmp_path / "further" / "metrics.jsonl").read_text().splitlines()[0])
    assert first["validation"] == trained.best["validation"]  # measured on the same batches
    assert first["baselines"] == trained.metrics[0]["baselines"]  # those of the backbone, whatever it begins with
    before, after = weights(tmp_path / "trained"), weights(tmp_path / "further")
    start = load_state(tmp_path / "further" / START).head
    assert all(torch.equal(start[name], weight) for name, weight in before.items())
    assert not all(torch.equal(after[name], weight) for name, weight in before.items())
    told = load_json(tmp_path / "further" / "training.json")["settings"]
    assert (told["start_from"], told["radii"], told["kappa"]) == (str(tmp_path / "trained"), [0.3, 0.6], 20.0)
    assert main(["train", *scenes, "--out", str(tmp_path / "further"), *words]) == 0  # it is done already
    words[1] = str(shutil.copytree(tmp_path / "trained", tmp_path / "another"))
    assert main(["train", *scenes, "--out", str(tmp_path / "further"), *words]) == 2
    assert "start_from was" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("changed", [{"radii": (0.3,)}, {"dimension": 8}, {"head": "paper"}])
def test_a_model_of_another_shape_is_refused_in_one_sentence(trained, run, tmp_path, changed):
    settings = replace(beginning_with(str(tmp_path / "trained"), SETTINGS), **changed)
    (name,) = changed
    with pytest.raises(TrainingError, match=rf"trained has the {name} .* leave --{name} out"):
        run(settings, out="further")


def test_the_settings_of_a_model_that_comes_with_locus_are_its_own():
    config = load_json(MODELS["locus-small"] / "config.json")
    settings = beginning_with("locus-small", PRESETS["default"])
    assert settings.start_from == "locus-small"
    assert settings.radii == tuple(config["radii"]) == (0.2, 0.6, 2.5)
    assert (settings.backbone, settings.layer, settings.head) == ("dinov2-small", 7, "blocks")


def test_what_is_no_trained_model_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "dinov2"}')
    for model, sentence in {"nowhere": "is no trained model", str(tmp_path): "has learned nothing"}.items():
        with pytest.raises(TrainingError, match=sentence):
            beginning_with(model, SETTINGS)
