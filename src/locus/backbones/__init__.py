"""Frozen networks: image to patch tokens, and where their weights come from."""

from locus.backbones.backbone import Backbone, BackboneError
from locus.backbones.loading import load
from locus.backbones.variants import VARIANTS

__all__ = ["VARIANTS", "Backbone", "BackboneError", "load"]
