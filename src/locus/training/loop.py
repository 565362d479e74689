"""The loop: draw a batch, rank it, step; validate on scenes never trained on; checkpoint; go on where it stopped."""

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from locus.errors import LocusError
from locus.features.reduction import sample_rows
from locus.model import LoCUS
from locus.model.heads import start_from_pca
from locus.objective import ObjectiveError, RetrievalObjective, mean_embeddings
from locus.training.batches import Batch, Sampler
from locus.training.checkpoints import BEST, LAST, METRICS, START, State, append_metrics, save_state
from locus.training.environments import Environment
from locus.training.processes import Processes
from locus.training.settings import Settings, TrainingError
from locus.training.validation import Features, fixed_batches, mean, precision

AHEAD = 3  # batches assembled before they are needed
PERSISTENT = 50  # batches in a row without a landmark: these scenes cannot teach anything
TRIED = 5  # batches, to find one whose time can be taken
MEASURED = 4  # so many of the training environments are measured beside those of validation


@dataclass(frozen=True)
class Step:
    """What a watcher is told after each step."""

    step: int
    loss: float
    waited: float
    """Share of the step's time spent waiting for its batch."""
    metrics: dict[str, Any] | None
    """Of a validation, if there was one."""


class Trainer:
    """One run. `run` yields after every step, so that whoever drives it can show it or stop it."""

    def __init__(
        self,
        model: LoCUS,
        train: Sequence[Environment],
        validation: Sequence[Environment],
        settings: Settings,
        folder: Path,
        processes: Processes | None = None,
    ) -> None:
        self.model, self.settings, self.folder = model, settings, folder
        self.processes = processes or Processes()
        self.device = model.backbone.mean.device
        self.sampler = Sampler(train, settings)
        seen = fixed_batches(train[:MEASURED], settings, each=1) or fixed_batches(train, settings, each=1)
        self.train_batches = [batch.to(self.device) for batch in seen]
        self.validation_batches = [batch.to(self.device) for batch in fixed_batches(validation, settings)]
        self.validation_names = [environment.name for environment in validation]
        for scenes, batches in (("training", self.train_batches), ("validation", self.validation_batches)):
            if not batches:
                raise TrainingError(
                    f"no patch of the {scenes} scenes is seen again within {min(settings.radii):g} m in another frame: "
                    "do the frames overlap? see `locus inspect`"
                )
        self.objective = RetrievalObjective(
            settings.radii, settings.kappa, settings.tau, settings.exclude_same_frame, group=self.processes.group
        )
        self.optimizer = torch.optim.AdamW(model.head.parameters(), weight_decay=settings.weight_decay)
        self.step, self.best, self.skipped = 0, -math.inf, 0
        self.losses: list[float] = []  # since the last validation
        model.train()

    def start(self, state: State | None, learned: Mapping[str, Tensor] | None = None) -> None:
        """Go on from a checkpoint, or begin, with what was `learned` before or the last linear map from whitened PCA.

        Whatever it begins with, the baselines are the backbone's own.
        """
        if state is not None:
            self.model.head.load_state_dict(dict(state.head))
            self.optimizer.load_state_dict(dict(state.optimizer))
            self.step, self.best, self.skipped, self.losses = state.step, state.best, state.skipped, state.losses
            return
        torch.manual_seed(self.settings.seed)
        start = self.model
        if start.config["head"] == "paper":  # which starts at random; PCA starts a linear one beside it
            start = LoCUS(start.backbone, dimension=start.dimension, radii=start.radii, head="linear").to(self.device)
        rows = sample_rows(start, [environment.scene for environment in self.sampler.environments])
        baselines = {}
        for name, whiten in (("pca", False), ("whitened pca", True)):  # the last of them stays
            start_from_pca(start.head, rows, len(self.settings.radii), whiten=whiten)
            if self.processes.first:
                baselines[name] = self._measured(start.head_features)
        if learned is not None:
            self.model.head.load_state_dict(learned)
        if self.processes.first:
            self.checkpoint(self._validate() | {"baselines": baselines})

    def run(self) -> Iterator[Step]:
        """Steps to the end of the run."""
        settings, empty = self.settings, 0
        with ThreadPoolExecutor(1) as pool:
            coming = deque(pool.submit(self.sampler.batch, self.step + i) for i in range(AHEAD))
            while self.step < settings.steps:
                began = time.perf_counter()
                batch = coming.popleft().result()
                waited = time.perf_counter() - began
                coming.append(pool.submit(self.sampler.batch, self.step + AHEAD))
                if len(batch.landmarks):
                    self.losses.append(self._learn(batch))
                    empty = 0
                else:
                    self.skipped, empty = self.skipped + 1, empty + 1
                    if empty == PERSISTENT:
                        raise TrainingError(
                            f"{PERSISTENT} batches in a row have no patch that is seen again within "
                            f"{min(settings.radii):g} m in another frame: do the frames overlap? see `locus inspect`"
                        )
                self.step += 1
                metrics, loss = None, self.losses[-1] if self.losses else math.nan
                if self.step % settings.validate_every == 0 or self.step == settings.steps:
                    if self.processes.first:  # the others wait for it in the next step
                        metrics = self._validate() | {"loss": float(np.mean(self.losses)) if self.losses else None}
                    self.losses = []
                if metrics or self.step % settings.checkpoint_every == 0:
                    self.checkpoint(metrics)
                share = waited / (time.perf_counter() - began)
                yield Step(self.step, loss, share, metrics)

    def seconds_a_step(self) -> float | None:
        """About how long a step takes, from a step tried and not taken; nothing of the run changes by it.

        None if no batch with landmarks is found. With several processes, all must call it.
        """
        for step in range(self.step, self.step + TRIED):
            began = time.perf_counter()
            batch = self.sampler.batch(step)
            drawing = time.perf_counter() - began
            if len(batch.landmarks):
                break
        else:
            return None
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            for _ in range(2):  # the first one is slow: memory is got, code is loaded
                began = time.perf_counter()
                self._loss(batch).item()
                learning = time.perf_counter() - began
        self.optimizer.zero_grad()
        return max(learning, drawing)  # a batch is drawn while the step before is learned from

    def _loss(self, batch: Batch) -> Float[Tensor, ""]:
        """1 - V-Smooth-AP, mean over scales; its gradient is left in the parameters."""
        batch = batch.share(self.processes.rank, self.processes.count).to(self.device)
        features = self._features(batch)
        geometry = (batch.positions, batch.environments, batch.frames, batch.landmarks)
        embeddings = None  # the features of the landmarks' own patches
        if self.settings.embedding == "mean":
            near = (batch.positions, batch.environments, batch.landmarks, self.settings.radii)
            embeddings = mean_embeddings(features, *near, self.processes.group)
        loss = 1 - self.objective(features, *geometry, embeddings).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.processes.sum_gradients(self.model.head.parameters())
        return loss.detach()

    def _learn(self, batch: Batch) -> float:
        """One step."""
        settings = self.settings
        try:
            loss = self._loss(batch)
        except ObjectiveError as error:  # weights so large that features overflow
            raise self._diverged(str(error)) from None
        largest = math.inf if settings.clip is None else settings.clip
        norm = torch.nn.utils.clip_grad_norm_(self.model.head.parameters(), largest)
        if not (torch.isfinite(loss) and torch.isfinite(norm)):
            raise self._diverged(f"the loss is {loss.item()} and its gradient {norm.item()}")
        for group in self.optimizer.param_groups:
            group["lr"] = settings.rate(self.step)
        self.optimizer.step()
        # Else they would be saved before the next loss shows it.
        if not all(bool(torch.isfinite(weight).all()) for weight in self.model.head.parameters()):
            raise self._diverged(f"the loss is {loss.item():.3f}, but the step made weights infinite")
        return loss.item()

    def _diverged(self, how: str) -> TrainingError:
        return TrainingError(
            f"step {self.step + 1}: {how}; the last good checkpoint, {self.folder / LAST}, is kept; "
            "try a lower --learning-rate"
        )

    def _features(self, batch: Batch) -> Float[Tensor, "scales n c"]:
        """Features of all patches of a batch."""
        maps = [self.model.head_features(tokens, grid).flatten(1, 3) for tokens, grid in batch.sequences]
        if not maps:  # fewer frames than processes; it takes part in the backward pass of all the same
            maps = [torch.zeros(len(self.settings.radii), 0, self.model.dimension, requires_grad=True)]
        return torch.cat(maps, dim=1).to(batch.positions.device)

    def _measured(self, features: Features) -> dict[str, Any]:
        """AP on the validation scenes, in all and one by one."""
        found = precision(features, self.validation_batches, self.settings)
        by_name = {self.validation_names[number]: each["cross-view"] for number, each in found.items()}
        return mean(found.values()) | {"environments": by_name}

    def _validate(self) -> dict[str, Any]:
        """AP now, on validation and on training scenes."""
        self.model.eval()
        validation = self._measured(self.model.head_features)
        train = precision(self.model.head_features, self.train_batches, self.settings)
        self.model.train()
        return {
            "step": self.step,
            "validation": validation,
            "train": mean(train.values()),
            "learning rate": self.settings.rate(self.step),
            "skipped": self.skipped,
        }

    def checkpoint(self, metrics: dict[str, Any] | None = None) -> None:
        """Write what was measured and where the run is; the best model so far by cross-view AP in validation."""
        if not self.processes.first:
            return
        better = metrics is not None and metrics["validation"]["cross-view"] > self.best
        if better:
            self.best = metrics["validation"]["cross-view"]
        weights, moments = self.model.head.state_dict(), self.optimizer.state_dict()
        state = State(self.step, weights, moments, self.best, self.skipped, self.losses)
        try:
            if metrics:
                append_metrics(self.folder / METRICS, metrics)
            if self.step == 0:
                save_state(state, self.folder / START)
            if better:
                save_state(state, self.folder / BEST)
                self.model.write(self.folder)
            save_state(state, self.folder / LAST)
        except (OSError, LocusError) as error:
            raise TrainingError(
                f"step {self.step} could not be saved in {self.folder} ({error}); once that is put right, the same "
                "command goes on from the checkpoint before, which is whole"
            ) from error
