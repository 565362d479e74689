import argparse
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from locus.backbones.conversion import convert
from locus.backbones.variants import VARIANTS, Variant
from locus.errors import WeightsError

VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
DINOV2 = VIT | {"image_size": 42, "patch_size": 14}
DINOV3 = VIT | {"intermediate_size": 48, "num_register_tokens": 3}
TINY = {
    "dino": ("vit", "ViTModel", VIT | {"intermediate_size": 64, "image_size": 32, "patch_size": 8}),
    "dinov2": ("dinov2", "Dinov2Model", DINOV2),
    "dinov2-swiglu": ("dinov2", "Dinov2Model", DINOV2 | {"use_swiglu_ffn": True}),
    "dinov2-registers": ("dinov2_with_registers", "Dinov2WithRegistersModel", DINOV2),
    "dinov3": ("dinov3_vit", "DINOv3ViTModel", DINOV3),
    "dinov3-gated": ("dinov3_vit", "DINOv3ViTModel", DINOV3 | {"use_gated_mlp": True, "hidden_act": "silu"}),
    "dinov3-no-bias": ("dinov3_vit", "DINOv3ViTModel", DINOV3 | {"query_bias": False, "value_bias": False}),
    "convnext": ("dinov3_convnext", "DINOv3ConvNextModel", {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 2, 1, 1]}),
    "resnet": ("resnet", "ResNetModel", {"embedding_size": 8, "hidden_sizes": [16, 32], "depths": [2, 1]}),
    "clip": ("clip_vision_model", "CLIPVisionModel", VIT | {"intermediate_size": 64, "image_size": 64}),
}

# What the authors' code calls a tensor, for each part of the name transformers gives it on disk.
VIT_NAMES = [
    ("embeddings.cls_token", "cls_token"),
    ("embeddings.mask_token", "mask_token"),
    ("embeddings.position_embeddings", "pos_embed"),
    ("embeddings.patch_embeddings.projection", "patch_embed.proj"),
    ("encoder.layer.", "blocks."),
    ("attention.output.dense", "attn.proj"),
    ("attention.attention.", "attn."),
    ("layernorm_before", "norm1"),
    ("layernorm_after", "norm2"),
    ("intermediate.dense", "mlp.fc1"),
    ("output.dense", "mlp.fc2"),
    ("layernorm", "norm"),
    ("layer_scale1.lambda1", "ls1.gamma"),
    ("layer_scale2.lambda1", "ls2.gamma"),
    ("weights_in", "w12"),
    ("weights_out", "w3"),
    ("embeddings.register_tokens", "register_tokens"),
]
DINOV3_NAMES = [
    ("embeddings.register_tokens", "storage_tokens"),
    ("embeddings.patch_embeddings.", "patch_embed.proj."),
    ("embeddings.", ""),
    ("attention.q_proj", "attn.query"),
    ("attention.k_proj", "attn.key"),
    ("attention.v_proj", "attn.value"),
    ("attention.o_proj", "attn.proj"),
    ("layer_scale1.lambda1", "ls1.gamma"),
    ("layer_scale2.lambda1", "ls2.gamma"),
]


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Registers a small random network under a name, and gives it with its tensors as transformers writes them."""
    import transformers

    def build(kind: str):
        model_type, network, config = TINY[kind]
        monkeypatch.setitem(VARIANTS, kind, Variant(None, model_type, config, "none"))
        torch.manual_seed(0)
        settings = transformers.AutoConfig.for_model(model_type, **config)
        model = getattr(transformers, network)(settings).eval()
        for parameter in model.parameters():  # biases and tokens start at zero, where a mix-up would not show
            torch.nn.init.normal_(parameter, std=0.2)
        model.save_pretrained(tmp_path / "source")
        return model, load_file(tmp_path / "source" / "model.safetensors")

    return build


def assert_same_network(model, converted: dict, folder: Path) -> None:
    """The converted tensors, loaded by transformers, give the source's tokens."""
    folder.mkdir()
    shutil.copy(folder.parent / "source" / "config.json", folder)
    save_file(converted, folder / "model.safetensors", metadata={"format": "pt"})
    loaded, told = type(model).from_pretrained(folder, output_loading_info=True)
    assert all("pooler" in key for key in told["missing_keys"])
    assert not told["unexpected_keys"]
    image = torch.randn(1, 3, *[model.config.image_size if hasattr(model.config, "image_size") else 64] * 2)
    with torch.no_grad():
        tokens, expected = loaded.eval()(image).last_hidden_state, model(image).last_hidden_state
    torch.testing.assert_close(tokens, expected)


def replaced(name: str, pairs) -> str:
    for old, new in pairs:
        name = name.replace(old, new)
    return name


def fused(tensors: dict, mask: bool = False) -> dict:
    """Queries, keys and values in one matrix, as the authors keep them; a missing bias of keys is masked."""
    merged = {key: tensor for key, tensor in tensors.items() if not re.search(r"attn\.(query|key|value)", key)}
    for key in [key for key in tensors if "attn.query.weight" in key]:
        start = key.removesuffix("query.weight")
        merged[f"{start}qkv.weight"] = torch.cat(
            [tensors[f"{start}{part}.weight"] for part in ("query", "key", "value")]
        )
        if f"{start}query.bias" in tensors:
            query, value = tensors[f"{start}query.bias"], tensors[f"{start}value.bias"]
            middle = torch.full_like(query, torch.nan) if mask else tensors[f"{start}key.bias"]
            merged[f"{start}qkv.bias"] = torch.cat([query, middle, value])
            if mask:
                ones = torch.ones_like(query)
                merged[f"{start}qkv.bias_mask"] = torch.cat([ones, 0 * ones, ones])
    return merged


def original(kind: str, stored: dict) -> dict:
    """The tensors as the network's authors publish them."""
    stored = {key: tensor for key, tensor in stored.items() if "pooler" not in key}
    if kind == "convnext":
        names = [("depthwise_conv", "dwconv"), ("pointwise_conv", "pwconv"), ("layer_norm", "norm"), ("layers.", "")]
        tensors = {}
        for key, tensor in stored.items():
            down = re.fullmatch(r"stages\.(\d)\.downsample_layers\.(.*)", key)
            tensors[f"downsample_layers.{down[1]}.{down[2]}" if down else replaced(key, names)] = tensor
        return tensors | {"norms.3.weight": tensors["norm.weight"], "norms.3.bias": tensors["norm.bias"]}
    if kind.startswith("dinov3"):
        mlp = [("gate_proj", "w1"), ("up_proj", "w2"), ("down_proj", "w3")]
        mlp = mlp if "gated" in kind else [("up_proj", "fc1"), ("down_proj", "fc2")]
        names = [*DINOV3_NAMES, *mlp]
        tensors = {re.sub(r"^layer\.", "blocks.", replaced(key, names)): tensor for key, tensor in stored.items()}
        tensors["mask_token"] = tensors["mask_token"][0]
        return fused(tensors, mask=True) | {
            "rope_embed.periods": torch.ones(4),
            "local_cls_norm.weight": torch.ones(32),
        }
    return fused({replaced(key, VIT_NAMES): tensor for key, tensor in stored.items()})


@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize("prefix", ["", "vision_model.", "module.backbone."])
def test_transformers_own_names_with_any_prefix(kind, prefix, tiny, tmp_path):
    model, stored = tiny(kind)
    others = {"decoder.weight": torch.zeros(1)} if prefix else {"pooler.dense.weight": torch.zeros(1)}
    save_file({prefix + key: tensor for key, tensor in stored.items()} | others, tmp_path / "file.safetensors")
    assert_same_network(model, convert(tmp_path / "file.safetensors", kind), tmp_path / "converted")


@pytest.mark.parametrize("kind", [kind for kind in TINY if kind not in ("clip", "resnet")])
def test_the_authors_names(kind, tiny, tmp_path):
    model, stored = tiny(kind)
    torch.save(original(kind, stored), tmp_path / "file.pth")
    assert_same_network(model, convert(tmp_path / "file.pth", kind), tmp_path / "converted")


def test_torchvisions_names(tiny, tmp_path):
    model, stored = tiny("resnet")
    tensors = {"fc.weight": torch.zeros(10, 32), "fc.bias": torch.zeros(10)}
    for key, tensor in stored.items():
        name = key.replace("embedder.embedder.convolution", "conv1").replace("embedder.embedder.normalization", "bn1")
        if found := re.fullmatch(r"encoder\.stages\.(\d)\.layers\.(\d)\.(.*)\.(convolution|normalization)\.(.*)", key):
            kind = ("conv", "bn")[found[4] == "normalization"]
            layer = "downsample." + "01"[kind == "bn"] if found[3] == "shortcut" else f"{kind}{int(found[3][-1]) + 1}"
            name = f"layer{int(found[1]) + 1}.{found[2]}.{layer}.{found[5]}"
        tensors[name] = tensor
    torch.save(tensors, tmp_path / "file.pth")
    assert_same_network(model, convert(tmp_path / "file.pth", "resnet"), tmp_path / "converted")


@pytest.mark.parametrize("prefix", ["", "module.", "module.backbone."])
def test_a_training_checkpoint_gives_the_teacher(prefix, tiny, tmp_path):
    model, stored = tiny("dino")
    tensors = {prefix + key: tensor for key, tensor in original("dino", stored).items()}
    student = {key: torch.zeros_like(tensor) for key, tensor in tensors.items()}
    head = {f"{prefix.replace('backbone.', '')}head.mlp.0.weight": torch.zeros(3)}
    checkpoint = {"student": student, "teacher": tensors | head, "epoch": 3, "args": argparse.Namespace(arch="vit")}
    torch.save(checkpoint, tmp_path / "file.pth")
    assert_same_network(model, convert(tmp_path / "file.pth", "dino"), tmp_path / "converted")


def test_blocks_in_groups_and_half_precision(tiny, tmp_path):
    _, stored = tiny("dinov2")
    tensors = original("dinov2", stored)
    del tensors["mask_token"]
    groups = {re.sub(r"^blocks\.(\d+)", r"blocks.\1.\1", key): tensor.half() for key, tensor in tensors.items()}
    torch.save({"state_dict": groups}, tmp_path / "file.pth")
    converted = convert(tmp_path / "file.pth", "dinov2")
    assert not converted.pop("embeddings.mask_token").any()
    for key, tensor in converted.items():
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, stored[key], rtol=1e-3, atol=1e-3)


def test_a_full_clip_loses_its_text_half(tiny, tmp_path):
    model, stored = tiny("clip")
    text = {"text_model.embeddings.position_embedding.weight": torch.zeros(2, 2), "logit_scale": torch.zeros(())}
    save_file({f"vision_model.{key}": tensor for key, tensor in stored.items()} | text, tmp_path / "file.safetensors")
    assert_same_network(model, convert(tmp_path / "file.safetensors", "clip"), tmp_path / "converted")


def test_missing_unknown_and_misshapen_tensors_are_listed(tiny, tmp_path):
    _, stored = tiny("dinov2")
    del stored["layernorm.bias"]
    stored["embeddings.position_embeddings"] = torch.zeros(1, 5, 32)
    stored["encoder.layer.7.norm1.weight"] = torch.zeros(32)
    save_file(stored, tmp_path / "file.safetensors")
    with pytest.raises(WeightsError) as error:
        convert(tmp_path / "file.safetensors", "dinov2")
    assert "1 tensors are missing (layernorm.bias)" in str(error.value)
    assert "1 are unknown (encoder.layer.7.norm1.weight)" in str(error.value)
    assert "embeddings.position_embeddings is 1×5×32, not 1×10×32" in str(error.value)


def test_another_network_is_refused(tiny, tmp_path):
    tiny("dinov2")
    torch.save({"weight": torch.zeros(3)}, tmp_path / "file.pth")
    with pytest.raises(WeightsError, match=r"does not hold a dinov2 .* it has weight"):
        convert(tmp_path / "file.pth", "dinov2")


class Touch:
    """Pickled, it makes a file when it is read by a careless reader."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("save", [lambda thing, path: path.write_bytes(pickle.dumps(thing)), torch.save])
def test_a_pickle_with_code_is_refused_unrun(save, tmp_path):
    save({"model": Touch(tmp_path / "ran")}, tmp_path / "file.pth")
    with pytest.raises(WeightsError, match="would run code"):
        convert(tmp_path / "file.pth", "dinov2-small")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("suffix", ["pth", "safetensors", "onnx"])
def test_damaged_files_are_refused(suffix, tiny, tmp_path):
    _, stored = tiny("dinov2")
    whole = tmp_path / "whole"
    torch.save(stored, whole) if suffix == "pth" else save_file(stored, whole)
    path = tmp_path / f"file.{suffix}"
    for content in (whole.read_bytes()[: whole.stat().st_size // 2], b"", b"<html>404</html>"):
        path.write_bytes(content)
        with pytest.raises(WeightsError, match=re.escape(str(path))):
            convert(path, "dinov2")


def test_no_file_is_said_so(tmp_path):
    with pytest.raises(WeightsError, match="is no file"):
        convert(tmp_path, "dinov2-small")
