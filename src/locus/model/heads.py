"""What is learned: heads from a backbone's tokens to features, one linear map per scale at their end.

Every head takes the whole token sequence (class and register tokens first) and the grid of its patches, and has
`embed`, up to the last linear map, and `project`, that map, so that each can be started from PCA (`start_from_pca`).
"""

from typing import get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from locus.backbones import Backbone, BackboneError
from locus.backbones.transformer import Transformer
from locus.model.head_kinds import BLOCKS, HeadKind
from locus.model.pca import principal_components


class Attention(nn.Module):
    """Multi-head self-attention with one fused projection to queries, keys and values."""

    def __init__(self, width: int, heads: int, scale: float | None) -> None:
        super().__init__()
        self.heads = heads
        self.scale = scale
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "b n c"]) -> Float[Tensor, "b n c"]:
        queries, keys, values = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(queries, keys, values, scale=self.scale)  # (b, heads, n, c / heads)
        return self.proj(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Float[Tensor, "b n c"]) -> Float[Tensor, "b n c"]:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int, scale: float | None) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, scale)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = MLP(width, 4 * width)

    def forward(self, x: Float[Tensor, "b n c"]) -> Float[Tensor, "b n c"]:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Head(nn.Module):
    """The paper's: a linear map to 128, two transformer blocks, a linear map to 64 per scale; 503,232 parameters.

    No position code and no final norm. The class token goes through the blocks and is dropped at the end.
    """

    WIDTH = 128

    def __init__(
        self, tokens: int, dimension: int, scales: int = 1, prefix: int = 1, *, attention_scale: float | None = None
    ) -> None:
        super().__init__()
        self.prefix = prefix
        self.enter = nn.Linear(tokens, self.WIDTH)
        self.blocks = nn.ModuleList(Block(self.WIDTH, 4, attention_scale) for _ in range(2))
        self.project = nn.Linear(self.WIDTH, dimension * scales)

    def embed(self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b patches c"]:
        x = self.enter(sequence)
        for block in self.blocks:
            x = block(x)
        return x[:, self.prefix :]

    def forward(self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b patches c"]:
        return self.project(self.embed(sequence, grid))


class Linear(nn.Module):
    """One linear map of each patch token; started from whitened PCA it is the baseline until it has learned."""

    def __init__(self, tokens: int, dimension: int, scales: int, prefix: int) -> None:
        super().__init__()
        self.prefix = prefix
        self.project = nn.Linear(tokens, dimension * scales)

    def embed(self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b patches d"]:
        return sequence[:, self.prefix :]

    def forward(self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b patches c"]:
        return self.project(self.embed(sequence, grid))


class PretrainedBlocks(Linear):
    """The backbone's own next blocks and final norm, which learn on, and a linear map of what they give."""

    def __init__(self, backbone: Transformer, count: int, dimension: int, scales: int) -> None:
        super().__init__(backbone.dimension, dimension, scales, backbone.prefix)
        self.trunk = backbone.continuation(count)

    def embed(self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b patches d"]:
        return super().embed(self.trunk(sequence, grid), grid)


class Identity(nn.Module):
    """The patch tokens as they are, the same at every scale: the untrained backbone."""

    def __init__(self, scales: int, prefix: int) -> None:
        super().__init__()
        self.scales = scales
        self.prefix = prefix

    def forward(self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b patches c"]:
        return sequence[:, self.prefix :].repeat(1, 1, self.scales)


def build(
    kind: HeadKind,
    backbone: Backbone,
    dimension: int,
    scales: int,
    *,
    blocks: int = BLOCKS,
    attention_scale: float | None = None,
) -> nn.Module:
    """A head of the given kind for a backbone."""
    if kind == "paper":
        return Head(backbone.dimension, dimension, scales, backbone.prefix, attention_scale=attention_scale)
    if kind == "linear":
        return Linear(backbone.dimension, dimension, scales, backbone.prefix)
    if kind == "identity":
        return Identity(scales, backbone.prefix)
    if kind != "blocks":
        raise BackboneError(f"there is no head {kind!r}; there are {', '.join(get_args(HeadKind))}")
    if not isinstance(backbone, Transformer):
        raise BackboneError(f"{backbone.name} has no transformer blocks that could go on learning")
    return PretrainedBlocks(backbone, blocks, dimension, scales)


@torch.no_grad()
def start_from_pca(head: nn.Module, embedded: Float[Tensor, "n d"], scales: int = 1, *, whiten: bool = True) -> None:
    """Set the last linear map to the (whitened) principal components of what comes into it, for every scale.

    `embedded`: a sample of rows of `head.embed`. Where a feature is longer than there are components, the rest of it
    starts at zero.
    """
    project = getattr(head, "project", None)
    if not isinstance(project, nn.Linear):
        raise BackboneError(f"a head of type {type(head).__name__} has no linear map to start from PCA")
    dimension = project.out_features // scales
    components = principal_components(embedded, min(dimension, *embedded.shape), whiten=whiten)
    missing = dimension - len(components.directions)
    directions = F.pad(components.directions, (0, 0, 0, missing))
    project.weight.copy_(directions.repeat(scales, 1))
    project.bias.copy_((-directions @ components.mean).repeat(scales))
