"""Heads against torch's own transformer layers and scikit-learn's PCA."""

import pytest
import torch
from sklearn.decomposition import PCA
from torch import nn

from locus import backbones
from locus.backbones import BackboneError
from locus.model.heads import Block, Head, PretrainedBlocks, build, start_from_pca
from tests import networks

GRID = (3, 4)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dinov2")
    networks.save("dinov2", folder)
    return backbones.load(folder, 1)


def sequence(width, prefix=1, batch=2, seed=0):
    patches = prefix + GRID[0] * GRID[1]
    return torch.randn(batch, patches, width, generator=torch.Generator().manual_seed(seed))


def referee_layer(block, width, heads=4):
    """torch's own pre-norm layer with the block's weights."""
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    renamed = {"self_attn.in_proj_": "attn.qkv.", "self_attn.out_proj.": "attn.proj."}
    renamed |= {"linear1.": "mlp.fc1.", "linear2.": "mlp.fc2.", "norm1.": "norm1.", "norm2.": "norm2."}
    weights = block.state_dict()
    layer.load_state_dict({a + kind: weights[b + kind] for a, b in renamed.items() for kind in ("weight", "bias")})
    return layer.eval()


@pytest.mark.parametrize(("tokens", "parameters"), [(768, 503_232), (384, 503_232 - 384 * 128)])
def test_the_papers_head_has_as_many_parameters_as_the_paper_says(tokens, parameters):
    assert sum(parameter.numel() for parameter in Head(tokens, 64).parameters()) == parameters


@torch.no_grad()
def test_the_papers_head_is_torchs_transformer_between_two_linear_maps():
    head = Head(48, 10).eval()
    x = sequence(48)
    expected = head.enter(x)
    for block in head.blocks:
        expected = referee_layer(block, 128)(expected)
    expected = head.project(expected[:, 1:])  # the class token took part, and goes
    torch.testing.assert_close(head(x, GRID), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_an_attention_scale_multiplies_what_the_keys_are_asked():
    torch.manual_seed(0)
    plain, scaled = Block(32, 4, None), Block(32, 4, 0.125)
    weights = plain.state_dict()
    scaled.load_state_dict(weights)
    ratio = 0.125 * 8**0.5  # by default one over the root of a head's width, here 8
    stretched = plain.state_dict() | {
        "attn.qkv.weight": torch.cat([weights["attn.qkv.weight"][:32] * ratio, weights["attn.qkv.weight"][32:]]),
        "attn.qkv.bias": torch.cat([weights["attn.qkv.bias"][:32] * ratio, weights["attn.qkv.bias"][32:]]),
    }
    plain.load_state_dict(stretched)
    x = sequence(32, seed=1) * 3
    torch.testing.assert_close(scaled(x), plain(x), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_the_class_token_takes_part_in_the_papers_head():
    head = Head(48, 10).eval()
    x = sequence(48)
    other = x.clone()
    other[:, 0] += 1
    assert not torch.allclose(head(x, GRID), head(other, GRID))


@torch.no_grad()
@pytest.mark.parametrize("kind", ["linear", "paper", "blocks"])
@pytest.mark.parametrize("scales", [1, 2])
def test_a_head_started_from_pca_gives_whitened_components_at_every_scale(kind, scales, backbone):
    torch.manual_seed(0)
    head = build(kind, backbone, 6, scales, blocks=1).eval()
    x = sequence(32, batch=20)
    embedded = head.embed(x, GRID).flatten(0, 1)
    start_from_pca(head, embedded, scales)
    given = head.project(embedded).unflatten(1, (scales, 6))
    referee = torch.from_numpy(PCA(6, whiten=True, svd_solver="full").fit_transform(embedded.double().numpy())).float()
    for scale in range(scales):
        signs = (given[:, scale] * referee).sum(dim=0).sign()
        torch.testing.assert_close(given[:, scale] * signs, referee, atol=2e-3, rtol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["linear", "paper", "blocks"])
def test_scales_share_all_but_their_last_linear_map(kind, backbone):
    one, three = (build(kind, backbone, 6, scales, blocks=2) for scales in (1, 3))
    trunk = {name for name in one.state_dict() if not name.startswith("project.")}
    assert trunk == {n for n in three.state_dict() if not n.startswith("project.")}
    assert all(one.state_dict()[name].shape == three.state_dict()[name].shape for name in trunk)
    assert three.project.out_features == 18
    x = sequence(32)
    before = three(x, GRID)
    three.project.weight[6:12] += 1  # the second scale's alone
    changed = (three(x, GRID) != before).flatten(0, 1).any(dim=0)
    assert changed.tolist() == [False] * 6 + [True] * 6 + [False] * 6


@torch.no_grad()
def test_the_blocks_head_starts_as_the_backbones_own_later_layer(backbone):
    images = torch.rand(1, 3, 42, 56, generator=torch.Generator().manual_seed(0))
    head = build("blocks", backbone, 6, 1, blocks=2).eval()
    assert isinstance(head, PretrainedBlocks)
    tokens, grid = backbone(images)
    later = backbones.load(backbone.folder, 3, norm=True).tokens(images)
    torch.testing.assert_close(head.embed(tokens, grid), later.flatten(1, 2), atol=2e-5, rtol=1e-4)
    assert all(parameter.requires_grad for parameter in head.parameters())


def test_a_backbone_without_blocks_has_no_blocks_head():
    with pytest.raises(BackboneError, match="classic has no transformer blocks"):
        build("blocks", backbones.load("classic"), 6, 1)


def test_a_head_without_a_linear_map_cannot_start_from_pca(backbone):
    with pytest.raises(BackboneError, match="Identity has no linear map"):
        start_from_pca(build("identity", backbone, 6, 1), torch.zeros(10, 32))
