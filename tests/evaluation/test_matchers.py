"""Keypoints in the benchmarks: rules by hand and against OpenCV, found once in each frame."""

import cv2
import numpy as np
import pytest
import torch
import transformers

from locus.errors import LocusError
from locus.evaluation.matchers import KEYPOINT_MATCHERS, KeypointMatcher, keypoint_words, mutual, ratio
from locus.evaluation.methods import Unavailable
from locus.evaluation.specs import MethodOptions, methods_of
from locus.keypoints import Keypoints, detection, detector

SUPERPOINT = {
    "encoder_hidden_sizes": [8, 8, 16, 16],
    "decoder_hidden_size": 16,
    "descriptor_decoder_dim": 16,
    "keypoint_threshold": 0.0,
    "max_keypoints": 60,
}


def points(descriptors, pixels=None):
    """Keypoints of these descriptors, far apart unless they are placed."""
    count = len(descriptors)
    pixels = np.arange(2.0 * count).reshape(-1, 2) * 100 if pixels is None else np.array(pixels, float)
    return Keypoints(pixels, np.linspace(1, 0, count), torch.tensor(descriptors).float().reshape(count, -1), (640, 480))


def random_points(seed, count, dimension=8):
    rng = np.random.default_rng(seed)
    descriptors = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(count, dimension))).float(), dim=1)
    return Keypoints(rng.uniform(0, 480, (count, 2)), np.linspace(1, 0, count), descriptors, (640, 480))


def test_mutual_neighbours_are_those_of_opencvs_cross_check():
    a, b = random_points(0, 60), random_points(1, 50)
    pairs, scores = mutual(a, b)
    expected = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a.descriptors.numpy(), b.descriptors.numpy())
    assert sorted(map(tuple, pairs.tolist())) == sorted((each.queryIdx, each.trainIdx) for each in expected)
    cosines = (a.descriptors[pairs[:, 0]] * b.descriptors[pairs[:, 1]]).sum(dim=1)
    np.testing.assert_allclose(scores, cosines.numpy(), rtol=1e-5)


def test_the_ratio_is_that_of_opencvs_two_nearest():
    a, b = random_points(2, 200, 4), random_points(3, 50, 4)
    pairs, scores = ratio(a, b)
    two = cv2.BFMatcher(cv2.NORM_L2).knnMatch(a.descriptors.numpy(), b.descriptors.numpy(), k=2)
    expected = {(m.queryIdx, m.trainIdx): 1 - m.distance / n.distance for m, n in two if m.distance < 0.8 * n.distance}
    assert 10 < len(expected) < 190
    found = dict(zip(map(tuple, pairs.tolist()), scores.tolist(), strict=True))
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("rule", [mutual, ratio])
@pytest.mark.parametrize(("in_a", "in_b"), [(0, 0), (0, 3), (3, 0), (1, 1), (3, 1)])
def test_too_few_keypoints_do_no_harm(rule, in_a, in_b):
    pairs, scores = rule(random_points(0, in_a), random_points(1, in_b))
    assert len(pairs) == len(scores) <= min(in_a, in_b)


def test_fginn_leaves_a_second_detection_of_the_same_corner_out():
    first = points([[1.0, 0.0]])
    second = points([[0.9, 0.0], [0.89, 0.0], [0.0, 0.0]], [[50, 50], [52, 50], [90, 10]])
    pairs, scores = ratio(first, second, elsewhere=10.0)
    assert pairs.tolist() == [[0, 0]]
    assert scores[0] == pytest.approx(1 - 0.1)  # to the third
    assert len(ratio(first, second)[0]) == 0  # the plain test sees 0.1 / 0.11
    assert ratio(first, second[:2], elsewhere=10.0)[1][0] == 1  # nothing speaks against it


def test_keypoints_are_found_once_in_every_frame_of_a_scene(patches):
    looked = []

    class Counted(detection.Detector):
        name = fingerprint = "counted"
        count = dimension = 8

        def found(self, image):
            looked.append(image.shape)
            return random_points(len(looked), 8)

    matcher = KeypointMatcher("counted", Counted(), mutual, "mutual")
    for a, b in ((0, 1), (1, 2), (0, 2), (0, 1)):
        matcher.match(patches, a, b)
    assert len(looked) == 3


@pytest.fixture(scope="module")
def superpoint(tmp_path_factory):
    """A tiny random SuperPoint."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("superpoint")
    transformers.SuperPointForKeypointDetection(transformers.SuperPointConfig(**SUPERPOINT)).save_pretrained(folder)
    return detector(f"superpoint={folder}", 40)


@pytest.mark.parametrize("rule", [mutual, ratio])
def test_an_images_own_keypoints_match_themselves(superpoint, patches, monkeypatch, rule):
    monkeypatch.setattr(detection, "SHORTER", 128)
    matches = KeypointMatcher("superpoint", superpoint, rule, "any").match(patches, 0, 0)
    assert 0 < len(matches) <= 40
    assert np.allclose(matches.pixels_a, matches.pixels_b)
    width, height = matches.size_a
    assert ((matches.pixels_a >= 0) & (matches.pixels_a <= [width, height])).all()


def test_superpoint_gives_the_pixels_of_its_score_maps_peak(superpoint, monkeypatch):
    monkeypatch.setattr(detection, "SHORTER", 64)

    def peak(encoded):
        scores = torch.zeros(1, encoded.shape[2] * 8, encoded.shape[3] * 8)
        scores[0, 17, 9] = 1.0
        return scores

    monkeypatch.setattr(superpoint.network.keypoint_decoder, "_get_pixel_scores", peak)
    image = np.random.default_rng(0).integers(0, 255, (128, 256, 3)).astype(np.uint8)
    np.testing.assert_allclose(superpoint.detect(image).pixels, [[19.0, 35.0]], atol=1e-3)


def test_weights_of_another_network_are_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "lightglue"}')
    with pytest.raises(LocusError, match="does not hold the weights of a SuperPoint"):
        detector(f"superpoint={tmp_path}")


@pytest.fixture(scope="module")
def authors_file(tmp_path_factory):
    """A file of the layout of superpoint_v1.pth, and the same network in the library's own layout."""
    torch.manual_seed(0)
    network = transformers.SuperPointForKeypointDetection(transformers.SuperPointConfig())
    folder = tmp_path_factory.mktemp("authors")
    network.save_pretrained(folder / "library")
    layers = ["1a", "1b", "2a", "2b", "3a", "3b", "4a", "4b", "Pa", "Pb", "Da", "Db"]
    parts = [f"conv{layer}.{part}" for layer in layers for part in ("weight", "bias")]
    torch.save(dict(zip(parts, network.state_dict().values(), strict=True)), folder / "superpoint_v1.pth")
    return folder


@pytest.mark.parametrize("word", ["superpoint-nn", "superpoint-fginn"])
def test_superpoint_takes_its_authors_file(authors_file, patches, monkeypatch, word):
    monkeypatch.setattr(detection, "SHORTER", 64)
    words = [f"{word}={authors_file / name}" for name in ("superpoint_v1.pth", "library")]
    found = [method.match(patches, 0, 0) for method in methods_of(words, MethodOptions(), keypoint_words(words))]
    assert len(found[0])
    assert np.allclose(found[0].pixels_a, found[1].pixels_a)
    assert np.allclose(found[0].scores, found[1].scores)


def test_another_file_is_no_superpoint(tmp_path):
    torch.save({"conv1a.weight": torch.zeros(3)}, tmp_path / "other.pth")
    with pytest.raises(LocusError, match=r"is not superpoint_v1\.pth"):
        detector(f"superpoint={tmp_path / 'other.pth'}")


@pytest.mark.parametrize("word", KEYPOINT_MATCHERS)
def test_every_word_makes_a_matcher_or_says_what_is_missing(word):
    method = methods_of([word, "random"], MethodOptions(), KEYPOINT_MATCHERS)[0]
    if isinstance(method, Unavailable):
        assert "\n" not in method.reason
        assert "bring" in method.reason or "copy its folder here" in method.reason
    else:
        assert method.fingerprint.startswith(word.split("-")[0])
