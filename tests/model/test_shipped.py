"""Models that come with the package: small, whole, documented, and no worse than the network they are built on."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from locus import load_scene
from locus.cli import main
from locus.features.dense import scene_features
from locus.model import LoCUS, ModelError, load
from locus.model.shipped import DEFAULT, MODELS
from locus.objective import average_precision, retrieval_sets
from tests import networks

RADIUS = 0.2


def test_the_model_that_commands_take_by_default_is_there():
    assert DEFAULT in MODELS


@pytest.mark.parametrize("name", MODELS)
def test_a_shipped_model_is_small_in_half_precision_and_finite(name):
    learned = load_file(MODELS[name] / "model.safetensors")
    assert sum(file.stat().st_size for file in MODELS[name].iterdir()) < 30e6
    for weight in learned.values():
        assert weight.dtype == torch.float16
        assert torch.isfinite(weight).all()


@pytest.mark.parametrize("name", MODELS)
def test_its_card_says_what_it_was_trained_on_and_where_it_ends(name):
    card = (MODELS[name] / "README.md").read_text(encoding="utf-8")
    for part in ("locus train", "## Figures", "## Limits", "`dinov2-small`", "CC BY 4.0", "CC0"):
        assert part in card


@pytest.mark.usefixtures("small_weights")
def test_its_fingerprint_by_which_maps_know_it_does_not_change_unnoticed():
    model = load("locus-small")
    assert (model.kappa, model.tau) == (50.0, 0.01)
    assert model.fingerprint == "e3bbc91e84fc795d"


@pytest.mark.usefixtures("small_weights")
def test_it_knows_places_of_a_real_flat_better_than_its_backbone(real_data, tmp_path):
    scene = load_scene(real_data / "hololens")[:40:4]
    values = {}
    for name in (DEFAULT, "dinov2-small"):
        model = load(name, None if name in MODELS else 10)
        model.resolution = 252
        seen = scene_features(model, scene, tmp_path)
        features = seen.features[0].flatten(0, 2)
        points = torch.from_numpy(seen.points).reshape(-1, 3)
        frames = torch.arange(len(seen)).repeat_interleave(seen.points.shape[1] * seen.points.shape[2])
        known = torch.isfinite(points).all(dim=1).nonzero()[:, 0]
        landmarks = known[:: max(1, len(known) // 200)]
        sets = retrieval_sets(points, torch.zeros_like(frames), frames, landmarks, RADIUS, 50, True)
        values[name] = float(average_precision(features @ features[landmarks].T, *sets))
    print(values)
    assert values[DEFAULT] > 1.5 * values["dinov2-small"]


def test_half_precision_halves_the_file_and_hardly_moves_features(tmp_path):
    networks.save("dinov2", tmp_path / "network")
    torch.manual_seed(0)
    model = LoCUS(str(tmp_path / "network"), 1, dimension=8, head="blocks", blocks=2)
    model.save_pretrained(tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--hub", str(tmp_path / "half"), "--half"]) == 0
    whole, half = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("run", "half"))
    assert half < 0.6 * whole
    image = np.random.default_rng(0).integers(0, 256, (60, 70, 3), dtype=np.uint8)
    loaded = LoCUS.from_pretrained(tmp_path / "half")
    assert all(weight.dtype == torch.float32 for weight in loaded.head.parameters())
    torch.testing.assert_close(loaded.features(image), model.features(image), atol=5e-3, rtol=0)


def test_a_shipped_models_layer_is_its_own():
    with pytest.raises(ModelError, match="whose layer is fixed"):
        load(DEFAULT, 3)
