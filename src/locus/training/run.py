"""A whole run, from scenes to a trained model in a folder; run again, it goes on where it stopped."""

import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tensorboardX import SummaryWriter
from torch import Tensor

from locus import backbones
from locus.backbones import Backbone
from locus.features.cache import check_room, fill_cache
from locus.files import lock
from locus.model import LoCUS, this_device
from locus.scenes import Scene
from locus.scenes.collection import find_scenes, open_scenes
from locus.scenes.fingerprint import scene_fingerprint
from locus.scenes.load import AS_STATED, SceneReading
from locus.training.checkpoints import CURVES, METRICS, SETTINGS, begin, last_state, provenance, read_metrics
from locus.training.curve_picture import draw_curves
from locus.training.environments import Environment, estimate, open_environments, split_by_space
from locus.training.loop import Trainer
from locus.training.processes import Processes
from locus.training.settings import SHAPE, Settings, TrainingError
from locus.training.watch import Watcher


@dataclass(frozen=True)
class RunSummary:
    """How a run ended."""

    folder: Path
    metrics: list[dict[str, Any]]
    """A row for each validation."""
    finished: bool

    @property
    def best(self) -> dict[str, Any]:
        """The validation of the model that was kept."""
        return max(self.metrics, key=lambda row: row["validation"]["cross-view"])


def train(
    scenes: Sequence[str | Path],
    out: str | Path,
    settings: Settings,
    *,
    val: Sequence[str | Path] = (),
    cache: Path | None = None,
    reading: SceneReading = AS_STATED,
    progress: bool = False,
) -> RunSummary:
    """Train on scenes, validate on others, and leave a model in `out` that `LoCUS.from_pretrained` loads.

    `scenes` and `val` are folders of scenes, globs, or .txt files that list them; each scene is an environment of its
    own. Those of `val` choose the checkpoint and are never trained on; with one scene and no `val`, a part of that one
    is kept apart. If `out` holds a run of these settings, that run goes on. Tokens are cached in `cache`, by default in
    LoCUS's cache folder. `progress` shows on standard error what happens.
    """
    processes = Processes.of_torchrun()
    watcher = Watcher(progress, processes.first)
    alone = ExitStack()  # the only process that writes to the folder
    try:
        if processes.first:
            alone.enter_context(lock(Path(out) / SETTINGS))
        trained, kept = _opened(scenes, val, reading)
        model = _model(settings)
        train_on, validate_on = _environments(trained, kept, model.backbone, settings, cache, watcher, processes)
        if settings.epochs is not None:
            frames = sum(len(environment.usable) for environment in train_on)
            settings = replace(settings, steps=max(1, settings.epochs * frames // settings.frames_per_batch))
        sources = {
            "backbone": {"name": model.backbone.name, "fingerprint": model.backbone.fingerprint},
            "scenes": {scene.name: scene_fingerprint(scene) for scene in [*trained, *kept]},
            "validation": [environment.name for environment in validate_on],
        }
        if processes.first:
            begin(Path(out), provenance(settings, model.head, sources))
        processes.wait()
        trainer = Trainer(model, train_on, validate_on, settings, Path(out), processes)
        state = last_state(Path(out))
        trainer.start(state, _learned(settings, model) if state is None else None)
        watcher.estimate(trainer)
        return _run(trainer, watcher)
    finally:
        processes.close()
        alone.close()


def cache_shard(
    scenes: Sequence[str | Path],
    settings: Settings,
    shard: tuple[int, int],
    *,
    val: Sequence[str | Path] = (),
    cache: Path | None = None,
    reading: SceneReading = AS_STATED,
    progress: bool = False,
) -> int:
    """Cache the tokens of part (i, n) of the frames that `train` will need, and do not train; the number of frames."""
    trained, kept = _opened(scenes, val, reading)
    backbone = _model(settings).backbone
    return sum(
        fill_cache(some, backbone, settings.resolution, shard, copies=copies, folder=cache, progress=progress)
        for some, copies in ((trained, settings.copies), (kept, 0))
    )


def _opened(
    scenes: Sequence[str | Path], val: Sequence[str | Path], reading: SceneReading
) -> tuple[list[Scene], list[Scene]]:
    """The scenes to train on and those to validate on; none may be both."""
    train_paths, val_paths = find_scenes(scenes), find_scenes(val)
    both = {path.resolve() for path in train_paths} & {path.resolve() for path in val_paths}
    if both or not train_paths:
        what = f"{min(both)} is given to train on and to validate on" if both else "there is no scene to train on"
        raise TrainingError(f"{what}; see the scenes given, and --val")
    opened = open_scenes([*train_paths, *val_paths], reading)
    return opened[: len(train_paths)], opened[len(train_paths) :]


def _model(settings: Settings) -> LoCUS:
    """The model before training."""
    torch.manual_seed(settings.seed)
    device = this_device()
    return LoCUS(
        backbones.load(settings.backbone, settings.layer, norm=settings.norm).to(device),
        dimension=settings.dimension,
        radii=settings.radii,
        head=settings.head,
        blocks=settings.blocks,
        resolution=settings.resolution,
        kappa=settings.kappa,
        tau=settings.tau,
    ).to(device)


def _learned(settings: Settings, model: LoCUS) -> dict[str, Tensor] | None:
    """What the model that is to be trained further has learned, if there is one; it must be of the same shape."""
    if settings.start_from is None:
        return None
    before = LoCUS.from_pretrained(settings.start_from)
    told, own = before.config, model.config
    for name in SHAPE:
        same = "backbone_fingerprint" if name == "backbone" else name
        if told[same] != own[same]:
            raise TrainingError(
                f"{settings.start_from} has the {name} {told[name]}, and this run {own[name]}; leave --{name} out to "
                "train the model further as it is"
            )
    return before.head.state_dict()


def _environments(
    trained: list[Scene],
    kept: list[Scene],
    backbone: Backbone,
    settings: Settings,
    cache: Path | None,
    watcher: Watcher,
    processes: Processes,
) -> tuple[list[Environment], list[Environment]]:
    """Those to train on and those to validate on, their tokens cached by the first process for all."""
    sizes = [estimate(trained, backbone, settings, cache, settings.copies), estimate(kept, backbone, settings, cache)]
    size, missing = (sum(part) for part in zip(*sizes, strict=True))
    what = f"{len(trained) + len(kept)} scenes"
    watcher.say(f"cache: {size / 1e9:.2f} GB for {what}, {missing / 1e9:.2f} GB of it to be made")
    check_room(missing, what, cache)
    if not processes.first:
        processes.wait()
    shown = watcher.shown
    train_on = open_environments(trained, backbone, settings, cache, copies=settings.copies, progress=shown)
    validate_on = open_environments(kept, backbone, settings, cache, progress=shown)
    if processes.first:
        processes.wait()
    if validate_on:
        return train_on, validate_on
    if len(train_on) > 1:
        raise TrainingError("name the scenes to validate on with --val; none of them is trained on")
    part, beyond = split_by_space(train_on[0])
    watcher.say(
        f"one scene: a quarter of it, at one end, is kept for validation ({len(beyond.usable)} frames see some of it), "
        f"the rest is trained on ({len(part.usable)} frames)"
    )
    return [part], [beyond]


def _run(trainer: Trainer, watcher: Watcher) -> RunSummary:
    out = trainer.folder
    rows = read_metrics(out / METRICS)
    if rows and trainer.processes.first:  # those of a run that was killed before it drew them
        draw_curves(rows, out / CURVES)
    with watcher.bar(trainer) as advance, stop_request() as asked_to_stop:
        for step in trainer.run():
            advance(step)
            if step.metrics:
                rows.append(step.metrics)
                _show(out, rows)
            if trainer.processes.any(asked_to_stop()):
                trainer.checkpoint()
                watcher.say(f"stopped at step {trainer.step} and saved; the same command goes on from here")
                break
    trainer.processes.wait()  # the first writes what the others read
    return RunSummary(out, read_metrics(out / METRICS), trainer.step >= trainer.settings.steps)


@contextmanager
def stop_request() -> Generator[Callable[[], bool], None, None]:
    """Whether Ctrl-C was pressed, or SIGTERM came. The step under way is finished first; a second one stops at once."""
    asked = False

    def remember(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():  # only there can signals be heard
        yield lambda: False
        return
    before = {each: signal.signal(each, remember) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _show(out: Path, rows: list[dict[str, Any]]) -> None:
    """The curves as a picture and for TensorBoard."""
    draw_curves(rows, out / CURVES)
    metrics = rows[-1]
    with SummaryWriter(str(out / "tensorboard")) as board:
        if metrics["loss"] is not None:
            board.add_scalar("loss", metrics["loss"], metrics["step"])
        for group in ("validation", "train"):
            for pairs in ("cross-view", "all pairs"):
                board.add_scalar(f"AP {pairs}/{group}", metrics[group][pairs], metrics["step"])
