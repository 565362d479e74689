"""Learned weights on the line between a run's start and its end.

Long training on generated houses costs precision in real places, and going a part of the way back gives it back
(docs/training.md). Mixed are the weights, not features, so that the model stays as small and as fast.
"""

from pathlib import Path

import torch

from locus.model import LoCUS
from locus.training.checkpoints import START, load_state
from locus.training.settings import TrainingError


@torch.no_grad()
def mix_with_start(model: LoCUS, run: Path, share: float) -> None:
    """Replace so much of every weight of a run's model by what it was before the first step."""
    if not 0 <= share <= 1:
        raise TrainingError(f"the start's share lies between 0 and 1, and is {share:g}")
    if not (run / START).is_file():
        raise TrainingError(f"{run} has no {START} to mix with; name a training run's folder")
    before = load_state(run / START).head
    for name, weight in model.head.state_dict().items():
        weight.lerp_(before[name], share)
