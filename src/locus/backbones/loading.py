"""One line to any backbone."""

from pathlib import Path

from locus.backbones.backbone import Backbone, BackboneError
from locus.backbones.classic import Classic
from locus.backbones.convolutional import MODELS, Convolutional
from locus.backbones.pretrained import configuration
from locus.backbones.sources import locate
from locus.backbones.transformer import FAMILIES, Transformer


def load(name: str | Path, layer: int | None = None, *, norm: bool | None = None) -> Backbone:
    """A frozen backbone by name (see `VARIANTS`, and `classic`), Hugging Face id, or folder in transformers' layout.

    Args:
        name: For example `dinov2-small`. Where the weights come from: docs/backbones.md.
        layer: Run this many blocks (of a convolutional network: stages). By default all of them.
        norm: Apply the network's final norm to the tokens. By default only after all blocks, where the network itself
            does; the paper has none (DINO ViT-B/8, layer 11).
    """
    if str(name) == Classic.name:
        if layer not in (None, 1) or norm:
            raise BackboneError("the classic backbone has one layer and no norm")
        return Classic().eval()
    located = locate(name)
    model_type = configuration(located.folder).model_type
    if model_type in FAMILIES:
        return Transformer(located.name, located.folder, layer, norm).eval()
    if model_type in MODELS:
        return Convolutional(located.name, located.folder, layer, norm).eval()
    known = ", ".join([*FAMILIES, *MODELS])
    raise BackboneError(f"{name} is a network of type {model_type}; LoCUS knows {known}")
