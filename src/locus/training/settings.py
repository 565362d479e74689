"""What a training run can be told; a field's text is its --help."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from locus.errors import LocusError
from locus.files import load_json
from locus.geometry import LARGEST_LENGTH
from locus.model.head_kinds import BLOCKS, DIMENSION, KAPPA, TAU, HeadKind
from locus.model.shipped import MODELS


class TrainingError(LocusError):
    """A run that cannot start or go on."""


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults are the best of the few settings tried so far (docs/training.md)."""

    start_from: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """Begin with what this model has learned: one that comes with LoCUS, a run's folder, or one on the Hugging Face
    hub. Its backbone, head and radii are the defaults of the options below. By default only the backbone's weights."""
    backbone: str = "dinov2-small"
    """The frozen network: a name of `locus weights list`, a Hugging Face id, or a folder."""
    layer: int | None = 7
    """Blocks of the backbone that stay frozen; their output is cached."""
    norm: bool | None = None
    """Apply the backbone's final norm to its tokens. By default only after its last block."""
    head: HeadKind = "blocks"
    """What learns: the backbone's next blocks, the paper's head, or a linear map."""
    blocks: int = BLOCKS
    """How many pretrained blocks learn, with --head blocks."""
    dimension: int = DIMENSION
    """Length of a feature."""
    resolution: int | None = 252
    """Pixels of an image's shorter side before it is cut into patches. By default as it is."""
    radii: tuple[float, ...] = (0.2,)
    """Metres within which two points are the same spot; several give one scale each."""
    kappa: float = KAPPA
    """Patches further than this many radii from a landmark are "don't care"."""
    tau: float = TAU
    """Temperature of the smooth ranking."""
    exclude_same_frame: bool = True
    """Leave pairs within one frame, which are easy and dominate, out of the ranking."""
    frames_per_batch: int = 16
    """Frames in a batch: a random one, and others drawn by how much they overlap it."""
    environments_per_batch: int = 1
    """Environments those frames are from, in equal shares."""
    landmarks: int = 512
    """Landmarks drawn for a batch."""
    sampling: Literal["patches", "space"] = "patches"
    """Draw landmarks uniformly from all patches seen in two frames, or uniformly in the visible volume."""
    embedding: Literal["patch", "mean"] = "patch"
    """A landmark's embedding: the feature of its patch, or the mean feature of its positives."""
    copies: int = 0
    """Augmented copies (cropped, recoloured) of every frame in the cache, drawn as often as the frame itself."""
    steps: int = 2000
    """Optimiser steps."""
    epochs: int | None = None
    """Overrules --steps: how often as many frames are drawn as the training scenes have."""
    learning_rate: float = 2e-4
    schedule: Literal["cosine", "constant"] = "cosine"
    """How the learning rate goes on after the warm-up."""
    warmup: int = 50
    """Steps over which the learning rate rises to its value."""
    weight_decay: float = 0.0
    clip: float | None = 1.0
    """Largest norm of the gradient; longer ones are shortened to it. None: they are not."""
    seed: int = 0
    """Same seed, same machine, same result."""
    validate_every: int = 100
    """Steps between validations; checkpoints are written then too."""
    checkpoint_every: int = 100
    """Steps between checkpoints."""

    def __post_init__(self) -> None:
        for name in (
            "frames_per_batch",
            "environments_per_batch",
            "landmarks",
            "steps",
            "validate_every",
            "checkpoint_every",
        ):
            if getattr(self, name) < 1:
                raise TrainingError(f"{name.replace('_', ' ')} must be at least 1, not {getattr(self, name)}")
        for name in ("copies", "warmup", "weight_decay", "seed"):
            if getattr(self, name) < 0:
                raise TrainingError(f"{name.replace('_', ' ')} must not be negative, and is {getattr(self, name)}")
        if self.epochs is not None and self.epochs < 1:
            raise TrainingError(f"there must be at least 1 epoch, not {self.epochs}")
        if self.clip is not None and not self.clip > 0:
            raise TrainingError(f"the largest norm of the gradient must be positive, not {self.clip}")
        if self.frames_per_batch < 2 * self.environments_per_batch:
            raise TrainingError(
                f"{self.frames_per_batch} frames of {self.environments_per_batch} environments leave fewer than two "
                "frames each"
            )
        if not self.radii or not all(0 < radius < LARGEST_LENGTH for radius in self.radii):
            raise TrainingError(f"radii are positive numbers of metres, not {self.radii}")
        if self.learning_rate <= 0 or not math.isfinite(self.learning_rate):
            raise TrainingError(f"the learning rate must be positive, not {self.learning_rate}")
        if self.head == "identity":
            raise TrainingError("the head `identity` has nothing to learn")

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        rising = min(1.0, (step + 1) / max(self.warmup, 1))
        if self.schedule == "constant":
            return self.learning_rate * rising
        done = max(0.0, (step - self.warmup) / max(self.steps - self.warmup, 1))
        return self.learning_rate * rising * (0.5 + 0.5 * math.cos(math.pi * min(done, 1.0)))


# What a model and its further training must have in common; and what else is kept of it unless it is said otherwise.
SHAPE = ("backbone", "layer", "norm", "head", "blocks", "dimension", "radii")
KEPT = (*SHAPE, "resolution", "kappa", "tau")


def beginning_with(model: str, settings: Settings) -> Settings:
    """The settings for training a model further: its own backbone, head, radii and resolution."""
    config = MODELS.get(model, Path(model)) / "config.json"
    if not config.is_file() and model.count("/") == 1 and not Path(model).exists():
        from huggingface_hub import hf_hub_download

        try:
            config = Path(hf_hub_download(model, config.name))
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise TrainingError(f"{model} could not be fetched from Hugging Face: {reason}") from None
    if not config.is_file():
        raise TrainingError(f"{model} is no trained model to begin with; name {', '.join(MODELS)} or a run's folder")
    told = load_json(config)
    if "backbone_fingerprint" not in told:
        raise TrainingError(f"{model} has learned nothing that training could begin with; it is a --backbone")
    kept = {name: told[name] for name in KEPT if name in told}
    return replace(settings, start_from=model, **kept | {"radii": tuple(told["radii"])})


DEFAULT = Settings()
# The paper, section 4.1. Where it is silent, the authors' published code decides (κ, layer, image size, one environment
# a batch), else we do: no warm-up, a constant rate, and as many landmarks as by default.
PAPER = Settings(
    backbone="dino-vitb8",  # "DINO, 768-dimensional features"; patches of 8 pixels: the authors' code
    layer=11,  # the authors' code
    norm=False,  # the authors' code
    head="paper",
    dimension=64,
    resolution=256,  # the authors' code: 256×320
    radii=(0.2,),
    kappa=50.0,  # the authors' code: negatives up to 10 m
    tau=0.01,
    exclude_same_frame=False,
    frames_per_batch=16,
    environments_per_batch=1,  # the authors' code
    landmarks=512,  # ours; their code has 64
    sampling="patches",
    embedding="patch",
    copies=0,
    epochs=20,
    learning_rate=1e-4,
    schedule="constant",  # ours; the paper calls the rate "initial" and says no more
    warmup=0,
    weight_decay=0.0,
    clip=None,
)
# The authors' code, as published, has another learning rate and 64 landmarks. Not taken over: it draws all landmarks
# from the first image; ranks a tenth of the patches and all positives, which inflates AP; keeps the self pair in its
# sums, and leaves a landmark's patch out for every landmark; scales attention by 0.125, not by one over the root of 32.
OFFICIAL = replace(PAPER, learning_rate=1e-3, landmarks=64)
PRESETS = {"default": DEFAULT, "paper": PAPER, "official": OFFICIAL}
