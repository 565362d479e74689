"""Where a training step's time goes. `python benchmarks/train.py [--steps N] [--threads N]`.

A random ViT-S/14 stands for the backbone (time does not depend on its weights); made-up rooms for the scenes, their
tokens in files, as caches are. The default head (three pretrained blocks) and the paper's are timed at 16 frames of 396
patches and 512 landmarks; then the step's growth with landmarks and frames, as the exponent of a fitted power (1 is
linear); then the same step with the quadratic reference in place of the objective, at the largest size it can do in the
memory given.
"""

import argparse
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from locus import backbones
from locus.features.cache import CachedScene
from locus.model import LoCUS
from locus.objective import retrieval_sets, vectorized_smooth_ap_reference
from locus.training.environments import Environment
from locus.training.loop import Trainer
from locus.training.settings import Settings

GRID = (18, 22)
SETTINGS = Settings(backbone="random", steps=10**6, validate_every=10**6, checkpoint_every=10**6)
REFERENCE_PAIRS = 2e8  # positives × universe that the quadratic form is given: a few GB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8, help="timed steps of each row")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        backbone = random_backbone(Path(folder) / "network")
        environments = [made_up_room(backbone, seed, Path(folder)) for seed in range(4)]
        print(f"{arguments.threads} threads; 396 patches a frame, 384-d tokens cached after block 7")
        print(f"{'head':>8} {'frames':>6} {'landmarks':>9} {'step s':>7} {'objective':>9} {'waiting':>8}")
        rows = [("blocks", 16, 512), ("paper", 16, 512)]
        rows += [("blocks", 16, landmarks) for landmarks in (256, 1024, 2048)]
        rows += [("blocks", frames, 512) for frames in (8, 32)]
        seconds: dict[tuple[str, int, int], float] = {}
        for head, frames, landmarks in rows:
            settings = replace(SETTINGS, head=head, frames_per_batch=frames, landmarks=landmarks)
            trainer = make_trainer(backbone, environments, settings, Path(folder) / "run")
            step, objective, waiting = timed(trainer, arguments.steps)
            seconds[head, frames, landmarks] = step
            print(
                f"{head:>8} {frames:>6} {landmarks:>9} {step:>7.2f} {objective / step:>9.0%} {waiting:>8.1%}",
                flush=True,
            )
        for name, of in (("landmarks", lambda n: ("blocks", 16, n)), ("frames", lambda n: ("blocks", n, 512))):
            grown = [n for n in (8, 16, 32, 256, 512, 1024, 2048) if of(n) in seconds]
            power = np.polyfit(np.log(grown), np.log([seconds[of(n)] for n in grown]), 1)[0]
            print(f"the step grows with the {name}, from {grown[0]} to {grown[-1]}, to the power of {power:.2f}")
        quadratic(make_trainer(backbone, environments, SETTINGS, Path(folder) / "run"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB, the reference included")


def random_backbone(folder: Path) -> backbones.Backbone:
    from transformers import Dinov2Config, Dinov2Model

    config = Dinov2Config(hidden_size=384, num_hidden_layers=10, num_attention_heads=6, image_size=518, patch_size=14)
    Dinov2Model(config).save_pretrained(folder)
    return backbones.load(folder, 7)


def made_up_room(backbone: backbones.Backbone, seed: int, folder: Path) -> Environment:
    """Forty frames of patches on the walls of a room of 8 × 6 × 3 m, every frame a part of it."""
    rng = np.random.default_rng(seed)
    frames, patches = 40, GRID[0] * GRID[1]
    centres = rng.uniform([1, 1, 0.5], [7, 5, 2.5], (frames, 1, 3))
    points = (centres + rng.uniform(-1.5, 1.5, (frames, patches, 3))).clip(0, [8, 6, 3])
    wall = rng.integers(3, size=(frames, patches))
    points[wall == 0, 0], points[wall == 1, 1], points[wall == 2, 2] = 0, 0, 0
    tokens = rng.standard_normal((frames, backbone.prefix + patches, backbone.dimension), np.float32)
    near = np.exp(-(np.linalg.norm(centres - centres[:, 0], axis=-1) ** 2) / 4)
    points = points.reshape(frames, *GRID, 3).astype(np.float32)
    names = [str(i) for i in range(frames)]
    file = folder / f"room-{seed}.npy"
    np.save(file, tokens.astype(np.float16))
    kept = np.load(file, mmap_mode="r")
    cached = CachedScene(f"room-{seed}", names, GRID, backbone.prefix, kept, points, near.astype(np.float32), "")
    return Environment([cached], np.arange(frames))


def make_trainer(
    backbone: backbones.Backbone, environments: list[Environment], settings: Settings, folder: Path
) -> Trainer:
    folder.mkdir(exist_ok=True)
    model = LoCUS(backbone, head=settings.head, blocks=settings.blocks)
    return Trainer(model, environments, environments[:1], settings, folder)


def timed(trainer: Trainer, steps: int) -> tuple[float, float, float]:
    """Median seconds of a step, of the objective's forward and backward in it, and the share spent waiting."""
    spent: list[float] = []
    objective = trainer.objective

    def measured(features: torch.Tensor, *rest: object) -> torch.Tensor:
        """The objective on its own copy of the features, so that its backward can be timed apart."""
        apart = features.detach().requires_grad_()
        start = time.perf_counter()
        value = objective(apart, *rest)
        (gradient,) = torch.autograd.grad(value.mean(), apart)
        spent.append(time.perf_counter() - start)
        return (features * gradient).sum().reshape(1)  # has the same gradient, at no cost

    trainer.objective = measured
    durations, waits = [], []
    run = trainer.run()
    for _ in range(steps + 2):
        start = time.perf_counter()
        waits.append(next(run).waited)
        durations.append(time.perf_counter() - start)
    run.close()
    trainer.objective = objective
    return float(np.median(durations[2:])), float(np.median(spent[2:])), float(np.mean(waits[2:]))


def quadratic(trainer: Trainer) -> None:
    """One step with the quadratic definition, with as many landmarks as it can do, beside ours with as many."""
    settings = trainer.settings
    batch = trainer.sampler.batch(0)
    for landmarks in (512, 256, 128, 64, 32, 16, 8):
        chosen = batch.landmarks[:landmarks]
        geometry = (batch.positions, batch.environments, batch.frames, chosen)
        positive, universe = retrieval_sets(*geometry, settings.radii[0], settings.kappa, settings.exclude_same_frame)
        if float(positive.sum()) * float(universe.sum()) <= REFERENCE_PAIRS:
            break
    batch, objective, times = replace(batch, landmarks=chosen), trainer.objective, {}

    def reference(features: torch.Tensor, *rest: object) -> torch.Tensor:
        return vectorized_smooth_ap_reference(features[0] @ features[0, chosen].T, positive, universe, settings.tau)

    start = {name: weight.clone() for name, weight in trainer.model.head.state_dict().items()}
    for name, trainer.objective in (("linear", objective), ("quadratic", reference)):
        trainer.model.head.load_state_dict(start)  # the same step again
        began = time.perf_counter()
        loss = trainer._learn(batch)
        times[name] = time.perf_counter() - began
        print(f"{name}: {len(chosen)} landmarks, value {1 - loss:.5f}, {times[name]:.2f} s a step")
    print(f"a step with the quadratic reference takes {times['quadratic'] / times['linear']:.0f} × as long")


if __name__ == "__main__":
    main()
