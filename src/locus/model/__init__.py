"""LoCUS, a frozen backbone and a learned head; heads, PCA, saving, loading, export, and what is shipped."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.model import export, heads, pca, shipped
    from locus.model.locus import CONFIG, WEIGHTS, LoCUS, ModelError, load, load_learned, this_device

__all__ = [
    "CONFIG",
    "WEIGHTS",
    "LoCUS",
    "ModelError",
    "export",
    "heads",
    "load",
    "load_learned",
    "pca",
    "shipped",
    "this_device",
]

MODULES = ("export", "heads", "pca", "shipped")
__getattr__ = attach(__name__, {name: name if name in MODULES else "locus" for name in __all__})
