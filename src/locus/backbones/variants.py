"""The pretrained networks LoCUS knows by name: a table of facts, so that a bare weight file can be read offline."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from locus.errors import WeightsError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


@dataclass(frozen=True)
class Variant:
    """One pretrained network."""

    hub: str | None
    """Its name on the Hugging Face hub; None if it is not there."""
    model_type: str
    """Its architecture, as transformers calls it."""
    config: dict[str, Any]
    """What its transformers configuration says beyond the defaults."""
    licence: str
    """The licence its weights are under."""


def _size(width: int, layers: int, heads: int) -> dict[str, Any]:
    return {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}


SMALL, BASE, LARGE = _size(384, 12, 6), _size(768, 12, 12), _size(1024, 24, 16)
GIANT = _size(1536, 40, 24) | {"use_swiglu_ffn": True}


def _dino(letter: str, size: dict[str, Any], patch: int) -> Variant:
    # 1e-6 is what DINO was trained with; the hub's config.json says 1e-12, transformers' default for a ViT.
    shape = {"intermediate_size": 4 * size["hidden_size"], "patch_size": patch, "image_size": 224}
    config = size | shape | {"layer_norm_eps": 1e-6, "qkv_bias": True, "hidden_act": "gelu"}
    return Variant(f"facebook/dino-vit{letter}{patch}", "vit", config, "Apache-2.0")


def _dinov2(hub: str | None, size: dict[str, Any], registers: int = 0, licence: str = "Apache-2.0") -> Variant:
    config = size | {"mlp_ratio": 4, "patch_size": 14, "image_size": 518, "layer_norm_eps": 1e-6, "qkv_bias": True}
    if registers:
        return Variant(hub, "dinov2_with_registers", config | {"num_register_tokens": registers}, licence)
    return Variant(hub, "dinov2", config, licence)


def _dinov3(short: str, size: dict[str, Any], hidden: int, gated: bool = False, bias: bool = True) -> Variant:
    shape = {"intermediate_size": hidden, "patch_size": 16, "image_size": 224, "num_register_tokens": 4}
    mlp = {"use_gated_mlp": gated, "hidden_act": "silu" if gated else "gelu"}
    attention = {"query_bias": bias, "key_bias": False, "value_bias": bias, "rope_theta": 100.0}
    config = size | shape | mlp | attention | {"layer_norm_eps": 1e-5}
    return Variant(f"facebook/dinov3-{short}-pretrain-lvd1689m", "dinov3_vit", config, "DINOv3 License")


def _convnext(short: str, width: int, depth: int) -> Variant:
    config = {"hidden_sizes": [width, 2 * width, 4 * width, 8 * width], "depths": [3, 3, depth, 3], "image_size": 224}
    hub = f"facebook/dinov3-convnext-{short}-pretrain-lvd1689m"
    return Variant(hub, "dinov3_convnext", config | {"layer_norm_eps": 1e-6}, "DINOv3 License")


def _clip(hub: str, size: dict[str, Any], patch: int, projection: int) -> Variant:
    shape = {"intermediate_size": 4 * size["hidden_size"], "patch_size": patch, "image_size": 224}
    config = size | shape | {"projection_dim": projection, "layer_norm_eps": 1e-5, "hidden_act": "quick_gelu"}
    return Variant(f"openai/{hub}", "clip_vision_model", config, "MIT")


VARIANTS: dict[str, Variant] = {
    "dino-vits8": _dino("s", SMALL, 8),
    "dino-vitb8": _dino("b", BASE, 8),
    "dino-vits16": _dino("s", SMALL, 16),
    "dino-vitb16": _dino("b", BASE, 16),
    "dinov2-small": _dinov2("facebook/dinov2-small", SMALL),
    "dinov2-base": _dinov2("facebook/dinov2-base", BASE),
    "dinov2-large": _dinov2("facebook/dinov2-large", LARGE),
    "dinov2-giant": _dinov2("facebook/dinov2-giant", GIANT),
    "dinov2-small-registers": _dinov2("facebook/dinov2-with-registers-small", SMALL, 4),
    "dinov2-base-registers": _dinov2("facebook/dinov2-with-registers-base", BASE, 4),
    "dinov2-large-registers": _dinov2("facebook/dinov2-with-registers-large", LARGE, 4),
    "dinov2-giant-registers": _dinov2("facebook/dinov2-with-registers-giant", GIANT, 4),
    "dinov2-small-focus": _dinov2(None, SMALL, licence="MIT"),
    "dinov3-vits16": _dinov3("vits16", SMALL, 1536),
    "dinov3-vits16plus": _dinov3("vits16plus", SMALL, 1536, gated=True),
    "dinov3-vitb16": _dinov3("vitb16", BASE, 3072),
    "dinov3-vitl16": _dinov3("vitl16", LARGE, 4096),
    "dinov3-vith16plus": _dinov3("vith16plus", _size(1280, 32, 20), 5120, gated=True),
    "dinov3-vit7b16": _dinov3("vit7b16", _size(4096, 40, 32), 8192, gated=True, bias=False),
    "dinov3-convnext-tiny": _convnext("tiny", 96, 9),
    "dinov3-convnext-small": _convnext("small", 96, 27),
    "dinov3-convnext-base": _convnext("base", 128, 27),
    "dinov3-convnext-large": _convnext("large", 192, 27),
    "resnet50": Variant(
        "microsoft/resnet-50",
        "resnet",
        {"embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]},
        "Apache-2.0",
    ),
    "clip-vitb32": _clip("clip-vit-base-patch32", BASE, 32, 512),
    "clip-vitb16": _clip("clip-vit-base-patch16", BASE, 16, 512),
    "clip-vitl14": _clip("clip-vit-large-patch14", LARGE, 14, 768),
}


def configuration(name: str) -> "PreTrainedConfig":
    """The transformers configuration of a known network."""
    if name not in VARIANTS:
        raise WeightsError(f"{name} is no network known by name; known are {', '.join(VARIANTS)}")
    from transformers import AutoConfig

    variant = VARIANTS[name]
    return AutoConfig.for_model(variant.model_type, **variant.config)
