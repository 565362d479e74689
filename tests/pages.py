"""The README and the docs as tests look at them: pages, and the blocks of code in them."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT).as_posix()


def python_blocks(page: Path) -> list[str]:
    return [text for kind, text in FENCED.findall(page.read_text(encoding="utf-8")) if kind == "python"]


def indented_blocks(page: Path) -> list[str]:
    """Blocks of code without a fence: commands, folders, formulas."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return ["\n".join(lines) for lines in _runs(text.splitlines())]


def _runs(lines: list[str]) -> Iterator[list[str]]:
    for code, group in itertools.groupby(lines, lambda line: line.startswith("    ")):
        if code:
            yield [line.strip() for line in group]
