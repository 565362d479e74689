"""The command `train`."""

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from locus.commands.options import Cluster, ModelName, Reading, Shard, check_first, network, say, shard_of, some
from locus.errors import LocusError
from locus.model.shipped import DEFAULT
from locus.scenes.collection import find_scenes
from locus.scenes.load import AS_STATED


def train_from(preset: str, model: str | None = None) -> Callable[..., int]:
    """Train LoCUS features on posed RGB-D scenes."""
    from locus.training import PRESETS, Settings, beginning_with

    if preset not in PRESETS:
        raise LocusError(f"there is no preset {preset}; there are {', '.join(PRESETS)}")
    defaults = PRESETS[preset] if model is None else beginning_with(model, PRESETS[preset])

    def train(
        scenes: Annotated[tuple[str, ...], tyro.conf.Positional, some("SCENE")],
        out: Path,
        val: tuple[str, ...] = (),
        settings: Annotated[Settings, tyro.conf.arg(name="")] = defaults,
        preset: Literal["default", "paper", "official"] = preset,  # ty: ignore[invalid-parameter-default]
        cache: Path | None = None,
        shard: Shard = "0/1",
        cluster: Cluster = None,  # taken by locus.cli
        reading: Reading = AS_STATED,
    ) -> int:
        """Train LoCUS features on posed RGB-D scenes. Run again, it goes on where it stopped.

        With --shard it only caches the tokens of one part of the frames; the same command without it then trains.

        Args:
            scenes: Folders of scenes, globs, or .txt files that list folders; each scene is an environment of its own.
            out: The run's folder: model, checkpoints, metrics, curves.png.
            val: Scenes that choose the checkpoint, not trained on. With one scene and none, a part of it is kept apart.
            preset: The settings to start from: the best tried so far, the paper's, or the authors' code's.
            cache: Where the frozen backbone's tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE.
        """
        number, of = shard_of(shard)
        check_first(folders=[None if of > 1 else out, cache])
        find_scenes((*scenes, *val))
        from locus.features.ranks import share
        from locus.training import train as train_model
        from locus.training.run import cache_shard

        if of > 1:
            how = {"val": val, "cache": cache, "reading": reading, "progress": True}
            say(f"{cache_shard(scenes, settings, (number, of), **how)} frames of part {shard} are in the cache")
            return 0
        summary = train_model(scenes, out, settings, val=val, cache=cache, reading=reading, progress=True)
        if share()[0]:  # the first of several processes speaks for all
            return 0 if summary.finished else 130
        best, first = summary.best, summary.metrics[0]
        table = Table("cross-view AP on validation scenes", "", box=None, padding=(0, 2, 0, 0))
        for name, measured in first["baselines"].items():
            table.add_row(f"untrained backbone, {name.replace('pca', 'PCA')}", f"{measured['cross-view']:.3f}")
        table.add_row(f"trained, step {best['step']}", f"[bold]{best['validation']['cross-view']:.3f}[/bold]")
        table.add_row("the same, on training scenes", f"{best['train']['cross-view']:.3f}")
        Console().print(table)
        curves = out / "curves.png"
        where = f"  Curves: {curves}" if curves.is_file() else ""  # none before the first validation
        say(f"Model: {out}{where}")
        return 0 if summary.finished else 130

    return train


def defaults_of(words: Sequence[str]) -> tuple[str, str | None]:
    """What the defaults depend on: the preset, and the model to begin with, that a command line names."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", nargs="?", default="default", const="")
    parser.add_argument("--from", nargs="?", dest="model")
    told = parser.parse_known_args(words)[0]
    return told.preset, told.model


def train_glue(
    scenes: Annotated[tuple[str, ...], tyro.conf.Positional, some("SCENE")],
    out: Path,
    model: ModelName = DEFAULT,
    steps: int = 1800,
    seed: int = 0,
    reading: Reading = AS_STATED,
) -> int:
    """Train the matcher of keypoints that know places.

    It begins with the published weights of LighterGlue, and learns from pairs of frames with depth. The one that comes
    with LoCUS serves every model; train your own for cameras or places that are unlike houses (docs/keypoints.md).

    Args:
        scenes: Folders of scenes, globs, or .txt files that list folders.
        out: The weights to write, .safetensors.
        steps: Optimiser steps, of two pairs of frames each.
        seed: Same seed, same machine, same result.
    """
    if out.suffix != ".safetensors":
        raise LocusError(f"{out}: the weights are written as .safetensors")
    check_first(out, model=model)
    opened = [reading.load(folder) for folder in find_scenes(scenes)]
    from locus.training.glue_run import GlueSettings
    from locus.training.glue_run import train_glue as train_matcher

    summary = train_matcher(opened, network(model, None), out, GlueSettings(steps, seed=seed), progress=True)
    (before, after), (rose, to) = summary.loss, summary.found
    say(f"loss {before:.2f} → {after:.2f}; true matches named first {rose:.0%} → {to:.0%}", f"Wrote {out}")
    return 0
