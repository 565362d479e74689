"""Training: from posed scenes to LoCUS features."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.training.run import RunSummary, train
    from locus.training.settings import PRESETS, Settings, TrainingError

__all__ = ["PRESETS", "RunSummary", "Settings", "TrainingError", "train"]

HOMES = {"RunSummary": "run", "train": "run"}
__getattr__ = attach(__name__, {name: HOMES.get(name, "settings") for name in __all__})
