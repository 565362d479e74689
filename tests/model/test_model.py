"""LoCUS: saved and loaded bit for bit, the authors' files, and refusals that say what to do."""

import json
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from locus import backbones
from locus.errors import LocusError
from locus.model import LoCUS, ModelError
from locus.model.heads import Head
from tests import networks

KINDS = ["paper", "linear", "blocks", "identity"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dinov2")
    networks.save("dinov2", path)
    return path


def made(folder, head="paper", **options):
    torch.manual_seed(3)
    options = {"layer": 1, "blocks": 2, "dimension": 6, "radii": (0.2, 0.6)} | options
    return LoCUS(str(folder), head=head, **options)


def image(height=50, width=70, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_of_unit_length_one_map_a_scale_on_a_grid_that_spans_the_image(kind, folder):
    model = made(folder, kind)
    features = model.features(image())
    assert features.shape == (2, 4, 5, 32 if kind == "identity" else 6)
    assert model.grid(70, 50) == (4, 5)
    torch.testing.assert_close(features.norm(dim=-1), torch.ones(features.shape[:-1]))


@settings(max_examples=20)
@given(st.integers(32, 120), st.integers(32, 120), st.one_of(st.none(), st.integers(32, 90)))
def test_the_grid_told_beforehand_is_the_one_that_comes(width, height, resolution):
    model = LoCUS("classic", head="linear", dimension=5, resolution=resolution)
    assert model.features(image(height, width)).shape == (1, *model.grid(width, height), 5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_comes_back_bit_for_bit(kind, folder, tmp_path):
    model = made(folder, kind, resolution=56, norm=True)
    model.save_pretrained(tmp_path)
    loaded = LoCUS.from_pretrained(tmp_path)
    assert loaded.fingerprint == model.fingerprint
    assert loaded.config == model.config
    assert torch.equal(loaded.features(image()), model.features(image()))


def test_another_place_for_the_same_backbone_can_be_given(folder, tmp_path):
    model = made(folder)
    model.save_pretrained(tmp_path / "run")
    networks.save("dinov2", tmp_path / "moved")
    loaded = LoCUS.from_pretrained(tmp_path / "run", backbone=str(tmp_path / "moved"))
    assert torch.equal(loaded.features(image()), model.features(image()))


def test_the_papers_head_is_two_megabytes_and_holds_nothing_of_the_backbone(tmp_path):
    model = LoCUS("classic", head="paper")
    model.head = Head(768, 64)
    model.save_pretrained(tmp_path)
    assert 4 * 503_232 < (tmp_path / "model.safetensors").stat().st_size < 4 * 503_232 + 10_000
    assert set(load_file(tmp_path / "model.safetensors")) == set(Head(768, 64).state_dict())


@torch.no_grad()
def test_a_blocks_head_carries_the_blocks_it_changed(folder, tmp_path):
    model = made(folder, "blocks")
    for parameter in model.head.trunk.parameters():
        parameter += 0.1
    model.save_pretrained(tmp_path)
    assert torch.equal(LoCUS.from_pretrained(tmp_path).features(image()), model.features(image()))
    assert not torch.allclose(made(folder, "blocks").features(image()), model.features(image()))


def test_a_head_is_refused_by_other_weights_than_it_was_learned_on(folder, tmp_path):
    made(folder).save_pretrained(tmp_path / "run")
    networks.save("dinov2", tmp_path / "other", seed=1)
    with pytest.raises(ModelError, match="its features would mean nothing"):
        LoCUS.from_pretrained(tmp_path / "run", backbone=str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda w: w.pop("enter.bias"), r"1 tensors are missing \(enter.bias\)"),
        (lambda w: w.update(extra=torch.zeros(1)), r"1 are unknown \(extra\)"),
        (lambda w: w.update({"enter.bias": torch.zeros(5)}), "enter.bias is 5, not 128"),
    ],
)
def test_weights_that_do_not_fit_are_listed(spoil, says, folder, tmp_path):
    made(folder).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    spoil(weights)
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=says):
        LoCUS.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "{"),
        ("config.json", "{}"),
        ("config.json", "[]"),
        ("config.json", '{"backbone_fingerprint": "x", "backbone": "classic", "head": "paper", "colour": 3}'),
        ("config.json", '{"backbone_fingerprint": "x", "backbone": "classic", "head": "frobnicate"}'),
        ("config.json", '{"backbone_fingerprint": "x", "backbone": "classic", "head": "paper", "radii": 0.2}'),
        ("config.json", '{"backbone_fingerprint": "x", "backbone": "classic", "head": "paper", "resolution": "x"}'),
        ("model.safetensors", "nothing"),
        ("config.json", None),
        ("model.safetensors", None),
    ],
)
def test_a_spoiled_folder_is_one_sentence(name, content, tmp_path):
    LoCUS("classic", head="linear").save_pretrained(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(LocusError, match=str(tmp_path)) as error:
        LoCUS.from_pretrained(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("/no/such/folder", "is no folder"),
        ("somebody/no-such-locus-model", "the hub does not answer"),
        ("nonsense", "the hub does not answer"),
    ],
)
def test_a_model_that_is_not_available_is_one_sentence_at_once(name, says, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # where nobody listens
    begun = time.monotonic()
    with pytest.raises(ModelError, match=name) as error:
        LoCUS.from_pretrained(name)
    assert "\n" not in str(error.value)
    assert says in str(error.value)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("radii", [(), (0.0,), (0.2, -1.0), (float("nan"),), (float("inf"),)])
def test_radii_are_positive_numbers(radii):
    with pytest.raises(ModelError, match="radii are positive numbers"):
        LoCUS("classic", radii=radii, head="linear")


@pytest.mark.parametrize("option", [{"dimension": 0}, {"resolution": 0}, {"resolution": -5}])
def test_dimension_and_resolution_are_positive(option):
    with pytest.raises(ModelError, match=r"a number .*from 1 to"):
        LoCUS("classic", **option, head="linear")


def test_a_loaded_backbone_keeps_its_layer(folder):
    with pytest.raises(ModelError, match="layer 1 already"):
        LoCUS(backbones.load(folder, 1), 2, head="linear")


@pytest.mark.parametrize("kind", ["paper", "linear", "blocks"])
def test_training_leaves_the_backbone_frozen_and_evaluating(kind, folder):
    model = made(folder, kind).train()
    assert model.head.training
    assert not any(module.training for module in model.backbone.modules())
    before = model.backbone.fingerprint
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model(torch.rand(1, 3, 56, 56))[..., 0].sum().backward()
    optimizer.step()
    assert all(parameter.grad is None for parameter in model.backbone.parameters())
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in model.head.parameters())
    del model.backbone.__dict__["fingerprint"]  # computed once and kept; compute it anew
    assert model.backbone.fingerprint == before


def test_the_fingerprint_tells_head_radii_and_weights(folder):
    models = [made(folder), made(folder, radii=(0.2, 0.5)), made(folder, "linear"), made(folder, resolution=90)]
    changed = made(folder)
    with torch.no_grad():
        changed.head.project.bias += 1
    assert len({model.fingerprint for model in [*models, changed]}) == 5
    assert made(folder).fingerprint == made(folder).fingerprint


def test_a_models_configuration_is_plain_json(folder, tmp_path):
    made(folder).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["radii"] == [0.2, 0.6]


def test_kappa_and_tau_are_kept_and_do_not_tell_features_apart(folder, tmp_path):
    model = made(folder, kappa=2.5, tau=0.05)
    model.save_pretrained(tmp_path)
    loaded = LoCUS.from_pretrained(tmp_path)
    assert (loaded.kappa, loaded.tau) == (2.5, 0.05)
    assert model.fingerprint == made(folder).fingerprint
    config = json.loads((tmp_path / "config.json").read_text())
    before = {name: value for name, value in config.items() if name not in ("kappa", "tau", "checksum")}
    (tmp_path / "config.json").write_text(json.dumps(before))  # as a version that did not keep them wrote it
    loaded = LoCUS.from_pretrained(tmp_path)
    assert (loaded.kappa, loaded.tau) == (50.0, 0.01)
    assert loaded.fingerprint == model.fingerprint
    with pytest.raises(ModelError, match="kappa is at least 1"):
        made(folder, kappa=0.5)
