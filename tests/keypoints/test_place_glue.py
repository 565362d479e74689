"""The matcher that knows places: LighterGlue itself where places say nothing, and places where looks say nothing."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from locus.errors import LocusError
from locus.files import atomic
from locus.keypoints import Keypoints
from locus.keypoints.fusion import PlacedKeypoints
from locus.keypoints.place_glue import SHIPPED, PlaceGlue, PlaceGlueNetwork, similarities


def some(count, seed, scales=2, size=(320, 240)):
    """Random keypoints with random features at them."""
    random = torch.Generator().manual_seed(seed)
    pixels = torch.rand(count, 2, generator=random).double().numpy() * size
    descriptors = F.normalize(torch.randn(count, 64, generator=random), dim=-1)
    places = F.normalize(torch.randn(scales, count, 16, generator=random), dim=-1)
    return PlacedKeypoints(Keypoints(pixels, np.linspace(1, 0, count), descriptors, size), places)


@pytest.fixture(scope="module")
def network():
    """Random weights, as large as trained ones."""
    torch.manual_seed(0)
    return PlaceGlueNetwork().eval().requires_grad_(False)


def without_places(network):
    for weights in (network.attention, network.similarity, network.matchability):
        weights.zero_()
    return network


def test_without_weights_for_places_it_is_lighterglue(network):
    a, b = some(40, 0), some(30, 1)
    plain = without_places(PlaceGlueNetwork().eval().requires_grad_(False))
    plain.glue.load_state_dict(network.glue.state_dict())
    plain.glue.conf.width_confidence = -1
    told = plain.glue(
        {
            f"image{number}": {
                "keypoints": torch.from_numpy(each.keypoints.pixels).float()[None],
                "descriptors": each.keypoints.descriptors[None],
                "image_size": torch.tensor(each.keypoints.size).float()[None],
            }
            for number, each in enumerate((a, b))
        }
    )
    torch.testing.assert_close(plain(a, b), told["log_assignment"][0], atol=1e-4, rtol=1e-4)


def test_places_decide_where_keypoints_look_alike(network):
    a, count = some(25, 2), 25
    order = np.random.default_rng(0).permutation(count)
    same = F.normalize(torch.ones(count, 64), dim=-1)
    a = PlacedKeypoints(Keypoints(a.keypoints.pixels, a.keypoints.scores, same, a.keypoints.size), a.places)
    b = PlacedKeypoints(
        Keypoints(a.keypoints.pixels[::-1].copy(), a.keypoints.scores, same, (320, 240)), a.places[:, order]
    )
    with_places = without_places(PlaceGlueNetwork().eval().requires_grad_(False))
    with_places.glue.load_state_dict(network.glue.state_dict())
    with_places.similarity.fill_(50.0)
    assert (with_places(a, b)[:-1, :-1].argmax(dim=1).numpy() == np.argsort(order)).all()


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
def test_rows_are_probabilities_and_images_may_change_places(network, in_a, in_b, seed):
    a, b = some(in_a, seed), some(in_b, seed + 100)
    scores = network(a, b)
    assert scores.shape == (in_a + 1, in_b + 1)
    assert (scores[:-1, :-1].exp().sum(dim=1) <= 1 + 1e-5).all()
    torch.testing.assert_close(network(b, a), scores.T, atol=1e-4, rtol=1e-4)


def test_similarities_are_of_the_finest_scale_and_the_mean_of_all():
    a, b = some(5, 0, scales=3), some(4, 1, scales=3)
    cosines = np.stack(
        [[[x @ y for y in of_b] for x in of_a] for of_a, of_b in zip(a.places.numpy(), b.places.numpy(), strict=True)]
    )
    np.testing.assert_allclose(similarities(a, b)[0].numpy(), cosines[0], atol=1e-6)
    np.testing.assert_allclose(similarities(a, b)[1].numpy(), cosines.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(("in_a", "in_b"), [(0, 0), (0, 7), (7, 0), (1, 1)])
def test_few_keypoints_do_no_harm(in_a, in_b):
    rows, likely = PlaceGlue().match(some(in_a, 0), some(in_b, 1))
    assert rows.shape == (len(likely), 2)
    assert len(rows) <= min(in_a, in_b)


def test_a_file_of_something_else_is_refused(tmp_path):
    from safetensors.torch import save

    with atomic(tmp_path / "other.safetensors") as file:
        file.write_bytes(save({"glue.posenc.Wr.weight": torch.zeros(3)}))
    with pytest.raises(LocusError, match="holds no PlaceGlueNetwork"):
        PlaceGlue(tmp_path / "other.safetensors")


def test_the_shipped_weights_are_small():
    assert SHIPPED.stat().st_size < 4e6
