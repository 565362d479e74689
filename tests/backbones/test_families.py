"""Each family against transformers' own forward pass."""

import pytest
import torch

from locus.backbones import BackboneError
from tests import networks

SIZES = [(64, 64), (48, 128), (61, 97)]  # height and width: square, wide, and of no whole number of patches
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
NORMS = {"dinov3_vit": "norm", "clip_vision": "post_layernorm", "clip": "post_layernorm"}


def pictures(size, seed=0):
    return torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def theirs(family, network, images):
    """Transformers' output and hidden states for images in [0, 1]."""
    mean, std = (CLIP_MEAN, CLIP_STD) if family.startswith("clip") else (MEAN, STD)
    images = (images - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    options = {"interpolate_pos_encoding": True} if family in ("vit", "clip_vision", "clip") else {}
    return network(pixel_values=images, output_hidden_states=True, **options)


def prefix(family):
    return {"dinov2_with_registers": 5, "dinov3_vit": 5}.get(family, 1)


def patches(tokens):
    return tokens.flatten(1, 2)


def close(a, b):
    torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", networks.TRANSFORMERS)
def test_tokens_of_a_transformer_are_transformers_own(family, size, saved, loaded):
    _, network = saved(family)
    images = pictures(size)
    expected = theirs(family, network, images)
    backbone = loaded(family)
    grid = (size[0] // backbone.patch_size, size[1] // backbone.patch_size)
    assert backbone.tokens(images).shape == (2, *grid, 32)
    close(patches(backbone.tokens(images)), expected.last_hidden_state[:, prefix(family) :])
    norm = getattr(network, NORMS.get(family, "layernorm"))
    for layer in (1, 2):
        inner = expected.hidden_states[layer]
        close(patches(loaded(family, layer).tokens(images)), inner[:, prefix(family) :])
        normed = loaded(family, layer, norm=True)
        close(patches(normed.tokens(images)), norm(inner)[:, prefix(family) :].detach())
        assert loaded(family, layer)(images)[0].shape == inner.shape


@pytest.mark.parametrize("family", networks.TRANSFORMERS)
def test_the_final_norm_can_be_left_out_or_put_in_after_the_last_block(family, saved, loaded):
    _, network = saved(family)
    images = pictures((64, 64))
    norm = getattr(network, NORMS.get(family, "layernorm"))
    without = loaded(family, norm=False).tokens(images)
    close(loaded(family, norm=True).tokens(images), norm(without).detach())
    assert loaded(family).norm is (not family.startswith("clip"))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", networks.CONVOLUTIONAL)
def test_tokens_of_a_convolutional_network_are_transformers_own(family, size, saved, loaded):
    _, network = saved(family)
    images = pictures(size)
    expected = theirs(family, network, images)
    whole = loaded(family).tokens(images)
    if family == "resnet":
        close(whole, expected.last_hidden_state.movedim(1, 3))
    else:
        close(patches(whole), expected.last_hidden_state[:, 1:])  # theirs begins with the mean of all
    for layer in (1, 2, 3, 4):
        backbone = loaded(family, layer, norm=False)
        close(backbone.tokens(images), expected.hidden_states[layer].movedim(1, 3))
        assert (backbone.patch_size, backbone.prefix) == (2 ** (layer + 1), 0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", networks.TRANSFORMERS)
@pytest.mark.parametrize(("layer", "count"), [(1, 2), (2, 1)])
def test_blocks_that_follow_a_layer_lead_to_the_later_layer(family, layer, count, size, loaded):
    images = pictures(size)
    backbone = loaded(family, layer)
    following = backbone.continuation(count)
    assert all(parameter.requires_grad for parameter in following.parameters())
    sequence, grid = backbone(images)
    later, _ = loaded(family, layer + count, norm=True)(images)
    close(following(sequence, grid).detach(), later)


def test_more_blocks_than_there_are_cannot_follow(loaded):
    with pytest.raises(BackboneError, match="has 3 blocks and runs 2 of them; 2 cannot follow"):
        loaded("dinov2", 2).continuation(2)
