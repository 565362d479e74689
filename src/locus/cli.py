"""The `locus` command: one verb per job, nothing but wiring."""

import difflib
import gc
import inspect as introspection
import os
import signal
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from locus import __version__
from locus.commands.align import align
from locus.commands.cache import cache
from locus.commands.changes import changes
from locus.commands.check import check
from locus.commands.cluster import spread, without
from locus.commands.demo import demo
from locus.commands.features import export, extract
from locus.commands.index import index
from locus.commands.maps import localize, map_scenes, retrieve
from locus.commands.match import match
from locus.commands.parsing import parsed
from locus.commands.regions import cosegment, find
from locus.commands.scenes import convert, depth, houses, inspect, render
from locus.commands.segment import segment
from locus.commands.serve import serve
from locus.commands.train import defaults_of, train_from, train_glue
from locus.commands.view import view
from locus.commands.weights import weights
from locus.errors import LocusError
from locus.files import cache_advice

TASKS = {
    "retrieval": "Does a landmark's feature find the patches that show the same spot?",
    "correspondence": "Does the most similar patch of another view lie where the spot is?",
    "pose": "How well is the motion between two frames found?",
    "segmentation": "How well do a linear probe's labels fit?",
    "localization": "Where were the frames taken that a map was not made from?",
    "landmarks": "Are landmarks found again in views that took no part in choosing them?",
    "regions": "Is a spot, or a marked thing, found in other views?",
    "objects": "Are the things of a scene found as such?",
    "reuse": "Does a landmark's embedding serve in other environments too?",
    "yardstick": "All that a model is chosen by, with fixed settings.",
    "ablate": "Train a grid of settings and evaluate each on the same unseen scenes.",
    "protocol": "Measure by a published protocol, on data that you have downloaded.",
    "paper": "Make the paper's three tables in its own protocol, from Matterport3D.",
}


def evaluate_tasks() -> Callable[..., int]:
    """Make the paper's tables, for any methods, on any posed data."""
    # What a benchmark can be told is part of it, and importing those takes seconds.
    from locus.commands.benchmarks import evaluate

    return evaluate


GROUPS: dict[str, dict[str, Callable[..., Any]]] = {
    "Begin": {"demo": demo},
    "Data": {
        "inspect": inspect,
        "convert": convert,
        "depth": depth,
        "houses": houses,
        "render": render,
        "check": check,
    },
    "Models": {
        "train": train_from,
        "train-glue": train_glue,
        "eval": evaluate_tasks,
        "weights": weights,
        "cache": cache,
        "export": export,
    },
    "Maps": {
        "map": map_scenes,
        "align": align,
        "changes": changes,
        "index": index,
        "localize": localize,
        "retrieve": retrieve,
        "view": view,
        "serve": serve,
    },
    "Images": {"extract": extract, "match": match, "cosegment": cosegment, "find": find, "segment": segment},
}
GARBAGE = 50_000  # objects between two searches for cycles; Python's 700 take a sixth of the time of importing torch
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence for whatever the user can put right."""
    gc.set_threshold(GARBAGE)
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was begun is tidied up
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn  # ty: ignore[invalid-assignment]
                return _run(words)
        finally:
            sys.stdout.flush()  # a closed pipe is met here, and not when the interpreter ends
    except BrokenPipeError:  # `locus ... | head -1`: who reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, LocusError):
            return _fail(str(error))
        if isinstance(error, OSError) and error.filename:
            return _fail(f"{error.filename}: {error.strerror}{cache_advice(str(error.filename))}")
        if isinstance(error, OSError):
            return _fail(str(error))
        return _fail(f"this is a bug, please report it with what --debug adds: {type(error).__name__}: {error}")


def _run(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"locus {__version__}")
        return 0
    if words[:1] in ([], ["-h"], ["--help"]):
        print(summary())
        return 0 if words else 2
    verb, *given = words
    _known("command", verb, COMMANDS, "locus --help")
    command = COMMANDS[verb]
    if verb == "train":
        command = train_from(*defaults_of(given))
    if verb == "eval":
        if given[:1] in ([], ["-h"], ["--help"]):
            print(tasks())
            return 0 if given else 2
        _known("task", given[0], TASKS, "locus eval --help")
        command = evaluate_tasks()
    call = parsed(command, f"locus {verb}", given)
    if (address := call.keywords.get("cluster")) is not None:
        spread(main, [verb, *without(given, "--cluster")], address)
    return call()  # after a cluster: what is left to do when all parts are done


def _known(kind: str, word: str, known: dict[str, Any], listing: str) -> None:
    if word not in known:
        close = difflib.get_close_matches(word, known, 1)
        meant = f"did you mean {close[0]}?" if close else f"`{listing}` lists them"
        raise LocusError(f"there is no {kind} {word}; {meant}")


def tasks() -> str:
    """What `locus eval --help` prints: every task in one line, without the seconds that importing them takes."""
    lines = ["usage: locus eval TASK ...", "", "Make the paper's tables, for any methods, on any posed data.", ""]
    lines += [textwrap.fill(f"  {name:<15} {what}", 79, subsequent_indent=" " * 18) for name, what in TASKS.items()]
    lines += ["", "Finished parts are kept and skipped when the command is run again. Exits with 1"]
    return "\n".join([*lines, "if a scene could not be measured. `locus eval TASK --help` explains a task."])


def summary() -> str:
    """What `locus --help` prints: every command in one line."""
    lines = ["usage: locus COMMAND ...", "", "LoCUS: features that know places.", ""]
    for title, commands in GROUPS.items():
        lines.append(f"{title}:")
        for name, command in commands.items():
            lines.append(f"  {name:<10} {(introspection.getdoc(command) or '').splitlines()[0]}")
        lines.append("")
    lines += ["`locus COMMAND --help` explains a command. `locus --version` is the version."]
    return "\n".join([*lines, "--debug, added to any command, shows where in the code an error came from."])


def _warn(message: Warning | str, *where: object) -> None:
    _fail(f"warning: {message}")


def _fail(sentence: str, code: int = 2) -> int:
    Console(stderr=True, soft_wrap=True).print(f"[red]locus:[/red] {escape(sentence)}", highlight=False)
    return code
