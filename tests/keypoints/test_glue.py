"""LightGlue and LighterGlue with real weights, and, as tiny random networks, against that of transformers."""

import numpy as np
import pytest
import torch
import transformers

from locus.errors import LocusError, WeightsError
from locus.keypoints import Keypoints, glue
from locus.keypoints.lightglue import assigned, in_kornia_layout


@pytest.mark.parametrize("name", ["xfeat", "aliked", "disk"])
def test_two_views_are_matched_where_the_shift_between_them_says(found, glued, drawn, name):
    image = drawn(256, 384)
    a, b = (found(name, 400).detect(np.ascontiguousarray(image[:, s : s + 320])) for s in (0, 64))
    rows, scores = glued(name).match(a, b)
    off = np.abs(a.pixels[rows[:, 0]] - b.pixels[rows[:, 1]] - (64, 0)).max(axis=1)
    assert len(rows) > 100
    assert (off < 3).mean() > 0.9
    assert ((scores > 0.1) & (scores <= 1)).all()


@pytest.mark.parametrize("name", ["xfeat", "aliked"])
def test_scores_of_all_keypoints_give_nearly_the_matches_of_those_that_are_left(found, glued, drawn, name):
    image = drawn(256, 384)
    a, b = (found(name, 400).detect(np.ascontiguousarray(image[:, s : s + 320])) for s in (0, 64))
    scores = glued(name).scores(a, b)
    assert scores.shape == (len(a), len(b))
    assert (scores <= 0).all()
    whole = {tuple(pair) for pair in assigned(scores, glued(name).threshold)[0].tolist()}
    left = {tuple(pair) for pair in glued(name).match(a, b)[0].tolist()}
    assert len(whole & left) > 0.8 * max(len(whole), len(left)) > 50


@pytest.mark.parametrize(("in_a", "in_b"), [(0, 0), (0, 5), (5, 0), (1, 1)])
def test_few_keypoints_do_no_harm(found, glued, drawn, in_a, in_b):
    some = found("xfeat", 50).detect(drawn())
    rows, scores = glued("xfeat").match(some[:in_a], some[:in_b])
    assert len(rows) == len(scores) <= min(in_a, in_b)
    assert glued("xfeat").scores(some[:in_a], some[:in_b]).shape == (in_a, in_b)


def test_each_others_best_above_the_threshold_are_assigned():
    probabilities = torch.tensor([[0.8, 0.3, 0.1], [0.7, 0.2, 0.0], [0.0, 0.0, 0.05], [0.1, 0.6, 0.0]])
    rows, scores = assigned(probabilities.log(), 0.1)
    assert rows.tolist() == [[0, 0], [3, 1]]  # row 1 prefers column 0, which prefers row 0; row 2 is too unlikely
    np.testing.assert_allclose(scores, [0.8, 0.6], rtol=1e-6)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A random LightGlue of transformers, whose keys in cross-attention are its queries, as in every trained one."""
    torch.manual_seed(0)
    superpoint = transformers.SuperPointConfig(
        encoder_hidden_sizes=[8, 8, 8, 8], decoder_hidden_size=8, descriptor_decoder_dim=16, keypoint_threshold=0.0
    )
    config = transformers.LightGlueConfig(
        keypoint_detector_config=superpoint, descriptor_dim=24, num_hidden_layers=2, num_attention_heads=2,
        depth_confidence=-1.0, width_confidence=-1.0, filter_threshold=0.0,
    )  # fmt: skip
    network = transformers.LightGlueForKeypointMatching(config).eval()
    for tensor in network.parameters():  # transformers' own start is so small that all keypoints would look alike
        torch.nn.init.normal_(tensor, std=0.3)
    for layer in network.transformer_layers:
        layer.cross_attention.k_proj.load_state_dict(layer.cross_attention.q_proj.state_dict())
    return network


def test_weights_of_transformers_give_the_matches_of_transformers(tiny):
    import kornia.feature

    rng = np.random.default_rng(0)
    ours = kornia.feature.LightGlue(
        features=None, input_dim=16, descriptor_dim=24, n_layers=2, num_heads=2, depth_confidence=-1,
        width_confidence=-1, filter_threshold=0.0,
    ).eval()  # fmt: skip
    tensors = in_kornia_layout(tiny.state_dict(), "a test")
    missing = ours.load_state_dict(tensors, strict=False)
    assert missing.missing_keys == ["confidence_thresholds"]
    assert missing.unexpected_keys == []
    pixels = torch.from_numpy(rng.uniform(0, (320, 240), (1, 30, 2))).float()
    descriptors = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(1, 30, 16))).float(), dim=-1)
    pixels, descriptors = (torch.cat([each, each.flip(1)]) for each in (pixels, descriptors))
    sizes = torch.tensor([[320.0, 240.0]])
    images = [
        {"keypoints": pixels[i : i + 1], "descriptors": descriptors[i : i + 1], "image_size": sizes} for i in (0, 1)
    ]
    with torch.inference_mode():
        theirs = tiny._match_image_pair(pixels[None], descriptors[None], 240, 320, torch.ones(1, 2, 30))
        result = ours({"image0": images[0], "image1": images[1]})
    assert (result["matches0"] > -1).sum() > 3
    assert theirs[0].reshape(2, -1)[0].tolist() == result["matches0"][0].tolist()
    torch.testing.assert_close(theirs[1].reshape(2, -1)[0], result["matching_scores0"][0])


def test_cross_attention_of_another_kind_is_refused(tiny):
    tensors = {key: tensor.clone() for key, tensor in tiny.state_dict().items()}
    tensors["transformer_layers.0.cross_attention.k_proj.weight"] += 1
    with pytest.raises(WeightsError, match="a test holds no LightGlue: its cross-attention"):
        in_kornia_layout(tensors, "a test")


def test_names_without_a_lightglue_are_refused(tmp_path):
    with pytest.raises(LocusError, match="sift has no LightGlue; known are xfeat, aliked"):
        glue("sift")
    torch.save({"some.weight": torch.zeros(3)}, tmp_path / "other.pth")
    with pytest.raises(WeightsError, match=r"other.pth holds no LightGlue: \d+ tensors are missing"):
        glue(f"xfeat={tmp_path / 'other.pth'}")


@pytest.mark.usefixtures("no_hub")
def test_superpoints_lightglue_offline_says_what_to_do():
    with pytest.raises(WeightsError, match="lightglue_superpoint is not in the Hugging Face cache"):
        glue("superpoint")


def test_keypoints_at_the_very_border_are_taken(glued):
    corners = np.array([[0.0, 0.0], [320.0, 256.0], [320.0, 0.0]])
    three = Keypoints(corners, np.ones(3), torch.nn.functional.normalize(torch.randn(3, 64), dim=1), (320, 256))
    assert glued("xfeat").scores(three, three).isfinite().all()
