"""Segmentation by a linear probe: what a class looks like is one direction in the space of frozen features."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int32
from numpy import ndarray
from safetensors import SafetensorError
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from torch import Tensor

from locus.checksums import metadata, sealed_tensors
from locus.errors import LocusError
from locus.files import atomic
from locus.model import LoCUS
from locus.opening import parse_json, read
from locus.pages.pictures import enlarged
from locus.scenes.scene import LabelClass
from locus.tasks.patch_labels import LabelledPatches, same_names

# docs/segment.md: how they were chosen. Classes are to be known in other environments, objects in other views.
CLASS_L2, OBJECT_L2 = 1e-4, 1e-6
STEPS = 500  # of L-BFGS; it stops by itself before
ROWS = 65_536  # patches scored at once
HELD_OUT = 0.2  # of the frames, the last ones: how sure the probe may be is measured on them
TEMPERATURES = np.geomspace(0.25, 20, 89)  # steps of 5 %
UNKNOWN = 0.5  # probability: a class that is more likely wrong than right is not named
VERSION = 1


class ProbeError(LocusError):
    """A probe that cannot be fitted, read or used."""


@dataclass(frozen=True, eq=False)
class Probe:
    """A patch-wise linear classifier of frozen features."""

    classes: tuple[LabelClass, ...]
    """Ids from 1, in the order of the rows of `weight`."""
    weight: Float[Tensor, "k c"]
    bias: Float[Tensor, " k"]
    scale: int = 0
    """Which of the model's scales the features are of."""
    objects: bool = False
    """Whether the classes are single objects of one scene (`object_targets`)."""
    model: str = ""
    """Where the model was, when the probe was fitted."""
    fingerprint: str = ""
    """Of the model; features of another mean nothing here."""
    temperature: float = 1.0
    """What scores are divided by, so that they are as sure as they are right in frames that the fit has not seen."""

    def probabilities(self, features: Float[Tensor, "*n c"]) -> Float[Tensor, "*n k"]:
        """How likely each class is."""
        return (self.logits(features) / self.temperature).softmax(dim=-1)

    def logits(self, features: Float[Tensor, "*n c"]) -> Float[Tensor, "*n k"]:
        """Scores of the classes."""
        return features.float() @ self.weight.T.to(features.device) + self.bias.to(features.device)

    def predict(
        self, features: Float[Tensor, "rows columns c"], size: tuple[int, int], least: float = UNKNOWN
    ) -> Int32[ndarray, "height width"]:
        """The class id of every pixel of an image of (width, height): the scores are blended, then the best taken.

        0, unknown, where the best class has a probability of less than `least`.
        """
        scores = (self.logits(features) / self.temperature).cpu().numpy()
        best, total = (np.full((size[1], size[0]), -np.inf, np.float32) for _ in range(2))
        labels = np.zeros((size[1], size[0]), np.int32)
        # One class after the other: all of them at a large image's size would not fit in memory.
        for number, label in enumerate(self.classes):
            blended = enlarged(scores[..., number], size)
            better = blended > best
            best[better], labels[better] = blended[better], label.id
            total = np.logaddexp(total, blended)
        return np.where(np.exp(best - total) >= least, labels, 0).astype(np.int32)

    def accuracy(self, patches: LabelledPatches) -> float:
        """The share of patches classified correctly; of classes that the probe does not have, none is."""
        truth = torch.from_numpy(same_names(patches.classes, self.classes))[patches.labels]
        return float((self.logits(patches.features).argmax(dim=1) + 1 == truth).float().mean())

    def check(self, model: LoCUS) -> None:
        """Refuse features of another model."""
        if model.fingerprint != self.fingerprint:
            raise ProbeError(
                f"the probe was fitted to features of {self.model or 'a model'} ({self.fingerprint}), but {model.name} "
                f"({model.fingerprint}) makes others; use that model, or fit a probe for this one"
            )

    def save(self, path: str | Path) -> None:
        """One safetensors file, with the rest as JSON in its header."""
        stated = {"version": VERSION, "classes": [vars(label) for label in self.classes]}
        stated |= {name: getattr(self, name) for name in ("scale", "objects", "model", "fingerprint", "temperature")}
        with atomic(Path(path)) as file:
            tensors = {"weight": self.weight, "bias": self.bias}
            file.write_bytes(sealed_tensors(serialize(tensors, metadata={"locus probe": json.dumps(stated)})))

    @classmethod
    def load(cls, path: str | Path) -> "Probe":
        path = Path(path)
        if not path.is_file():
            raise ProbeError(f"{path} does not exist; `locus segment fit` makes probes")
        try:
            content = read(path)
            text, weights = metadata(content).get("locus probe"), deserialize(content)
        except (SafetensorError, OSError, ValueError) as error:
            raise ProbeError(f"{path} is no probe, or damaged: {error}") from None
        if text is None:
            raise ProbeError(f"{path} is a safetensors file, but no probe of `locus segment fit`")
        try:
            stated: dict[str, Any] = parse_json(text, f"the header of {path}")
            if stated["version"] > VERSION:
                raise ProbeError(f"{path} was written by a newer version of LoCUS; update this one")
            classes = tuple(LabelClass(int(c["id"]), str(c["name"]), c["kind"]) for c in stated["classes"])
            weight, bias = weights["weight"], weights["bias"]
            if weight.shape[0] != len(classes) or bias.shape != (len(classes),):
                raise ProbeError(f"{path} has {len(classes)} classes but weights {tuple(weight.shape)}; it is damaged")
            if not (weight.isfinite().all() and bias.isfinite().all()):
                raise ProbeError(f"{path} has weights that are not numbers; fit the probe again")
            source, fingerprint = str(stated["model"]), str(stated["fingerprint"])
            temperature = float(stated.get("temperature", 1.0))
            if not 0 < temperature < np.inf:
                raise ProbeError(f"{path} has a temperature of {temperature:g}; fit the probe again")
            scale, objects = int(stated["scale"]), bool(stated["objects"])
            return cls(classes, weight, bias, scale, objects, source, fingerprint, temperature)
        except (KeyError, TypeError, ValueError) as error:
            raise ProbeError(f"the header of {path} is damaged (at {error}); fit the probe again") from None


def fit_probe(
    patches: LabelledPatches,
    *,
    l2: float | None = None,
    scale: int = 0,
    objects: bool = False,
    model: LoCUS | None = None,
    source: str = "",
    report: Callable[[int, float], None] | None = None,
) -> Probe:
    """The linear classifier with the least cross-entropy on the patches, by L-BFGS in double precision.

    What is minimised is `mean cross-entropy + l2/2 · ‖weights‖²`: convex, so there is one answer, whatever the machine.
    (scikit-learn's `LogisticRegression(C=1/(n·l2))` minimises the same.) Classes no patch shows are left out.

    Args:
        patches: What to learn from.
        l2: How strongly weights are drawn to zero. Biases are not. By default 1e-4, for objects 1e-6.
        scale: Which of the model's scales the features are of; kept with the probe.
        objects: Whether the classes are single objects; kept with the probe.
        model: The model they are of; its fingerprint is kept with the probe.
        source: Where that model is to be found again.
        report: Told the step and the loss.
    """
    l2 = l2 if l2 is not None else OBJECT_L2 if objects else CLASS_L2
    if not (l2 > 0 and np.isfinite(l2)):
        raise ProbeError(f"l2 must be positive, not {l2:g}: separable classes would drive the weights to infinity")
    present = set(patches.labels.unique().tolist())
    classes = [label for label in patches.classes if label.id in present]
    if len(classes) < 2:
        raise ProbeError(f"the labels show {len(classes)} classes in {len(patches.labels)} patches; it takes two")
    column = torch.zeros(1 + max(present), dtype=torch.int64)
    for number, label in enumerate(classes):
        column[label.id] = number
    weight, bias = _fit(patches.features, column[patches.labels], len(classes), l2, report)
    numbered = tuple(LabelClass(number, label.name, label.kind) for number, label in enumerate(classes, 1))
    fingerprint = "" if model is None else model.fingerprint
    return Probe(numbered, weight, bias, scale, objects, source, fingerprint, _temperature(patches, column, l2))


def _temperature(patches: LabelledPatches, column: Tensor, l2: float) -> float:
    """What makes the scores of a probe that is fitted to the first frames likeliest in the last; 1 if none is left."""
    late = patches.frames >= np.ceil((1 - HELD_OUT) * patches.count)
    truth, shown = column[patches.labels], column[patches.labels[~late]].unique()
    scored = late & torch.isin(truth, shown)
    if len(shown) < 2 or not scored.any():
        return 1.0
    number = torch.searchsorted(shown, truth)
    weight, bias = _fit(patches.features[~late], number[~late], len(shown), l2, None)
    scores = patches.features[scored].float() @ weight.T + bias
    losses = [float(F.cross_entropy(scores / float(each), number[scored])) for each in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def _fit(
    features: Float[Tensor, "n c"],
    truth: Tensor,
    count: int,
    l2: float,
    report: Callable[[int, float], None] | None,
) -> tuple[Float[Tensor, "k c"], Float[Tensor, " k"]]:
    # A feature's mean is a bias to the classes; without it the problem is far better conditioned.
    mean = features.double().mean(dim=0)
    weight = torch.zeros(count, features.shape[1], dtype=torch.float64, device=features.device)
    bias = torch.zeros(count, dtype=torch.float64, device=features.device)
    optimiser = torch.optim.LBFGS(
        [weight, bias],
        max_iter=STEPS,
        history_size=20,
        tolerance_grad=1e-7,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )
    calls = 0

    def loss() -> float:
        # The gradient by hand, softmax minus truth times features: half the time and memory of autograd.
        nonlocal calls
        weight.grad, bias.grad = l2 * weight, torch.zeros_like(bias)
        value = 0.5 * l2 * float(weight.square().sum())
        for rows, labels in zip(features.split(ROWS), truth.split(ROWS), strict=True):
            centred = rows.double() - mean
            logarithms = F.log_softmax(centred @ weight.T + bias, dim=1)
            right = logarithms.gather(1, labels[:, None])
            value -= float(right.sum()) / len(truth)
            excess = logarithms.exp_().scatter_add_(1, labels[:, None], -torch.ones_like(right)) / len(truth)
            weight.grad += excess.T @ centred
            bias.grad += excess.sum(dim=0)
        calls += 1
        if report is not None:
            report(calls, value)
        return value

    optimiser.step(loss)
    return weight.float(), (bias - weight @ mean).float()
