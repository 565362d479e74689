"""A whole run, from scenes to a trained model in a folder; run again, it goes on where it stopped."""

import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tensorboardX import SummaryWriter

from locus import backbones
from locus.features.cache import check_room, scene_fingerprint
from locus.model import LoCUS, this_device
from locus.scenes.collection import find_scenes, open_scenes
from locus.scenes.load import AS_STATED, SceneReading
from locus.training.batches import Environment
from locus.training.checkpoints import CURVES, METRICS, begin, last_state, provenance, read_metrics
from locus.training.curve_picture import draw_curves
from locus.training.loop import Trainer
from locus.training.places import environments, estimate, split_by_space
from locus.training.processes import Processes
from locus.training.settings import Settings, TrainingError
from locus.training.watch import Watcher


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    folder: Path
    metrics: list[dict[str, Any]]
    finished: bool

    @property
    def best(self) -> dict[str, Any]:
        return max(self.metrics, key=lambda row: row["unseen"]["cross-view"])


def train(
    scenes: Sequence[str | Path],
    out: str | Path,
    settings: Settings,
    *,
    val: Sequence[str | Path] = (),
    cache: Path | None = None,
    reading: SceneReading = AS_STATED,
    progress: bool = False,
) -> Summary:
    """Train on scenes, validate on others, and leave a model in `out` that `LoCUS.from_pretrained` loads.

    Args:
        scenes: Folders of scenes, globs, or .txt files that list them; each scene is a place of its own.
        out: The run's folder. If it holds a run of these settings, that run goes on.
        val: Places never trained on. With one scene and none to validate on, a part of that scene is kept apart.
        cache: Where tokens are cached. By default in LoCUS's cache folder.
        reading: How to read the scenes.
    """
    processes = Processes.of_torchrun()
    try:
        return _train(scenes, Path(out), settings, val, cache, reading, Watcher(progress, processes.first), processes)
    finally:
        processes.close()


def _train(
    scenes: Sequence[str | Path],
    out: Path,
    settings: Settings,
    val: Sequence[str | Path],
    cache: Path | None,
    reading: SceneReading,
    watcher: Watcher,
    processes: Processes,
) -> Summary:
    train_paths, val_paths = find_scenes(scenes), find_scenes(val)
    both = {path.resolve() for path in train_paths} & {path.resolve() for path in val_paths}
    if both or not train_paths:
        what = f"{min(both)} is given to train on and to validate on" if both else "there is no scene to train on"
        raise TrainingError(f"{what}; see the scenes given, and --val")
    device = this_device()
    torch.manual_seed(settings.seed)
    backbone = backbones.load(settings.backbone, settings.layer, norm=settings.norm).to(device)
    model = LoCUS(
        backbone,
        dimension=settings.dimension,
        radii=settings.radii,
        head=settings.head,
        blocks=settings.blocks,
        resolution=settings.resolution,
    ).to(device)
    opened = open_scenes([*train_paths, *val_paths], reading)
    trained, kept = opened[: len(train_paths)], opened[len(train_paths) :]
    if settings.live:
        watcher.say(f"no cache: {len(opened)} scenes are looked at once, then read as they are drawn")
    else:
        sizes = [
            estimate(trained, backbone, settings, cache, settings.copies),
            estimate(kept, backbone, settings, cache),
        ]
        size, missing = (sum(part) for part in zip(*sizes, strict=True))
        watcher.say(f"cache: {size / 1e9:.2f} GB for {len(opened)} scenes, {missing / 1e9:.2f} GB of it to be made")
        check_room(missing, f"{len(opened)} scenes", cache)
    if not processes.first:
        processes.wait()  # until the first has filled the cache
    places = environments(trained, backbone, settings, cache, augment=True, progress=watcher.shown)
    unseen = environments(kept, backbone, settings, cache, augment=False, progress=watcher.shown)
    if processes.first:
        processes.wait()
    train_places, unseen = _split(places, unseen, watcher)
    if settings.epochs is not None:
        frames = sum(len(place.usable) for place in train_places)
        settings = replace(settings, steps=max(1, settings.epochs * frames // settings.frames))
    described = provenance(
        settings,
        model.head,
        {
            "backbone": {"name": backbone.name, "fingerprint": backbone.fingerprint},
            "scenes": {scene.name: scene_fingerprint(scene) for scene in opened},
            "unseen": [place.name for place in unseen],
        },
    )
    if processes.first:
        begin(out, described)
    processes.wait()
    trainer = Trainer(model, train_places, unseen, settings, out, processes)
    trainer.start(last_state(out))
    watcher.estimate(trainer)
    return _run(trainer, out, watcher)


def _split(
    places: list[Environment], unseen: list[Environment], watcher: Watcher
) -> tuple[list[Environment], list[Environment]]:
    if unseen:
        return places, unseen
    if len(places) > 1:
        raise TrainingError("name the scenes to validate on with --val; none of them is trained on")
    part, kept = split_by_space(places[0])
    watcher.say(
        f"one scene: a quarter of it, at one end, is kept for validation ({len(kept.usable)} frames see some of it), "
        f"the rest is trained on ({len(part.usable)} frames)"
    )
    return [part], [kept]


def _run(trainer: Trainer, out: Path, watcher: Watcher) -> Summary:
    rows = read_metrics(out / METRICS)
    with watcher.bar(trainer) as advance, stop_request() as asked_to_stop:
        for step in trainer.run():
            advance(step)
            if step.metrics:
                rows.append(step.metrics)
                _show(out, rows)
            if trainer.processes.any(asked_to_stop()):
                trainer.stop()
                watcher.say(f"stopped at step {trainer.step} and saved; the same command goes on from here")
                break
    trainer.processes.wait()  # the first writes what the others read
    return Summary(out, read_metrics(out / METRICS), trainer.step >= trainer.settings.steps)


@contextmanager
def stop_request() -> Generator[Callable[[], bool], None, None]:
    """Whether Ctrl-C was pressed. The step under way is finished first; pressed again, it stops at once."""
    asked = False

    def remember(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():  # only there can signals be heard
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _show(out: Path, rows: list[dict[str, Any]]) -> None:
    """The curves as a picture and for TensorBoard."""
    draw_curves(rows, out / CURVES)
    metrics = rows[-1]
    with SummaryWriter(str(out / "tensorboard")) as board:
        if metrics["loss"] is not None:
            board.add_scalar("loss", metrics["loss"], metrics["step"])
        for group in ("unseen", "train"):
            for pairs in ("cross-view", "all pairs"):
                board.add_scalar(f"AP {pairs}/{group}", metrics[group][pairs], metrics["step"])
