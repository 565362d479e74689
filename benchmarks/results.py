"""Make the figures of the pages: run the commands of docs/results/recipes.toml, keep what they print, fill the pages.

    python benchmarks/results.py [NAME...] [--folder results] [--data FOLDER]    # run, keep, fill; no NAME means all
    python benchmarks/results.py --fill                                          # only put kept figures into the pages

Commands run in --folder, where houses are generated first and the recordings of --data (by default $LOCUS_DATA) are
linked; a recipe whose recordings are not there is left as it was, and named. Results are kept in
docs/results/results.json after every command, each with its command, commit, machine and duration, so that a run that
was stopped loses one command at most. What a new run changed is printed, figure by figure.
"""

import argparse
import fnmatch
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import tomllib
import torch

from locus.evaluation.table import Cell, Column, Row, Table, rendered
from locus.files import write_json

ROOT = Path(__file__).parents[1]
RECIPES, RESULTS = ROOT / "docs/results/recipes.toml", ROOT / "docs/results/results.json"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACE = re.compile(r"(<!-- result: ([\w-]+) -->\n).*?(<!-- result: end -->)", re.DOTALL)

Result = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="recipes, or patterns of them")
    parser.add_argument("--folder", type=Path, default=ROOT / "results")
    parser.add_argument("--data", type=Path, default=os.environ.get("LOCUS_DATA"))
    parser.add_argument("--fill", action="store_true")
    told = parser.parse_args()
    missing = [] if told.fill else run_all(told.names or ["*"], told.folder, told.data)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text, recipes(), kept())) != text:
            page.write_text(new, encoding="utf-8")
            print(f"filled {page.relative_to(ROOT)}")
    for name, why in missing:
        print(f"left as it was: {name}: {why}", file=sys.stderr)
    return 1 if missing else 0


def recipes() -> dict[str, Result]:
    """By name; one with `of` shows another part of that recipe's result."""
    return tomllib.loads(RECIPES.read_text(encoding="utf-8"))["result"]


def kept() -> dict[str, Result]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}


def run_all(patterns: list[str], folder: Path, data: Path | None) -> list[tuple[str, str]]:
    """Run the recipes that match, one after the other; returns those that could not be run, each with the reason."""
    run = {name: each for name, each in recipes().items() if "of" not in each}
    chosen = {name: each for name, each in run.items() if any(fnmatch.fnmatch(name, p) for p in patterns)}
    if not chosen:
        raise SystemExit(f"no recipe of {RECIPES.relative_to(ROOT)} is called {' or '.join(patterns)}")
    folder.mkdir(parents=True, exist_ok=True)
    given = tomllib.loads(RECIPES.read_text(encoding="utf-8"))
    linked = [ROOT / "benchmarks", *(Path(data, name) for name in given["recordings"] if data is not None)]
    for path in linked:
        if path.is_dir() and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path.resolve())
    missing = []
    for name, recipe in chosen.items():
        for made, command in given["houses"].items():
            if f"{made}/" in recipe["command"] and not (folder / made).is_dir():
                call(command, folder)
        absent = [each for each in given["recordings"] if each in recipe["command"] and not (folder / each).exists()]
        if absent:
            missing.append((name, f"{', '.join(absent)} is not in the folder that --data or $LOCUS_DATA names"))
            continue
        try:
            result = measured(recipe["command"], folder)
        except subprocess.CalledProcessError as error:
            missing.append((name, f"its command ended with {error.returncode}"))
            continue
        print(f"{name}: {result['seconds']:.0f} s, {difference(kept().get(name), result)}", flush=True)
        write_json(RESULTS, kept() | {name: result})
    return missing


def call(command: str, folder: Path) -> str:
    """Run a command as it stands on a page, with this Python's programs; show what it prints, and return it."""
    print(f"$ {command}", flush=True)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(
        command, shell=True, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        lines = []
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return "".join(lines)


def measured(command: str, folder: Path) -> Result:
    """What a command gives: the tables of `locus eval`, or the lines that a benchmark prints."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        if command.startswith("locus eval"):
            call(f"{command} --fresh --json {place}/results.json", folder)
            told = json.loads(Path(place, "results.json").read_text(encoding="utf-8"))
            found = {"protocol": told["protocol"], "tables": told["tables"]}
        else:
            found = {"text": call(command, folder)}
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    machine = f"{os.cpu_count()} cores of {processor()}, {platform.system()}, torch {torch.__version__}"
    seconds = round(time.perf_counter() - begin)
    return {"command": command, "commit": commit.stdout.strip(), "machine": machine, "seconds": seconds, **found}


def processor() -> str:
    """The processor's name where the system tells it."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*: (.*)$", told, re.MULTILINE)
    return found[1] if found else platform.machine()


def figures(result: Result) -> list[float]:
    """Every number of a result, in order."""
    cells = [cell for table in result.get("tables", ()) for row in table["rows"] for cell in row["cells"]]
    return [value for value in map(plain, cells) if isinstance(value, int | float) and math.isfinite(value)]


def difference(old: Result | None, new: Result) -> str:
    if old is None or "tables" not in new:
        return "kept"
    before, after = figures(old), figures(new)
    if old["command"] != new["command"] or len(before) != len(after):
        return "another command than before"
    apart = [abs(a - b) for a, b in zip(before, after, strict=True)]
    return f"{sum(d > 0 for d in apart)} of {len(apart)} figures changed, by at most {max(apart, default=0):.3g}"


def filled(text: str, recipes: dict[str, Result], results: dict[str, Result]) -> str:
    """A page with what is kept put between its marks."""

    def put(match: re.Match[str]) -> str:
        recipe = recipes[match[2]]
        result = results.get(recipe.get("of", match[2]))
        return f"{match[1]}{shown(recipe, result) if result else ''}{match[3]}"

    return PLACE.sub(put, text)


def shown(recipe: Result, result: Result) -> str:
    """The command, and its tables as the recipe wants them, or its lines."""
    command = "    " + re.sub(r"\\\n\s*", r"\\\n        ", result["command"].strip()) + "\n"
    if "text" in result:
        return f"{command}\n```text\n{result['text'].strip()}\n```\n"
    wanted = recipe.get("tables", [""])
    told = [table for title in wanted for table in result["tables"] if re.match(title, table["title"])]
    return "\n".join([command, *(f"{rendered(table_of(table, recipe), 'markdown')}\n" for table in told)])


def table_of(told: Result, recipe: Result) -> Table:
    """A kept table, with the columns and rows that the recipe wants."""
    picked = [at for at, name in enumerate(told["columns"]) if re.search(recipe.get("columns", ""), name)]
    columns = [Column(told["columns"][at], told["digits"][at], told["better"][at]) for at in picked]
    rows, widths = [], []
    for row in told["rows"]:
        cells = [row["cells"][at] for at in picked if at < len(row["cells"])]
        if re.search(recipe.get("rows", ""), row["label"]):
            rows.append(Row(row["label"], [plain(cell) for cell in cells], row["kind"]))
            ends = [(cell.get("low"), cell.get("high")) for cell in cells if isinstance(cell, dict)]
            widths += [(high - low) / 2 for low, high in ends if low is not None and high is not None and high <= 1]
    notes = [f"95 % intervals of shares: ± {np.median(widths):.2f} (median of the table)."] if widths else []
    return Table(told["title"], columns, rows, notes)


def plain(cell: Cell | dict[str, float | None]) -> Cell:
    """A cell without its interval; JSON cannot say that a value is infinite."""
    if not isinstance(cell, dict):
        return cell
    return math.inf if cell["value"] is None else cell["value"]


if __name__ == "__main__":
    raise SystemExit(main())
