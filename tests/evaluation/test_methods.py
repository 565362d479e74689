"""Words to methods: PCA against scikit-learn, grids, and what cannot be had."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.decomposition import PCA

from locus import backbones
from locus.errors import LocusError
from locus.evaluation.methods import Chance, ModelMethod, Truth, Unavailable, on_grid
from locus.evaluation.specs import MethodOptions, method_of, methods_of, parsed
from locus.features.cache import cache_scene
from locus.features.reduction import sample_rows
from locus.model import LoCUS


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("classic", ("classic", None, None)),
        ("dinov2-small@7", ("dinov2-small", 7, None)),
        ("dinov2-small@7+whitened", ("dinov2-small", 7, "whitened")),
        ("facebook/dinov2-base+full", ("facebook/dinov2-base", None, "full")),
        ("runs/a+b", ("runs/a+b", None, None)),
    ],
)
def test_words_are_taken_apart(word, expected):
    assert parsed(word) == expected


def test_a_folder_of_that_very_name_is_meant_first(tmp_path, monkeypatch):
    (tmp_path / "run@7").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parsed("run@7") == ("run@7", None, None)


@pytest.mark.parametrize("whiten", [False, True])
def test_reduction_is_scikit_learns_pca_of_the_training_scenes(rooms, patches, tiny, tokens, whiten, monkeypatch):
    monkeypatch.setattr("locus.evaluation.specs.DIMENSION", 8)
    means = MethodOptions([rooms / "second"], resolution=None, cache=tokens)
    word = f"{tiny}@3+{'whitened' if whiten else 'pca'}"
    method = method_of(word, means)
    assert method.label == f"{tiny.name}@3 {'whitened PCA' if whiten else 'PCA'}-8"
    backbone = backbones.load(str(tiny), 3)
    fitted = cache_scene(means.scenes[0], backbone, folder=tokens)
    # The referee is fitted to the very same rows.
    rows = sample_rows(LoCUS(backbone, head="linear"), [fitted])
    referee = PCA(8, whiten=whiten, svd_solver="full").fit(rows.double().numpy())
    image = np.asarray(fitted.tokens[0][fitted.prefix :], np.float64)
    expected = F.normalize(torch.from_numpy(referee.transform(image)), dim=-1)
    given = method.model.head_features(torch.from_numpy(np.asarray(fitted.tokens[:1], np.float32)), fitted.grid)
    own = given[0, 0].flatten(0, 1).double()
    # A direction's sign is each solver's whim, which cosines between patches do not see.
    assert torch.allclose(own @ own.T, expected @ expected.T, atol=2e-3)


@pytest.mark.parametrize("reduction", ["pca", "whitened"])
def test_a_trained_models_own_start_is_pca_of_its_pretrained_blocks(rooms, tiny, tokens, reduction, tmp_path):
    trained = LoCUS(str(tiny), 2, 8, (0.2, 0.4), head="blocks", blocks=1)
    torch.manual_seed(0)
    for weight in trained.head.parameters():
        torch.nn.init.normal_(weight)
    trained.write(tmp_path / "run")
    options = MethodOptions([rooms / "second"], resolution=10**6, cache=tokens)  # the model's own resolution counts
    method = method_of(f"{tmp_path / 'run'}+{reduction}", options)
    assert method.label == f"run untrained {'whitened PCA' if reduction == 'whitened' else 'PCA'}-8"
    assert method_of(str(tmp_path / "run"), options).model.fingerprint == trained.fingerprint
    fitted = cache_scene(options.scenes[0], trained.backbone, folder=tokens)
    sequence = torch.from_numpy(np.asarray(fitted.tokens, np.float32))
    with torch.no_grad():  # block 3 as the network has it
        rows = backbones.load(str(tiny), 2).continuation(1)(sequence, fitted.grid)[:, fitted.prefix :].flatten(0, 1)
        own = method.model.head_features(sequence, fitted.grid)[0].flatten(0, 2)
    referee = PCA(8, whiten=reduction == "whitened", svd_solver="full").fit(rows.double().numpy())
    expected = F.normalize(torch.from_numpy(referee.transform(rows.double().numpy())), dim=-1)[::50]
    own = own[::50].double()
    assert torch.allclose(own @ own.T, expected @ expected.T, atol=2e-3)


def test_pca_without_scenes_to_fit_to_says_what_to_do(tiny, monkeypatch):
    monkeypatch.setattr("locus.evaluation.specs.DIMENSION", 8)
    with pytest.raises(LocusError, match="--fit"):
        method_of(str(tiny), MethodOptions())


def test_full_dimension_needs_no_fit(tiny, patches, tokens):
    method = method_of(f"{tiny}+full", MethodOptions(resolution=None, cache=tokens))
    features = method.features(patches, 0.2)
    assert features.shape == (len(patches), *patches.grid, 32)
    assert torch.allclose(features.norm(dim=-1), torch.ones(1), atol=1e-5)


def test_weights_that_cannot_be_had_are_a_row(monkeypatch):
    def nowhere(name, layer=None):
        raise LocusError("no network")

    monkeypatch.setattr(backbones, "load", nowhere)
    method = method_of("resnet50", MethodOptions())
    assert isinstance(method, Unavailable)
    assert "no network" in method.reason
    with pytest.raises(LocusError, match="no method to evaluate"):
        methods_of(["resnet50"], MethodOptions())


def test_a_model_that_is_nowhere_is_a_row(monkeypatch):
    monkeypatch.setattr("locus.model.locus.hub_answers", lambda: False)
    found = methods_of(["runs/nowhere", "random"], MethodOptions())
    assert isinstance(found[0], Unavailable)
    assert isinstance(found[1], Chance)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("sift-ratio", "only for `locus eval pose`"),
        ("mask2former+oracle", "only for `locus eval segmentation`"),
        ("predictions:theirs.jsonl", "only for `locus eval pose`, `segmentation` and"),
        ("clasic", "unknown method.* did you mean classic"),
        ("dinov2-smal@7+whitened", "unknown method.* did you mean dinov2-small"),
        ("locus-smal", "unknown method.* did you mean locus-small"),
        ("nonesuch", "unknown method.* `locus weights list`"),
    ],
)
def test_words_of_other_tasks_and_typos_are_one_sentence(word, sentence):
    with pytest.raises(LocusError, match=sentence):
        methods_of(["random", word], MethodOptions())


def test_a_trained_model_has_its_own_layer(tmp_path):
    (tmp_path / "run").mkdir()
    for word in ("@3", "@3+pca", "+full"):
        with pytest.raises(LocusError, match="name it alone, with \\+pca or"):
            method_of(f"{tmp_path / 'run'}{word}", MethodOptions())


def test_the_scale_trained_for_the_nearest_radius_is_asked(tiny):
    method = ModelMethod("model", LoCUS(str(tiny), 2, 8, (0.1, 0.2, 0.8), head="linear"))
    assert [method.scale(radius) for radius in (0.05, 0.15, 0.3, 0.5, 5.0)] == [0, 1, 1, 2, 2]


def test_features_stay_as_they_are_on_their_own_grid_and_are_blended_on_another():
    maps = F.normalize(torch.randn(2, 6, 8, 5), dim=-1)
    assert on_grid(maps, (6, 8)) is maps
    finer = on_grid(maps, (12, 16))
    assert torch.allclose(finer.norm(dim=-1), torch.ones(1))
    # The centre of a fine patch lies a quarter of a patch from the coarse one's.
    blended = 0.75 * (0.75 * maps[0, 1, 1] + 0.25 * maps[0, 1, 2]) + 0.25 * (
        0.75 * maps[0, 2, 1] + 0.25 * maps[0, 2, 2]
    )
    assert torch.allclose(finer[0, 3, 3], F.normalize(blended, dim=0), atol=1e-6)


def test_most_similar_ground_truth_features_are_the_nearest_points(patches):
    features = Truth().features(patches, 0.2).flatten(0, 2)
    points = torch.from_numpy(patches.points).double().flatten(0, 2)
    known = points.isfinite().all(dim=1)
    features, points = features[known][::7], points[known][::7]
    distance = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    order = (features @ features.T).argsort(dim=1, descending=True)
    ranked = distance.gather(1, order)
    assert (ranked.diff(dim=1) > -1e-3).all()
