"""Images in, features out: named images, prepared frames, the token cache, whole scenes, feature files."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.features import cache, dense, extraction, feature_file, images, viz

__all__ = ["cache", "dense", "extraction", "feature_file", "images", "viz"]

__getattr__ = attach(__name__, {name: name for name in __all__})
