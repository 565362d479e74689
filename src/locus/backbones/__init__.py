"""Frozen networks: image to patch tokens, and where their weights come from."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.backbones.backbone import Backbone, BackboneError
    from locus.backbones.loading import load
    from locus.backbones.variants import VARIANTS

__all__ = ["VARIANTS", "Backbone", "BackboneError", "load"]

HOMES = {"VARIANTS": "variants", "Backbone": "backbone", "BackboneError": "backbone", "load": "loading"}
__getattr__ = attach(__name__, HOMES)
