"""Detectors with real weights, on drawn images; what they refuse."""

import builtins
import subprocess
import sys

import cv2
import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from locus.errors import LocusError, WeightsError
from locus.keypoints import Keypoints, detector
from locus.keypoints.detection import resized

LEARNED = ["xfeat", "aliked", "disk"]
ALL = [*LEARNED, "sift"]


@pytest.mark.parametrize("name", ALL)
def test_keypoints_are_inside_best_first_and_of_unit_length(found, drawn, name):
    one = found(name, 300)
    keypoints = one.detect(drawn(300, 401))
    assert 100 < len(keypoints) <= 300 == one.count
    assert keypoints.size == (401, 300)
    assert ((keypoints.pixels > 0) & (keypoints.pixels < (401, 300))).all()
    assert (np.diff(keypoints.scores) <= 0).all()
    assert keypoints.descriptors.dtype == torch.float32
    assert keypoints.descriptors.shape == (len(keypoints), one.dimension)
    torch.testing.assert_close(keypoints.descriptors.norm(dim=1), torch.ones(len(keypoints)))
    again = one.detect(drawn(300, 401))
    assert np.array_equal(again.pixels, keypoints.pixels)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 900), (64, 64)])
def test_an_image_of_any_size_without_texture_has_no_keypoints(found, name, shape):
    keypoints = found(name).detect(np.full((*shape, 3), 90, np.uint8))
    assert len(keypoints) == 0
    assert keypoints.descriptors.shape == (0, found(name).dimension)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(2, 2), (1, 7), (3, 900), (33, 31)])
def test_an_image_of_any_size_is_taken(found, name, shape):
    noise = np.random.default_rng(0).integers(0, 255, (*shape, 3)).astype(np.uint8)
    keypoints = found(name).detect(noise)
    assert ((keypoints.pixels >= 0) & (keypoints.pixels <= shape[::-1])).all()


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("shape", [(256, 320), (1000, 1280), (301, 403), (20, 20)])
def test_a_peak_of_the_score_map_becomes_the_pixel_under_it(found, monkeypatch, name, shape):
    """Real networks fire a pixel or two beside a drawn corner; what is ours is the way back from their score map."""
    network, at = found(name).network, (9, 17)

    def peak(pixels):
        """A score map with one sharp peak, and features that are all ones."""
        height, width = pixels.shape[2:]
        scores = torch.zeros(1, 1, height, width)
        scores[0, 0, at[1], at[0]] = 20.0
        peak.size = np.array([width, height])
        return scores, torch.ones(1, 128, height, width)

    if name == "xfeat":

        def cells(pixels):
            scores = torch.nn.functional.pixel_unshuffle(peak(pixels)[0], 8)
            dustbin = torch.full_like(scores[:, :1], 5.0)
            return torch.ones(1, 64, *scores.shape[2:]), torch.cat([scores, dustbin], 1), torch.ones_like(dustbin)

        monkeypatch.setattr(network.net, "forward", cells)
    elif name == "aliked":
        monkeypatch.setattr(network, "extract_dense_map", lambda pixels: peak(pixels)[::-1])
    else:
        monkeypatch.setattr(network.unet, "forward", lambda pixels: torch.cat(peak(pixels)[::-1], 1))
    image = np.random.default_rng(0).integers(0, 255, (*shape, 3)).astype(np.uint8)
    keypoints = found(name).detect(image)
    expected = (np.array(at) + 0.5) / peak.size * shape[::-1]
    np.testing.assert_allclose(keypoints.pixels, [expected], atol=1e-3)


def test_sift_finds_the_centre_of_a_blob(found):
    y, x = np.mgrid[:120, :160] + 0.5  # pixel centres
    for centre in ((60.5, 50.5), (80.0, 61.0), (71.3, 57.8)):
        blob = 60 + 150 * np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * 4.0**2))
        keypoints = found("sift").detect(np.repeat(blob.astype(np.uint8)[..., None], 3, axis=2))
        np.testing.assert_allclose(keypoints.pixels[0], centre, atol=0.1)


@pytest.mark.parametrize("name", ALL)
def test_a_shifted_image_has_shifted_keypoints(found, drawn, name):
    image = drawn(256 + 32, 320 + 32)
    first, second = (found(name).detect(np.ascontiguousarray(image[s : s + 256, s : s + 320])) for s in (0, 32))
    inner = ((second.pixels > 64) & (second.pixels < np.array(second.size) - 64)).all(axis=1)
    distance, _ = cKDTree(first.pixels - 32).query(second[inner].pixels)
    assert (distance < 0.3).mean() > 0.7


@pytest.mark.parametrize("name", ALL)
def test_keypoints_of_a_large_image_lie_where_those_of_a_small_one_do(found, drawn, name):
    """Resizing on the way in is undone on the way out, in both directions, to a fraction of a pixel."""
    image = drawn(256, 320)
    large = cv2.resize(image, (640, 768), interpolation=cv2.INTER_LINEAR)
    own, other = found(name).detect(image), found(name).detect(large)
    distance, nearest = cKDTree(other.pixels / (2, 3)).query(own.pixels)
    same = distance < 2
    assert same.mean() > 0.4
    assert np.abs((other.pixels[nearest] / (2, 3) - own.pixels)[same].mean(axis=0)).max() < 0.15


def test_some_keypoints_by_slice_list_or_mask():
    three = Keypoints(np.arange(6.0).reshape(3, 2), np.array([3.0, 2.0, 1.0]), torch.eye(3), (9, 9))
    for rows in (slice(1, None), [1, 2], np.array([1, 2]), np.array([False, True, True])):
        some = three[rows]
        assert len(some) == 2
        assert some.pixels.tolist() == [[2, 3], [4, 5]]
        assert some.scores.tolist() == [2, 1]
        assert torch.equal(some.descriptors, torch.eye(3)[1:])
    assert len(three[[]]) == 0


def test_unknown_names_and_counts_are_refused():
    with pytest.raises(LocusError, match="xfeet is no keypoint detector; known are xfeat, aliked"):
        detector("xfeet")
    with pytest.raises(LocusError, match=r"sift=a\.pth is no keypoint detector"):
        detector("sift=a.pth")
    with pytest.raises(LocusError, match="at least one keypoint, not 0"):
        detector("sift", 0)


@pytest.mark.parametrize("name", LEARNED)
def test_weights_of_another_network_are_refused(tmp_path, name):
    torch.save({"extractor": {"some.weight": torch.zeros(3)}}, tmp_path / "other.pth")
    with pytest.raises(WeightsError, match=r"other.pth holds no \w+: \d+ tensors are missing"):
        detector(f"{name}={tmp_path / 'other.pth'}")
    with pytest.raises(WeightsError, match="is no file"):
        detector(f"{name}={tmp_path / 'nothing.pth'}")


def test_weights_of_your_own_are_taken(found, drawn, tmp_path):
    tensors = {key: tensor.clone() for key, tensor in found("xfeat").network.net.state_dict().items()}
    torch.save(tensors, tmp_path / "own.pt")
    same = detector(f"xfeat={tmp_path / 'own.pt'}")
    assert np.array_equal(same.detect(drawn()).pixels, found("xfeat").detect(drawn()).pixels)
    torch.save({key: tensor * 0.9 for key, tensor in tensors.items()}, tmp_path / "own.pt")
    assert detector(f"xfeat={tmp_path / 'own.pt'}").fingerprint != same.fingerprint


@pytest.mark.usefixtures("no_hub")
def test_superpoint_offline_says_what_to_do():
    with pytest.raises(WeightsError, match="superpoint is not in the Hugging Face cache, and the hub could not be"):
        detector("superpoint")


def test_without_kornia_one_sentence_says_so(monkeypatch):
    real = builtins.__import__

    def missing(name, *arguments, **options):
        if name.startswith("kornia"):
            raise ImportError("No module named 'kornia'")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(LocusError, match="keypoint networks need kornia") as error:
        detector("xfeat")
    assert "\n" not in str(error.value)


def test_kornia_is_imported_only_by_those_who_use_it():
    code = "import sys; from locus.keypoints import detector; detector('sift'); print('kornia' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((256, 320), (480, 608)),
        ((480, 640), (480, 640)),
        ((968, 1296), (480, 640)),
        ((2, 2), (32, 32)),
        ((3, 900), (32, 1792)),
    ],
)
def test_images_are_brought_to_the_size_that_networks_know(monkeypatch, shape, size):
    monkeypatch.undo()
    made = resized(np.full((*shape, 3), 255, np.uint8))
    assert made.shape == (1, 3, *size)
    assert (made == 1).all()
