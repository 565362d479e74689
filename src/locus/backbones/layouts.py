"""How published checkpoints name their tensors, and what transformers calls the same tensors on disk."""

import re
from collections.abc import Mapping

from torch import Tensor

# By kind of network, a tensor that every checkpoint of it holds once, as transformers and as the network's authors call
# it: it tells the layout and the prefix of all other names.
_PROJECTION = ("embeddings.patch_embeddings.projection.weight", "patch_embed.proj.weight")
ANCHORS = {
    "vit": _PROJECTION,
    "dinov2": _PROJECTION,
    "dinov2_with_registers": _PROJECTION,
    "dinov3_vit": ("embeddings.patch_embeddings.weight", "patch_embed.proj.weight"),
    "dinov3_convnext": ("stages.0.downsample_layers.0.weight", "downsample_layers.0.0.weight"),
    "resnet": ("embedder.embedder.convolution.weight", "layer1.0.conv1.weight"),
    "clip_vision_model": ("embeddings.patch_embedding.weight", None),
}

# Published DINOv2 training checkpoints group blocks: blocks.GROUP.BLOCK, where BLOCK counts through all groups.
_BLOCK = r"blocks\.(?:\d+\.)?(\d+)\."

_PATCHES = {
    r"cls_token": "embeddings.cls_token",
    r"mask_token": "embeddings.mask_token",
    r"(?:register|storage)_tokens": "embeddings.register_tokens",
    r"pos_embed|position_embeddings": "embeddings.position_embeddings",  # the latter as read from ONNX
    r"patch_embed\.proj\.(\w+)": r"embeddings.patch_embeddings.projection.\1",
    r"norm\.(\w+)": r"layernorm.\1",
}
_ATTENTION = {
    _BLOCK + r"attn\.(query|key|value)\.(\w+)": r"encoder.layer.\1.attention.attention.\2.\3",
    _BLOCK + r"attn\.proj\.(\w+)": r"encoder.layer.\1.attention.output.dense.\2",
}
_VIT = _ATTENTION | {
    _BLOCK + r"norm1\.(\w+)": r"encoder.layer.\1.layernorm_before.\2",
    _BLOCK + r"norm2\.(\w+)": r"encoder.layer.\1.layernorm_after.\2",
    _BLOCK + r"mlp\.fc1\.(\w+)": r"encoder.layer.\1.intermediate.dense.\2",
    _BLOCK + r"mlp\.fc2\.(\w+)": r"encoder.layer.\1.output.dense.\2",
}
_DINOV2 = _ATTENTION | {
    _BLOCK + r"norm([12])\.(\w+)": r"encoder.layer.\1.norm\2.\3",
    _BLOCK + r"ls([12])\.gamma": r"encoder.layer.\1.layer_scale\2.lambda1",
    _BLOCK + r"mlp\.(fc[12])\.(\w+)": r"encoder.layer.\1.mlp.\2.\3",
    _BLOCK + r"mlp\.w12\.(\w+)": r"encoder.layer.\1.mlp.weights_in.\2",
    _BLOCK + r"mlp\.w3\.(\w+)": r"encoder.layer.\1.mlp.weights_out.\2",
}
_DINOV3 = {
    r"patch_embed\.proj\.(\w+)": r"embeddings.patch_embeddings.\1",
    r"norm\.(\w+)": r"norm.\1",
    _BLOCK + r"norm([12])\.(\w+)": r"layer.\1.norm\2.\3",
    _BLOCK + r"attn\.([qkv])(?:uery|ey|alue)\.(\w+)": r"layer.\1.attention.\2_proj.\3",
    _BLOCK + r"attn\.proj\.(\w+)": r"layer.\1.attention.o_proj.\2",
    _BLOCK + r"ls([12])\.gamma": r"layer.\1.layer_scale\2.lambda1",
    _BLOCK + r"mlp\.w1\.(\w+)": r"layer.\1.mlp.gate_proj.\2",
    _BLOCK + r"mlp\.(?:fc1|w2)\.(\w+)": r"layer.\1.mlp.up_proj.\2",
    _BLOCK + r"mlp\.(?:fc2|w3)\.(\w+)": r"layer.\1.mlp.down_proj.\2",
}
_CONVNEXT = {
    r"downsample_layers\.(\d)\.(\d)\.(\w+)": r"stages.\1.downsample_layers.\2.\3",
    r"stages\.(\d)\.(\d+)\.gamma": r"stages.\1.layers.\2.gamma",
    r"stages\.(\d)\.(\d+)\.dwconv\.(\w+)": r"stages.\1.layers.\2.depthwise_conv.\3",
    r"stages\.(\d)\.(\d+)\.pwconv(\d)\.(\w+)": r"stages.\1.layers.\2.pointwise_conv\3.\4",
    r"stages\.(\d)\.(\d+)\.norm\.(\w+)": r"stages.\1.layers.\2.layer_norm.\3",
    r"norm\.(\w+)": r"layer_norm.\1",
}
RENAMINGS: dict[str, dict[str, str]] = {
    "vit": _PATCHES | _VIT,
    "dinov2": _PATCHES | _DINOV2,
    "dinov2_with_registers": _PATCHES | _DINOV2,
    "dinov3_vit": _PATCHES | _DINOV3,
    "dinov3_convnext": _CONVNEXT,
}

# Heads and training aids that take no part in patch tokens. DINOv3 rebuilds its rotary periods from its configuration,
# and its second class norm served the loss alone.
IGNORED = re.compile(
    r"(pooler|head|classifier|fc|lm_head|dino_head|ibot_head|rope_embed|rope_embeddings|local_cls_norm|norms)\."
    r"|(.*\.)?(qkv\.bias_mask|position_ids)$"
    r"|(text_model|text_projection|visual_projection|logit_scale)\b"
)


def in_transformers_layout(tensors: Mapping[str, Tensor], model_type: str) -> dict[str, Tensor] | None:
    """The tensors of a network as transformers names them, from its layout or the authors'; None if there is no such.

    Names that neither layout has are kept.
    """
    ours, theirs = ANCHORS[model_type]
    found = _strip_prefix(tensors, ours)
    if found is None and theirs is not None and (found := _strip_prefix(tensors, theirs)) is not None:
        return _rename_original(found, model_type)
    return found


def _strip_prefix(tensors: Mapping[str, Tensor], anchor: str) -> dict[str, Tensor] | None:
    """The tensors of the network that holds the anchor, their prefix removed; None if no network there does.

    Where there are several, as in a checkpoint of a teacher and a student, the teacher is taken, else the first.
    """
    prefixes = [key[: -len(anchor)] for key in tensors if key == anchor or key.endswith("." + anchor)]
    if not prefixes:
        return None
    prefix = min(prefixes, key=lambda prefix: "teacher" not in prefix)
    return {key[len(prefix) :]: tensor for key, tensor in tensors.items() if key.startswith(prefix)}


def _rename_original(tensors: Mapping[str, Tensor], model_type: str) -> dict[str, Tensor]:
    if model_type == "resnet":
        return {_resnet_name(key): tensor for key, tensor in tensors.items()}
    renamings = [(re.compile(pattern), name) for pattern, name in RENAMINGS[model_type].items()]
    renamed = {}
    for key, tensor in _split_attention(tensors).items():
        match = next(((found, name) for pattern, name in renamings if (found := pattern.fullmatch(key))), None)
        renamed[match[0].expand(match[1]) if match else key] = tensor
    return renamed


def _split_attention(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Queries, keys and values apart, where the authors keep them in one matrix."""
    split = {}
    for key, tensor in tensors.items():
        fused = re.fullmatch(r"(.*\.attn\.)qkv\.(weight|bias)", key)
        if not fused or not tensor.ndim or len(tensor) % 3:
            split[key] = tensor
            continue
        for part, rows in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
            # DINOv3 multiplies the keys' bias by zero: there is none, and what is stored may be anything.
            if part != "key" or f"{key}_mask" not in tensors:
                split[f"{fused[1]}{part}.{fused[2]}"] = rows
    return split


def _resnet_name(key: str) -> str:
    """What transformers calls a tensor of torchvision's ResNet."""
    key = re.sub(r"^(conv1|bn1)\.", r"embedder.embedder.\1.", key)
    key = re.sub(
        r"^layer(\d)\.(\d+)\.(conv|bn)(\d)\.",
        lambda found: f"encoder.stages.{int(found[1]) - 1}.layers.{found[2]}.layer.{int(found[4]) - 1}.{found[3]}1.",
        key,
    )
    key = re.sub(
        r"^layer(\d)\.(\d+)\.downsample\.([01])\.",
        lambda found: (
            f"encoder.stages.{int(found[1]) - 1}.layers.{found[2]}.shortcut.{('conv1', 'bn1')[int(found[3])]}."
        ),
        key,
    )
    return re.sub(r"\bbn1\.", "normalization.", re.sub(r"\bconv1\.", "convolution.", key))
