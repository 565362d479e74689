"""What a backbone cannot be, or cannot take: one sentence each."""

import json

import numpy as np
import pytest
import torch
from jaxtyping import config

from locus import backbones
from locus.backbones import BackboneError
from locus.errors import LocusError, WeightsError
from tests import networks


@pytest.fixture
def as_in_use():
    """Without the checks of types that tests have and users do not."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


def one_sentence(error):
    return "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"image_mean": 3}', '{"image_std": [1, 2]}', '{"image_std": [1, 1, 0]}', '{"image_mean": "abc"}'],
)
def test_a_broken_preprocessor_config_is_named(text, copied):
    folder = copied("dinov2")
    (folder / "preprocessor_config.json").write_text(text)
    with pytest.raises(WeightsError, match=r"preprocessor_config\.json"):
        backbones.load(folder)


@pytest.mark.parametrize("family", [*networks.FAMILIES, "classic"])
def test_an_image_smaller_than_a_patch_is_refused(family, loaded):
    backbone = loaded(family)
    with pytest.raises(BackboneError, match="64×7 pixels is smaller than a patch"):
        backbone.tokens(torch.zeros(1, 3, 7, 64))
    with pytest.raises(BackboneError, match="200×31 pixels is too small; 32 is the least"):
        backbone.prepare(np.zeros((31, 200, 3), np.uint8))


@pytest.mark.parametrize("layer", [-1, 0, 5])
@pytest.mark.parametrize("family", networks.FAMILIES)
def test_a_layer_that_is_not_there_is_refused(family, layer, loaded):
    with pytest.raises(BackboneError, match=f"1 to [34]; there is no layer {layer}"):
        loaded(family, layer)


def test_the_classic_backbone_has_one_layer():
    with pytest.raises(BackboneError, match="one layer and no norm"):
        backbones.load("classic", 2)


def test_the_norm_of_a_convolutional_network_fits_its_last_stage_only(loaded):
    with pytest.raises(BackboneError, match="last stage only"):
        loaded("resnet", 2, norm=True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"model_type": "bert"}, "type bert; LoCUS knows vit, dinov2"),
        ({"model_type": "frobnicate"}, "frobnicate"),
        ({}, "not a network that transformers can open"),
        ("{", "not a network that transformers can open"),
        ([], "not a network that transformers can open"),
        ({"model_type": "dinov2", "hidden_size": "wide"}, "not a network that transformers can open"),
    ],
)
def test_a_folder_of_another_network_is_refused(content, says, tmp_path):
    (tmp_path / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(LocusError, match=says) as error:
        backbones.load(tmp_path)
    assert one_sentence(error)


def test_a_folder_without_a_configuration_is_refused(tmp_path):
    with pytest.raises(WeightsError, match=str(tmp_path)) as error:
        backbones.load(tmp_path)
    assert one_sentence(error)


@pytest.mark.parametrize("family", networks.FAMILIES)
def test_a_folder_without_weights_is_refused(family, copied):
    folder = copied(family)
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match="does not hold the weights") as error:
        backbones.load(folder)
    assert one_sentence(error)


def test_weights_cut_short_are_refused(copied):
    folder = copied("dinov2")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WeightsError, match="does not hold the weights") as error:
        backbones.load(folder)
    assert one_sentence(error)


@pytest.mark.parametrize("family", networks.FAMILIES)
def test_weights_that_are_missing_are_named(family, copied):
    from safetensors.torch import load_file, save_file

    folder = copied(family)
    weights = load_file(folder / "model.safetensors")
    victim = next(
        key for key in sorted(weights) if key.endswith("weight") and "text" not in key and "projection" not in key
    )
    save_file({key: weight for key, weight in weights.items() if key != victim}, folder / "model.safetensors")
    with pytest.raises(WeightsError, match="lacks 1 weights of a") as error:
        backbones.load(folder)
    assert one_sentence(error)


def test_weights_of_another_shape_are_refused(copied):
    folder = copied("dinov2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 48}))
    with pytest.raises(WeightsError, match="does not hold the weights") as error:
        backbones.load(folder)
    assert one_sentence(error)


def test_code_that_comes_with_a_network_is_not_run_whatever_is_typed(tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *prompt: "y")
    own = {"model_type": "theirs", "auto_map": {"AutoConfig": "theirs.Theirs"}}
    (tmp_path / "config.json").write_text(json.dumps(own))
    (tmp_path / "theirs.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\n"
        "from transformers import PreTrainedConfig\n"
        "class Theirs(PreTrainedConfig):\n    model_type = 'theirs'\n"
    )
    with pytest.raises(WeightsError, match="not a network that transformers can open") as error:
        backbones.load(tmp_path)
    assert one_sentence(error)
    assert not (tmp_path / "ran").exists()


class Runs:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (self.file, "w")


@pytest.mark.parametrize("kind", ["code", "text", "index"])
def test_other_weight_files_that_are_spoiled_are_refused(kind, copied):
    folder = copied("dinov2")
    (folder / "model.safetensors").unlink()
    if kind == "code":
        torch.save({"weight": Runs(str(folder / "ran"))}, folder / "pytorch_model.bin")
    elif kind == "text":
        (folder / "pytorch_model.bin").write_text("hello world")
    else:
        (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(WeightsError, match="does not hold the weights") as error:
        backbones.load(folder)
    assert one_sentence(error)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((40, 50), np.uint8),
        np.zeros((40, 50, 4), np.uint8),
        np.zeros((3, 40, 50), np.uint8),
        np.zeros((40, 50, 3), np.uint16),
        np.zeros((40, 50, 3), np.float32),
        torch.zeros(40, 50, 3, dtype=torch.uint8),
    ],
)
def test_an_array_that_is_no_rgb_image_of_bytes_is_refused(image, loaded, as_in_use):
    with pytest.raises(LocusError, match="array of RGB bytes"):
        loaded("classic").prepare(image)
