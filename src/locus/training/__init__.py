"""Training: from posed scenes to LoCUS features."""

from locus.training.run import RunSummary, train
from locus.training.settings import PRESETS, Settings, TrainingError

__all__ = ["PRESETS", "RunSummary", "Settings", "TrainingError", "train"]
