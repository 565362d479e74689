"""Training: from posed scenes to LoCUS features."""

from locus.training.run import Summary, train
from locus.training.settings import PRESETS, Settings, TrainingError

__all__ = ["PRESETS", "Settings", "Summary", "TrainingError", "train"]
