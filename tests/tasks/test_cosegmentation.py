"""One pixel in, regions out: on features that know every object the region is the object."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import map_coordinates

from locus.cli import main
from locus.errors import LocusError
from locus.pages.pictures import enlarged
from locus.tasks.cosegmentation import best_first, cosegment, feature_at, similarity
from tests.tasks import labelled_room


@pytest.fixture(scope="module")
def seen(scene):
    return labelled_room.perfect(scene)


def sampled(values, size):
    """SciPy's bilinear interpolation at pixel centres, a patch's value at its centre."""
    rows, columns = values.shape
    y, x = (np.arange(size[1]) + 0.5) * rows / size[1] - 0.5, (np.arange(size[0]) + 0.5) * columns / size[0] - 0.5
    return map_coordinates(values, np.meshgrid(y, x, indexing="ij"), order=1, mode="nearest")


@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 9), st.integers(9, 80), st.integers(7, 60))
def test_patches_are_blended_as_scipy_does(seed, rows, columns, width, height):
    values = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    assert np.allclose(enlarged(values, (width, height)), sampled(values, (width, height)), atol=1e-4)


@given(st.integers(0, 2**31), st.floats(0, 79.99), st.floats(0, 59.99))
def test_a_pixels_feature_is_blended_from_the_patches_around_it(seed, x, y):
    features = torch.randn(6, 8, 5, generator=torch.Generator().manual_seed(seed))
    at = [[y * 6 / 60 - 0.5], [x * 8 / 80 - 0.5]]
    truth = np.array([map_coordinates(c.numpy(), at, order=1, mode="nearest")[0] for c in features.movedim(-1, 0)])
    ours = feature_at(features, x, y, (80, 60)).numpy()
    assert np.allclose(ours, truth / np.linalg.norm(truth), atol=1e-3)


def test_at_a_patchs_centre_it_is_the_patchs():
    features = torch.nn.functional.normalize(torch.randn(6, 8, 5), dim=-1)
    assert torch.allclose(feature_at(features, 35.0, 25.0, (80, 60)), features[2, 3], atol=1e-5)


@pytest.mark.parametrize(("x", "y"), [(-1, 5), (80, 5), (5, 60), (5, -0.01), (float("nan"), 5)])
def test_a_pixel_outside_is_refused(x, y):
    with pytest.raises(LocusError, match="not inside the image, which is 80×60"):
        feature_at(torch.randn(6, 8, 5), x, y, (80, 60))


@pytest.mark.parametrize("instance", [2, 3, 4])
def test_perfect_features_give_the_object_in_every_view(scene, seen, instance):
    query = torch.nn.functional.one_hot(torch.tensor(instance), 8).float()
    regions = cosegment(query, seen, 0.7)
    assert [region.row for region in regions] == list(range(len(scene)))
    for frame, region in zip(scene, regions, strict=True):
        truth = frame.instance == instance
        assert region.mask.shape == truth.shape
        if truth.sum() > 200:
            assert (region.mask & truth).sum() / (region.mask | truth).sum() > 0.6
            assert region.score == pytest.approx(1, abs=1e-5)
        if not truth.any():
            assert not region.mask.any()
            assert region.score == pytest.approx(0, abs=1e-5)
    scores = [region.score for region in best_first(regions)]
    assert scores == sorted(scores, reverse=True)


def test_a_higher_similarity_gives_a_smaller_region_inside(seen):
    query = seen.features[0, 0, 6, 8]
    masks = [[region.mask for region in cosegment(query, seen, least)] for least in (-1.0, 0.3, 0.7, 1.0)]
    for wide, narrow in pairwise(masks):
        assert all((narrower <= wider).all() for wider, narrower in zip(wide, narrow, strict=True))
    assert all(mask.all() for mask in masks[0])


def test_similarity_is_the_cosine():
    features = torch.nn.functional.normalize(torch.randn(3, 4, 5, 6), dim=-1)
    cosines = similarity(features[0, 0, 0], features)
    truth = torch.cosine_similarity(features, features[0, 0, 0].expand_as(features), dim=-1).numpy()
    assert np.allclose(cosines, truth, atol=1e-6)


def test_scales_and_similarities_that_do_not_exist_are_refused(seen):
    query = seen.features[0, 0, 0, 0]
    with pytest.raises(LocusError, match="no scale 1"):
        cosegment(query, seen, 0.7, scale=1)
    with pytest.raises(LocusError, match="between -1 and 1, not 1\\.5"):
        cosegment(query, seen, 1.5)


def test_a_file_needs_a_scene_to_look_in(folder, capsys):
    assert main(["cosegment", str(folder / "images" / "000002.png"), "4", "4", "--model", "classic"]) == 2
    assert "name the scene to look in after the pixel" in capsys.readouterr().err


def command(folder, tmp_path, image, *more, x="40", y="40"):
    words = ["cosegment", str(image), x, y, str(folder), "--model", "classic", "--cache", str(tmp_path / "cache")]
    return main([*words, "--out", str(tmp_path / "sheet.png"), *more])


def test_the_command_writes_a_sheet_and_masks(folder, tmp_path, capsys):
    assert command(folder, tmp_path, f"{folder}:000002", "--masks", str(tmp_path / "masks"), "--views", "3") == 0
    said = capsys.readouterr().out
    assert "of 5 other views have a similar region (cosine of at least 0.75)" in said
    assert "5 masks" in said
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert sheet.shape == (260, 4 * 320 + 3 * 6, 3)
    stated = json.loads((tmp_path / "masks" / "scores.json").read_text())
    assert set(stated["scores"]) == {"000000", "000001", "000003", "000004", "000005"}
    assert list(stated["scores"].values()) == sorted(stated["scores"].values(), reverse=True)
    for name in stated["scores"]:
        mask = np.asarray(Image.open(tmp_path / "masks" / f"{name}.png"))
        assert mask.shape == (60, 80)
        assert set(np.unique(mask)) <= {0, 255}


def test_a_part_of_the_scene_is_searched_and_a_wrong_pixel_costs_nothing(folder, tmp_path, capsys):
    assert command(folder, tmp_path, f"{folder}:000002", x="80") == 2
    assert "the pixel (80, 40) is not inside the image, which is 80×60" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "cache").exists()
    assert command(folder, tmp_path, f"{folder}:000002", "--frames", "::2") == 0
    assert "of 2 other views" in capsys.readouterr().out


def test_a_frame_may_be_named_by_its_file_and_a_strangers_image_may_ask(folder, tmp_path, capsys):
    assert command(folder, tmp_path, folder / "images" / "000002.png") == 0
    assert "of 5 other views" in capsys.readouterr().out
    stranger = tmp_path / "stranger.png"
    Image.open(folder / "images" / "000002.png").resize((200, 90)).save(stranger)
    assert command(folder, tmp_path, stranger, x="150") == 0
    assert "of 6 other views" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("image", "more", "pixel", "said"),
    [
        ("{folder}:2", [], ("80", "3"), "not inside the image, which is 80×60"),
        ("{folder}:nobody", [], ("1", "1"), "has no frame 'nobody'"),
        ("000002", [], ("1", "1"), "000002 does not exist"),
        ("{folder}:2", ["--scale", "2"], ("1", "1"), "no scale 2"),
        ("{folder}:2", ["--min-similarity", "7"], ("1", "1"), "between -1 and 1"),
        ("{folder}:2", ["--views", "0"], ("1", "1"), "at least one image"),
        ("{folder}:2", ["--out", "sheet"], ("1", "1"), "end its name in .png or .jpg"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_no_sheet(folder, tmp_path, capsys, image, more, pixel, said):
    assert command(folder, tmp_path, image.format(folder=folder), *more, x=pixel[0], y=pixel[1]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "sheet.png").exists()
