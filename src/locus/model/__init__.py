"""LoCUS, a frozen backbone and a learned head; heads, PCA, saving, loading, export, and what is shipped."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.model import export, heads, pca, shipped
    from locus.model.device import this_device
    from locus.model.locus import CONFIG, WEIGHTS, LoCUS, ModelError, load

__all__ = [
    "CONFIG",
    "WEIGHTS",
    "LoCUS",
    "ModelError",
    "export",
    "heads",
    "load",
    "pca",
    "shipped",
    "this_device",
]

HOMES = {"export": "export", "heads": "heads", "pca": "pca", "shipped": "shipped", "this_device": "device"}
__getattr__ = attach(__name__, {name: HOMES.get(name, "locus") for name in __all__})
