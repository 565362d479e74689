"""From words on a command line to a call; and help that fits 79 columns."""

import functools
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from types import NoneType
from typing import Any, get_args

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

WIDTH = 79
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
RULES = ConstructorRegistry()


def parsed(command: Callable[..., int], program: str, words: Sequence[str]) -> functools.partial[int]:
    """The command with its arguments, to be called. Help, and what cannot be understood, end the program."""

    @functools.wraps(command)
    def later(*arguments: Any, **options: Any) -> functools.partial[int]:
        return functools.partial(command, *arguments, **options)

    with RULES, _narrow():
        return tyro.cli(later, prog=program, args=list(words))


@RULES.primitive_rule
def _optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """What may be None is shown as what it is if it is given, PATH and not {None}|PATH; `None` can still be typed."""
    kinds = [kind for kind in get_args(info.type) if kind is not NoneType]
    if NoneType not in get_args(info.type) or len(kinds) > 1:
        return None
    inner = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kinds[0], info.markers))
    if not isinstance(inner, PrimitiveConstructorSpec):
        return None
    return replace(
        inner,
        nargs=(1, inner.nargs) if isinstance(inner.nargs, int) and inner.nargs > 1 else inner.nargs,
        choices=None if inner.choices is None else (*inner.choices, "None"),
        instance_from_str=lambda words: None if words == ["None"] else inner.instance_from_str(words),
        is_instance=lambda value: value is None or inner.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else inner.str_from_instance(value),
    )


@contextmanager
def _narrow() -> Generator[None, None, None]:
    """Text for people is made for at most 79 columns, whatever the terminal has."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(min(WIDTH, shutil.get_terminal_size().columns))
    try:
        with redirect_stdout(_BrokenLines(sys.stdout)):  # ty: ignore[invalid-argument-type]
            yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


class _BrokenLines:
    """Standard output with long lines broken: tyro does so inside its boxes, but not above them."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        return self.stream.write("\n".join(map(_broken, text.split("\n"))))


def _broken(line: str) -> str:
    if len(COLOUR.sub("", line)) <= WIDTH:
        return line
    if "usage:" in line:
        return textwrap.fill(line.replace(",", ", "), WIDTH, subsequent_indent=" " * 7)
    return textwrap.fill(line, WIDTH)
