"""A thing marked in one image is found in the others: exactly, if features know every object."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import locus
from locus.cli import main
from locus.errors import LocusError
from locus.features.images import NamedImage
from locus.tasks.image_features import ImageFeatures, frame_features, query_features
from locus.tasks.instances import box_mask, box_of, find_instance, find_instances, instance_of, patch_shares, read_mask
from locus.tasks.named_images import only_image
from tests.tasks import labelled_room


@pytest.fixture(scope="module")
def known(scene):
    return frame_features(labelled_room.perfect(scene))


def blank(size, features):
    """An image of nothing, with features."""
    return ImageFeatures(NamedImage("blank", lambda: np.zeros((size[1], size[0], 3), np.uint8)), size, features)


@pytest.mark.parametrize("number", [3, 4])
def test_perfect_features_find_the_thing_where_it_is_and_nowhere_else(scene, known, number):
    sizes = np.array([(frame.instance == number).sum() for frame in scene])
    first = int(sizes.argmax())
    instance = instance_of(known[first].features[0], scene[first].instance == number)
    found = {each.image.name: each for each in find_instances(known, instance)}
    for frame, size in zip(scene, sizes, strict=True):
        each = found[frame.name]
        truth = frame.instance == number
        if size > 200:
            assert each.score > 0.8
            assert (each.mask & truth).sum() / (each.mask | truth).sum() > 0.6
            assert np.abs(np.subtract(each.box, box_of(truth))).max() <= 6
        if size == 0:
            assert each.score < 0.6
            assert each.box is None
    ranked = [sizes[[frame.name for frame in scene].index(name)] > 0 for name in found]
    assert ranked == sorted(ranked, reverse=True)


def test_the_score_is_the_mean_over_prototypes_of_the_best_patch():
    generator = torch.Generator().manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(2, 1, 4, 5, 6, generator=generator), dim=-1)
    mask = np.zeros((40, 50), bool)
    mask[10:30, 20:40] = True  # exactly the patches of rows 1 and 2, columns 2 and 3
    view = blank((50, 40), features[1])
    score = find_instance(view, instance_of(features[0, 0], mask)).score
    best = [
        max(float(features[0, 0, r, c] @ features[1, 0, i, j]) for i in range(4) for j in range(5))
        for r in (1, 2)
        for c in (2, 3)
    ]
    assert score == pytest.approx(np.mean(best), abs=1e-6)


def test_of_two_similar_spots_the_more_similar_is_found_in_one_piece():
    features = torch.zeros(1, 6, 9, 3)
    features[..., 2] = 1
    features[0, 1:3, 1:3] = torch.tensor([0.8, 0.6, 0.0])
    features[0, 3:5, 6:8] = torch.tensor([1.0, 0.0, 0.0])
    view = blank((90, 60), features)
    instance = instance_of(torch.tensor([[[1.0, 0.0, 0.0]]]), np.ones((4, 4), bool))
    x0, y0, x1, y1 = find_instance(view, instance, 0.7).box
    assert 55 <= x0 <= 65
    assert 25 <= y0 <= 35
    assert 75 <= x1 <= 85
    assert 45 <= y1 <= 55


def test_what_lay_beside_the_thing_is_not_the_thing():
    thing, wall = torch.tensor([1.0, 0.0]), torch.tensor([0.8, 0.6])
    features = wall.repeat(6, 9, 1)
    features[2:4, 3:6] = thing
    view = blank((90, 60), features[None])
    mask = np.zeros((60, 90), bool)
    mask[20:40, 30:60] = True
    assert find_instance(view, instance_of(features, mask), 0.7).mask.mean() < 0.2
    assert find_instance(view, instance_of(features[2:4, 3:6], np.ones((4, 6), bool)), 0.7).mask.all()


@given(st.integers(1, 6), st.integers(1, 7), st.integers(0, 2**31))
def test_a_patchs_share_is_its_mean(rows, columns, seed):
    mask = np.random.default_rng(seed).random((rows * 5, columns * 4)) > 0.5
    truth = mask.reshape(rows, 5, columns, 4).mean(axis=(1, 3))
    assert np.allclose(patch_shares(mask, (rows, columns)), truth, atol=1e-5)


def test_a_thing_smaller_than_a_patch_is_the_patch_it_is_in():
    features = torch.randn(4, 5, 6)
    mask = np.zeros((40, 50), bool)
    mask[22:24, 31:33] = True
    assert torch.equal(instance_of(features, mask).prototypes, features[2, 3][None])


@given(st.integers(0, 49), st.integers(0, 39), st.integers(1, 50), st.integers(1, 40))
def test_a_boxs_mask_has_that_box(x, y, width, height):
    box = (x, y, min(x + width, 50), min(y + height, 40))
    assert box_of(box_mask(box, (50, 40))) == box


@pytest.mark.parametrize("box", [(0, 0, 51, 10), (-1, 0, 5, 5), (5, 5, 5, 9), (9, 9, 3, 12), (0, 0, float("nan"), 2)])
def test_boxes_that_are_none_are_refused(box):
    with pytest.raises(LocusError, match="left, top, right, bottom"):
        box_mask(box, (50, 40))
    with pytest.raises(LocusError, match="no pixel"):
        box_mask((1.6, 1.0, 1.9, 3.0), (50, 40))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "I;16"])
def test_masks_of_every_kind_are_read(tmp_path, mode):
    truth = np.zeros((8, 10), bool)
    truth[2:5, 3:9] = True
    if mode == "I;16":
        Image.fromarray(truth.astype(np.uint16) * 3).save(tmp_path / "mask.png")
    else:
        Image.fromarray(truth.astype(np.uint8) * 255).convert(mode).save(tmp_path / "mask.png")
    assert np.array_equal(read_mask(tmp_path / "mask.png", (10, 8)), truth)


def test_masks_that_do_not_fit_are_refused(tmp_path):
    Image.fromarray(np.ones((8, 10), np.uint8)).save(tmp_path / "mask.png")
    with pytest.raises(LocusError, match=r"is 10×8 pixels, but its image is 8×10"):
        read_mask(tmp_path / "mask.png", (8, 10))
    with pytest.raises(LocusError, match="is missing"):
        read_mask(tmp_path / "none.png", (8, 10))
    with pytest.raises(LocusError, match="the mask is empty"):
        instance_of(torch.randn(4, 5, 6), np.zeros((8, 10), bool))


def test_a_query_is_a_known_frame_or_file_or_another_image(folder, scene, known, tmp_path):
    model = locus.LoCUS("classic", head="identity")
    for word in (f"{folder}:000002", f"{folder}:2", str(folder / "images" / "000002.png")):
        assert query_features(model, only_image(word), known) is known[2]
    copy = tmp_path / "000002.png"
    copy.write_bytes((folder / "images" / "000002.png").read_bytes())
    other = query_features(model, only_image(str(copy)), known)
    assert other.size == (80, 60)
    assert np.array_equal(other.image.read(), scene[2].image)


def command(tmp_path, *words):
    return main(["find", *map(str, words), "--model", "classic", "--out", str(tmp_path / "sheet.png")])


def test_the_command_ranks_a_scene(folder, scene, tmp_path, capsys):
    box = box_of(scene[0].instance == 2)
    files = ["--json", tmp_path / "found.json", "--masks", tmp_path / "masks", "--cache", tmp_path / "cache"]
    assert command(tmp_path, f"{folder}:000000", folder, "--box", *box, *files) == 0
    assert "Found in 5 of 5 images" in capsys.readouterr().out
    assert command(tmp_path, f"{folder}:000000", folder, "--box", *box, "--min-score", 0.999, *files) == 1
    assert "Found in 0 of 5 images" in (said := capsys.readouterr().out)
    assert "it is not there" in said
    assert command(tmp_path, f"{folder}:000000", folder, "--box", *box, *files) == 0
    stated = json.loads((tmp_path / "found.json").read_text())
    assert stated["query"] == "000000"
    scores = [each["score"] for each in stated["found"]]
    assert scores == sorted(scores, reverse=True)
    for each in stated["found"]:
        mask = np.asarray(Image.open(tmp_path / "masks" / f"{each['image']}.png")) > 0
        assert box_of(mask) == (None if each["box"] is None else tuple(each["box"]))
    assert np.asarray(Image.open(tmp_path / "sheet.png")).shape[1] == 4 * 320 + 3 * 6


def test_a_part_of_a_scene_is_searched_and_a_wrong_box_costs_nothing(folder, tmp_path, capsys):
    cache = ["--cache", tmp_path / "cache"]
    assert command(tmp_path, f"{folder}:000000", folder, "--box", 0, 0, 90, 10, *cache) == 2
    assert "is not inside the image, which is 80×60 pixels" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "cache").exists()
    command(tmp_path, f"{folder}:000000", folder, "--box", 0, 0, 40, 30, "--frames", "1:4", *cache)
    assert "of 3 images" in capsys.readouterr().out


def test_images_may_be_files_of_other_sizes(scene, tmp_path, capsys):
    for number, size in enumerate([(80, 60), (60, 80), (200, 90)]):
        Image.fromarray(scene[number].image).resize(size).save(tmp_path / f"{number}.png")
    mask = tmp_path / "mask.png"
    Image.fromarray((scene[0].instance == 2).astype(np.uint8)).save(mask)
    assert command(tmp_path, tmp_path / "0.png", tmp_path / "1.png", tmp_path / "2.png", "--mask", mask) == 0
    assert "of 2 images" in capsys.readouterr().out
    assert (tmp_path / "sheet.png").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to find"),
        (["--box", "1", "2", "9", "9", "--mask", "x.png"], "say what to find"),
        (["--box", "1", "2", "900", "9"], "not inside the image"),
        (["--mask", "nowhere.png"], "is missing"),
        (["--box", "1", "2", "9", "9", "--min-similarity", "2"], "between -1 and 1"),
        (["--box", "1", "2", "9", "9", "--views", "0"], "at least one image"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(scene, tmp_path, capsys, words, said):
    for number in range(2):
        Image.fromarray(scene[number].image).save(tmp_path / f"{number}.png")
    assert command(tmp_path, tmp_path / "0.png", tmp_path / "1.png", *words) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "sheet.png").exists()


def test_nothing_to_look_in_is_said(scene, tmp_path, capsys):
    Image.fromarray(scene[0].image).save(tmp_path / "0.png")
    assert command(tmp_path, tmp_path / "0.png", tmp_path / "0.png", "--box", "1", "1", "40", "40") == 2
    assert "no other image" in capsys.readouterr().err
