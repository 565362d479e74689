"""The `locus` command: one verb per job, nothing but wiring."""

import inspect as introspection
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import tyro
from rich.console import Console
from rich.markup import escape

from locus import __version__
from locus.commands.align import align
from locus.commands.cache import cache
from locus.commands.check import check
from locus.commands.demo import demo
from locus.commands.features import export, extract
from locus.commands.index import index
from locus.commands.maps import localize, map_scenes, retrieve
from locus.commands.match import match
from locus.commands.regions import cosegment, find
from locus.commands.scenes import convert, depth, houses, inspect, render
from locus.commands.segment import segment
from locus.commands.serve import serve
from locus.commands.train import preset_of, train_from, train_glue
from locus.commands.view import view
from locus.commands.weights import weights
from locus.errors import LocusError


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
        "index": index,
        "localize": localize,
        "retrieve": retrieve,
        "view": view,
        "serve": serve,
    },
    "Images": {"extract": extract, "match": match, "cosegment": cosegment, "find": find, "segment": segment},
}
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence for whatever the user can put right."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"locus {__version__}")
        return 0
    if words[:1] in ([], ["-h"], ["--help"]):
        print(summary())
        return 0 if words else 2
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was begun is tidied up
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # ty: ignore[invalid-assignment]
            commands = dict(COMMANDS)
            if words[:1] == ["train"]:  # its defaults depend on the preset, and importing it takes seconds
                commands["train"] = train_from(preset_of(words))
            if words[:1] == ["eval"]:
                commands["eval"] = evaluate_tasks()
            return tyro.extras.subcommand_cli_from_dict(commands, prog="locus", args=words)
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, LocusError):
            return _fail(str(error))
        if isinstance(error, OSError):
            return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return _fail(f"this is a bug, please report it with what --debug adds: {type(error).__name__}: {error}")


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
