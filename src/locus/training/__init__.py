"""Training: from posed scenes to LoCUS features."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.training.run import RunSummary, train
    from locus.training.settings import PRESETS, Settings, TrainingError, beginning_with

__all__ = ["PRESETS", "RunSummary", "Settings", "TrainingError", "beginning_with", "train"]

HOMES = {"RunSummary": "run", "train": "run"}
__getattr__ = attach(__name__, {name: HOMES.get(name, "settings") for name in __all__})
