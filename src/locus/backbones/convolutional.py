"""Convolutional networks of the transformers library, as dense features."""

from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn

from locus.backbones.backbone import Backbone, BackboneError
from locus.backbones.pretrained import configuration, normalisation, pretrained

MODELS = {"resnet": "ResNetModel", "dinov3_convnext": "DINOv3ConvNextModel"}
ENCODERS = {"resnet": "encoder", "dinov3_convnext": "model"}  # where they keep their stages


class Convolutional(Backbone):
    """The first `layer` stages of a ResNet or ConvNeXt. The first has stride 4, each further one twice the last's."""

    def __init__(self, name: str, folder: Path, layer: int | None, norm: bool | None) -> None:
        config = configuration(folder)
        super().__init__(*normalisation(folder, config.model_type))
        stages = len(config.depths)
        self.layer = stages if layer is None else layer
        if not 1 <= self.layer <= stages:
            raise BackboneError(f"{name} has stages 1 to {stages}; there is no layer {layer}")
        self.name = name
        self.patch_size = 2 ** (self.layer + 1)
        self.dimension = int(config.hidden_sizes[self.layer - 1])
        self.prefix = 0
        network = pretrained(MODELS[config.model_type], folder, config)
        self.norm = self.layer == stages if norm is None else norm
        if self.norm and self.layer < stages:
            raise BackboneError(f"the final norm of {name} fits its last stage only, not layer {layer}")
        self.embedder = getattr(network, "embedder", nn.Identity())
        self.stages = getattr(network, ENCODERS[config.model_type]).stages[: self.layer]
        self.final_norm = getattr(network, "layer_norm", nn.Identity()) if self.norm else nn.Identity()

    def sequence(self, images: Float[Tensor, "b 3 height width"]) -> tuple[Float[Tensor, "b n d"], tuple[int, int]]:
        maps = self.embedder(images)
        for stage in self.stages:
            maps = stage(maps)
        return self.final_norm(maps.flatten(2).transpose(1, 2)), (maps.shape[-2], maps.shape[-1])
