"""Tiny random networks of every family LoCUS knows, in transformers' own layout: tests need no weights of the world."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

torch.set_num_threads(1)  # networks this small run ten times faster so on a machine that is shared

DEEP = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
MLP = {"intermediate_size": 64}
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}


def _clip_vision() -> transformers.CLIPVisionConfig:
    return transformers.CLIPVisionConfig(**DEEP, **MLP, image_size=64, patch_size=16)


def _full_clip() -> transformers.CLIPModel:
    text = transformers.CLIPTextConfig(**DEEP, **MLP, vocab_size=50, max_position_embeddings=8)
    return transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text.to_dict(), vision_config=_clip_vision().to_dict())
    )


def _dinov2(**options: Any) -> transformers.Dinov2Model:
    return transformers.Dinov2Model(transformers.Dinov2Config(**DEEP, image_size=56, patch_size=14, **options))


TRANSFORMERS: dict[str, Callable[[], Any]] = {
    "vit": lambda: transformers.ViTModel(
        transformers.ViTConfig(**DEEP, **MLP, image_size=56, patch_size=8), add_pooling_layer=False
    ),
    "dinov2": _dinov2,
    "dinov2_giant": lambda: _dinov2(use_swiglu_ffn=True),
    "dinov2_with_registers": lambda: transformers.Dinov2WithRegistersModel(
        transformers.Dinov2WithRegistersConfig(**DEEP, image_size=56, patch_size=14, num_register_tokens=4)
    ),
    "dinov3_vit": lambda: transformers.DINOv3ViTModel(
        transformers.DINOv3ViTConfig(**DEEP, **MLP, image_size=64, patch_size=16, num_register_tokens=4)
    ),
    "clip_vision": lambda: transformers.CLIPVisionModel(_clip_vision()),
    "clip": _full_clip,
}
CONVOLUTIONAL: dict[str, Callable[[], Any]] = {
    "dinov3_convnext": lambda: transformers.DINOv3ConvNextModel(
        transformers.DINOv3ConvNextConfig(**STAGES, image_size=64)
    ),
    "resnet": lambda: transformers.ResNetModel(transformers.ResNetConfig(**STAGES, embedding_size=8)),
}
FAMILIES = TRANSFORMERS | CONVOLUTIONAL


@torch.no_grad()
def save(family: str, folder: Path, seed: int = 0) -> Any:
    """A random network written to a folder; returned is the half of it that sees images."""
    torch.manual_seed(seed)
    network = FAMILIES[family]().eval()
    for parameter in network.parameters():  # their own start leaves biases, norms and position codes without a say
        parameter.normal_(std=0.2)
    for name, buffer in network.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.uniform_(0.5, 1.5)
    network.save_pretrained(folder)
    return network.vision_model if family == "clip" else network
