"""SuperPoint and LightGlue as tiny random networks; FGINN by hand."""

import numpy as np
import pytest
import torch
import transformers

from locus.errors import LocusError
from locus.evaluation import learned_matchers
from locus.evaluation.learned_matchers import LightGlue, SuperPoint, fginn, prepared
from locus.evaluation.matchers import Keypoints

SUPERPOINT = {
    "encoder_hidden_sizes": [8, 8, 16, 16],
    "decoder_hidden_size": 16,
    "descriptor_decoder_dim": 16,
    "keypoint_threshold": 0.0,
    "max_keypoints": 60,
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("weights")
    superpoint = transformers.SuperPointConfig(**SUPERPOINT)
    transformers.SuperPointForKeypointDetection(superpoint).save_pretrained(root / "superpoint")
    glue = transformers.LightGlueConfig(
        keypoint_detector_config=superpoint,
        descriptor_dim=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        filter_threshold=0.0,
    )
    transformers.LightGlueForKeypointMatching(glue).save_pretrained(root / "lightglue")
    return root


@pytest.mark.parametrize("test", ["nn", "fginn"])
def test_an_images_own_keypoints_match_themselves(weights, patches, test):
    matcher = SuperPoint(test, weights / "superpoint")
    matches = matcher.match(patches, 0, 0)
    assert len(matches) > 0
    assert np.allclose(matches.pixels_a, matches.pixels_b)
    width, height = matches.size_a
    assert ((matches.pixels_a >= 0) & (matches.pixels_a <= [width, height])).all()
    assert "superpoint" in matcher.fingerprint


def test_matches_lie_inside_both_images(weights, patches, monkeypatch):
    monkeypatch.setattr(learned_matchers, "SHORTER", 128)
    matches = LightGlue(weights / "lightglue").match(patches, 0, 1)
    assert len(matches) > 0
    assert matches.pixels_a.shape == matches.pixels_b.shape
    for pixels, size in ((matches.pixels_a, matches.size_a), (matches.pixels_b, matches.size_b)):
        assert ((pixels >= 0) & (pixels <= np.array(size) + 1)).all()
    assert (np.diff(matches.scores) <= 0).all()


def test_weights_of_another_network_are_refused(weights, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "lightglue"}')
    with pytest.raises(LocusError, match="holds no SuperPoint"):
        SuperPoint("nn", tmp_path)


@pytest.mark.parametrize(("in_a", "in_b"), [(0, 3), (1, 3), (3, 1), (3, 0)])
def test_too_few_keypoints_are_no_matches(weights, patches, monkeypatch, in_a, in_b):
    matcher = SuperPoint("nn", weights / "superpoint")
    some = iter([Keypoints(np.ones((count, 2)), torch.eye(count, 4)) for count in (in_a, in_b)])
    monkeypatch.setattr(matcher, "detect", lambda image: next(some))
    assert len(matcher.match(patches, 0, 1)) == 0


def test_fginn_leaves_a_second_detection_of_the_same_corner_out():
    first = Keypoints(np.zeros((1, 2)), torch.tensor([[1.0, 0.0]]))
    descriptors = torch.tensor([[0.9, 0.0], [0.89, 0.0], [0.0, 0.0]])
    second = Keypoints(np.array([[50.0, 50.0], [52.0, 50.0], [90.0, 10.0]]), descriptors)
    nearest, ratio = fginn(first, second)
    assert nearest.tolist() == [0]
    assert ratio[0] == pytest.approx(0.1)  # to the third; the plain ratio test would see 0.1 / 0.11
    alone = Keypoints(second.pixels[:2], descriptors[:2])
    assert fginn(first, alone)[1][0] == 0  # nothing speaks against it


def test_images_are_grey_and_of_whole_blocks():
    made = prepared(np.random.default_rng(0).integers(0, 255, (256, 320, 3)).astype(np.uint8))
    assert made.shape == (3, 480, 608)
    assert torch.equal(made[0], made[2])
