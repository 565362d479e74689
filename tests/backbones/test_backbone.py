"""What every backbone promises."""

import json
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from locus import backbones
from tests import networks

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def pictures(size, seed=0):
    return torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(seed))


def assert_close(a, b):
    torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


@settings(max_examples=25)
@given(family=st.sampled_from([*networks.FAMILIES, "classic"]), width=st.integers(32, 90), height=st.integers(32, 90))
def test_an_image_of_any_size_becomes_tokens_that_span_it(family, width, height, loaded):
    backbone = loaded(family)
    ramp = np.broadcast_to(np.linspace(0, 255, width)[None, :, None], (height, width, 3)).astype(np.uint8)
    prepared = backbone.prepare(ramp)
    rows, columns = prepared.shape[1] // backbone.patch_size, prepared.shape[2] // backbone.patch_size
    assert (columns * backbone.patch_size, rows * backbone.patch_size) == backbone.size(width, height)
    assert prepared.shape[1:] == (rows * backbone.patch_size, columns * backbone.patch_size)
    assert abs(prepared.shape[2] - width) <= backbone.patch_size / 2
    assert prepared[:, :, 0].max() < 10
    assert prepared[:, :, -1].min() > 245
    tokens = backbone.tokens(prepared[None])
    assert tokens.shape == (1, rows, columns, backbone.dimension)
    assert tokens.isfinite().all()


@given(st.integers(32, 2000), st.integers(32, 2000), st.integers(32, 600))
def test_a_resolution_is_the_shorter_sides(width, height, resolution):
    backbone = backbones.load("classic")
    resized = backbone.size(width, height, resolution)
    assert abs(min(resized) - resolution) <= 7 or min(resized) == 14
    assert abs(max(resized) - resolution * max(width, height) / min(width, height)) <= 7


@pytest.mark.parametrize("family", [*networks.FAMILIES, "classic"])
def test_bytes_and_floats_of_any_kind_are_the_same_image(family, loaded):
    backbone = loaded(family)
    images = torch.randint(0, 256, (2, 3, 64, 96), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    assert_close(backbone.tokens(images), backbone.tokens(images.float() / 255))
    assert_close(backbone.tokens(images), backbone.tokens(images.double() / 255))


@pytest.mark.parametrize("family", networks.FAMILIES)
def test_a_backbone_is_frozen_and_evaluates(family, loaded):
    backbone = loaded(family)
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    assert not any(module.training for module in backbone.modules())


def test_weights_stored_in_half_precision_are_computed_with_in_full(copied):
    folder = copied("dinov2")
    networks.FAMILIES["dinov2"]().bfloat16().save_pretrained(folder)
    backbone = backbones.load(folder)
    assert {parameter.dtype for parameter in backbone.parameters()} == {torch.float32}
    assert backbone.tokens(pictures((56, 56))).dtype == torch.float32
    assert backbone.fingerprint


def test_the_fingerprint_tells_what_changes_tokens_and_nothing_else(saved, copied, tmp_path):
    folder, _ = saved("dinov2")
    elsewhere = copied("dinov2")
    assert backbones.load(folder).fingerprint == backbones.load(elsewhere).fingerprint
    (elsewhere / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.5] * 3, "image_std": [0.5] * 3}))
    networks.save("dinov2", tmp_path / "other weights", seed=1)
    shutil.copytree(folder, tmp_path / "other heads")
    config = json.loads((folder / "config.json").read_text())
    config["num_attention_heads"] *= 2
    (tmp_path / "other heads/config.json").write_text(json.dumps(config))
    loaded = [
        backbones.load(folder),
        backbones.load(folder, norm=False),
        backbones.load(folder, 2),
        backbones.load(folder, 2, norm=True),
        backbones.load(tmp_path / "other weights"),
        backbones.load(tmp_path / "other heads"),
        backbones.load(elsewhere),
    ]
    assert len({backbone.fingerprint for backbone in loaded}) == len(loaded)


def test_the_preprocessor_config_tells_mean_and_deviation(loaded, copied):
    folder = copied("dinov2")
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0, 0, 0], "image_std": [1, 1, 1]}))
    images = pictures((56, 56))
    standard = (images - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    assert_close(backbones.load(folder).tokens(standard), loaded("dinov2").tokens(images))


def test_the_token_that_only_pretraining_needs_does_not_make_other_weights(copied, loaded):
    from safetensors.torch import load_file, save_file

    folder = copied("dinov2")
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.mask_token"] += 1  # published files have it or not
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert backbones.load(folder).fingerprint == loaded("dinov2").fingerprint
    weights["embeddings.cls_token"] += 1
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert backbones.load(folder).fingerprint != loaded("dinov2").fingerprint
