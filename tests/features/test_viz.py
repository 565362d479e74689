"""Pictures of features: a feature's colour is the same in every frame, and similarity glows where it is."""

import numpy as np
import pytest
import torch

from locus.errors import LocusError
from locus.features import viz


def maps(count=3, h=5, w=7, c=16, seed=0):
    features = torch.randn(count, h, w, c, generator=torch.Generator().manual_seed(seed))
    return list(torch.nn.functional.normalize(features, dim=-1))


def test_the_same_feature_has_the_same_colour_in_every_frame():
    first, second, third = maps()
    second[2, 3] = first[1, 1]
    third[:] = first[1, 1]
    drawn = viz.colours([first, second, third])
    assert (drawn[1][2, 3] == drawn[0][1, 1]).all()
    assert (drawn[2] == drawn[0][1, 1]).all()
    enlarged = viz.colours([first, second, third], (70, 50))[2]
    assert (np.abs(enlarged.astype(int) - drawn[2][0, 0]) <= 1).all()


def test_pictures_have_the_size_of_the_images_and_frames_may_differ_in_theirs():
    unlike = [maps(1, 5, 7)[0], maps(1, 9, 4)[0]]
    assert [picture.shape for picture in viz.colours(unlike)] == [(5, 7, 3), (9, 4, 3)]
    assert [picture.shape for picture in viz.colours(unlike, (98, 70))] == [(70, 98, 3)] * 2
    assert viz.colours(unlike)[0].dtype == np.uint8


def test_two_kinds_of_patch_have_two_colours_far_apart():
    halves = torch.zeros(6, 8, 4)
    halves[:, :4, 0] = 1
    halves[:, 4:, 1] = 1
    picture = viz.colours([halves])[0].astype(int)
    assert np.abs(picture[:, 0] - picture[:, 7]).max() == 255
    assert (picture[:, :4] == picture[0, 0]).all()


def test_a_few_odd_patches_do_not_take_the_contrast():
    calm = maps(1, 40, 40)[0]
    wild = calm.clone()
    wild[0, :3] *= 1000
    contrast = viz.colours([wild])[0][1:].std(axis=(0, 1))
    assert contrast.max() > 20


def test_features_that_are_all_the_same_are_grey():
    assert (viz.colours([torch.ones(4, 5, 8)])[0] == 128).all()


@pytest.mark.parametrize("c", [1, 2])
def test_fewer_than_three_numbers_can_be_drawn(c):
    assert viz.colours([torch.randn(4, 5, c)], (20, 16))[0].shape == (16, 20, 3)


def test_no_maps_are_refused():
    with pytest.raises(LocusError, match="no feature maps"):
        viz.colours([])


def test_heat_glows_at_the_query_and_is_grey_elsewhere():
    features = maps(1, 6, 8)[0]
    image = np.full((60, 80, 3), (200, 100, 50), np.uint8)
    picture = viz.heat(image, features, features[1, 6], limits=(0.9, 1.0)).astype(int)
    assert picture.shape == image.shape
    brightest = np.unravel_index(picture.sum(axis=2).argmax(), (60, 80))
    assert (brightest[0] // 10, brightest[1] // 10) == (1, 6)
    corner = picture[-1, 0]
    assert corner.max() - corner.min() <= 1


def test_one_span_for_all_frames_and_none_for_features_all_alike():
    low, high = viz.span(maps(), maps()[0][0, 0])
    assert -1 <= low < high <= 1.0001
    image = np.zeros((20, 20, 3), np.uint8)
    assert viz.heat(image, torch.ones(2, 2, 3), torch.ones(3)).shape == (20, 20, 3)


def test_parts_are_there_by_name_and_imported_late():
    import subprocess
    import sys

    import locus

    assert locus.features.viz is viz
    assert locus.LoCUS is locus.model.LoCUS
    assert locus.backbones.load("classic").dimension == 56
    code = "import sys, locus; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
