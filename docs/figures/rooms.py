"""The rooms of the package and which of them each one uses, as the table in CONTRIBUTING.md.

    python docs/figures/rooms.py            # print it
    python docs/figures/rooms.py --write    # put it into CONTRIBUTING.md

Rooms stand in the order of the import contract in pyproject.toml: each may use those below it. What they use is read
from the imports themselves.
"""

import ast
import re
import sys
from pathlib import Path

import grimp
import tomllib

ROOT = Path(__file__).parents[2]
PAGE, BEGIN, END = ROOT / "CONTRIBUTING.md", "<!-- rooms: begin -->\n", "<!-- rooms: end -->"


def rooms() -> list[str]:
    """The package's modules and packages, from the command line down to the errors."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [room for layer in contracts[0]["layers"] for room in layer.split(" | ")]


def purpose(room: str) -> str:
    """The first sentence of a room's docstring."""
    home = ROOT / "src" / "locus" / room
    file = home / "__init__.py" if home.is_dir() else home.with_suffix(".py")
    words = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\. ", words)[0].removesuffix(".")


def table() -> str:
    graph = grimp.build_graph("locus", exclude_type_checking_imports=True, cache_dir=None)
    order = rooms()
    for room in order:
        if (ROOT / "src" / "locus" / room).is_dir():
            graph.squash_module(f"locus.{room}")
    lines = ["| room | what it is for | uses |", "|---|---|---|"]
    for room in order:
        used = {name.split(".")[1] for name in graph.find_modules_directly_imported_by(f"locus.{room}") if "." in name}
        names = [other for other in order if other in used - {room, "errors", "lazy"}]
        lines.append(f"| `{room}` | {purpose(room)} | {', '.join(names)} |")
    return "\n".join(lines) + "\n"


def page_with(content: str) -> str:
    """CONTRIBUTING.md with this table in its place."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}{content}{END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page_with(table()), encoding="utf-8")
    else:
        print(table(), end="")
