"""Vision transformers of the transformers library, cut after a given block."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from locus.backbones.backbone import Backbone, BackboneError
from locus.backbones.pretrained import configuration, normalisation, pretrained


@dataclass(frozen=True)
class Family:
    """Where a family of transformers keeps its parts."""

    model: str
    """The class in transformers."""
    blocks: str
    norm: str
    norm_in_output: bool = True
    """Whether the library's own output has passed the final norm (CLIP's has not)."""
    interpolate: bool = False
    """Whether the library must be told to interpolate position codes."""


FAMILIES = {
    "vit": Family("ViTModel", "layers", "layernorm", interpolate=True),
    "dinov2": Family("Dinov2Model", "encoder.layer", "layernorm"),
    "dinov2_with_registers": Family("Dinov2WithRegistersModel", "encoder.layer", "layernorm"),
    "dinov3_vit": Family("DINOv3ViTModel", "model.layer", "norm"),
    "clip_vision_model": Family(
        "CLIPVisionModel", "encoder.layers", "post_layernorm", norm_in_output=False, interpolate=True
    ),
}


class Transformer(Backbone):
    """The first `layer` blocks of a pretrained vision transformer; its final norm only where asked for."""

    def __init__(self, name: str, folder: Path, layer: int | None, norm: bool | None) -> None:
        config = configuration(folder)
        mean, std = normalisation(folder, config.model_type)
        super().__init__(mean, std)
        self.family = FAMILIES[config.model_type]
        self.blocks_in_all = config.num_hidden_layers
        self.layer = self.blocks_in_all if layer is None else layer
        if not 1 <= self.layer <= self.blocks_in_all:
            raise BackboneError(f"{name} has blocks 1 to {self.blocks_in_all}; there is no layer {layer}")
        self.name = name
        self.folder = folder
        self.patch_size = int(config.patch_size)
        self.dimension = int(config.hidden_size)
        self.architecture = f"{config.model_type}, {config.num_attention_heads} heads, {config.hidden_act}"
        self.prefix = 1 + int(getattr(config, "num_register_tokens", 0))
        # As the library's own output by default; inside the network, where no norm belongs, only if asked.
        self.norm = norm if norm is not None else self.layer == self.blocks_in_all and self.family.norm_in_output
        config.num_hidden_layers = self.layer
        self.network = pretrained(self.family.model, folder, config)
        self.final_norm = getattr(self.network, self.family.norm) if self.norm else nn.Identity()
        setattr(self.network, self.family.norm, nn.Identity())

    def sequence(self, images: Float[Tensor, "b 3 height width"]) -> tuple[Float[Tensor, "b n d"], tuple[int, int]]:
        options: dict[str, Any] = {"interpolate_pos_encoding": True} if self.family.interpolate else {}
        hidden = self.network(pixel_values=images, **options).last_hidden_state
        return self.final_norm(hidden), (images.shape[-2] // self.patch_size, images.shape[-1] // self.patch_size)

    def continuation(self, count: int) -> "Blocks":
        """The next `count` pretrained blocks and the final norm, as a module that may learn."""
        if not 1 <= count <= self.blocks_in_all - self.layer:
            raise BackboneError(
                f"{self.name} has {self.blocks_in_all} blocks and runs {self.layer} of them; {count} cannot follow: "
                "take fewer --blocks, or a smaller --layer"
            )
        config = configuration(self.folder)
        config.num_hidden_layers = self.layer + count
        network = pretrained(self.family.model, self.folder, config)
        blocks = network.get_submodule(self.family.blocks)[self.layer :]
        rotary = getattr(network, "rope_embeddings", None)
        return Blocks(blocks, getattr(network, self.family.norm), rotary, self.patch_size)


class Blocks(nn.Module):
    """Pretrained transformer blocks and a norm, from a token sequence to a token sequence."""

    def __init__(self, blocks: nn.ModuleList, norm: nn.LayerNorm, rotary: nn.Module | None, patch_size: int) -> None:
        super().__init__()
        self.blocks = blocks
        self.norm = norm
        self.rotary = rotary
        self.patch_size = patch_size
        self.requires_grad_(True)

    def forward(self, sequence: Float[Tensor, "b n d"], grid: tuple[int, int]) -> Float[Tensor, "b n d"]:
        options: dict[str, Any] = {"attention_mask": None}
        if self.rotary is not None:
            # DINOv3's position code is a rotation that depends on the image's size alone.
            rows, columns = grid
            image = sequence.new_empty(1, 1, rows * self.patch_size, columns * self.patch_size)
            options["position_embeddings"] = self.rotary(image)
        for block in self.blocks:
            sequence = block(sequence, **options)
        return self.norm(sequence)
