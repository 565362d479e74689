"""The `locus` command: one verb per job, nothing but wiring."""

import difflib
import inspect as introspection
import os
import signal
import sys
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
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 2 and one sentence for whatever the user can put right."""
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
    if verb not in COMMANDS:
        close = difflib.get_close_matches(verb, COMMANDS, 1)
        meant = f"did you mean {close[0]}?" if close else "`locus --help` lists them"
        raise LocusError(f"there is no command {verb}; {meant}")
    command = COMMANDS[verb]
    if verb == "train":
        command = train_from(*defaults_of(given))
    if verb == "eval":
        command = evaluate_tasks()
    call = parsed(command, f"locus {verb}", given)
    if (address := call.keywords.get("cluster")) is not None:
        spread(main, [verb, *without(given, "--cluster")], address)
    return call()  # after a cluster: what is left to do when all parts are done


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
