"""The house is in order: public names, names that are used once, files that are short, the table of rooms."""

import ast
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import locus
from tests.pages import ROOT

SOURCE = ROOT / "src" / "locus"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = 300

PUBLIC = """
Camera Frame LandmarkMap LoCUS Scene backbones errors evaluation extract features houses keypoints landmarks load_scene
model objective render scenes tasks training
"""


def test_the_public_names_are_these_and_every_one_is_there():
    assert sorted(locus.__all__) == sorted(PUBLIC.split())
    assert dir(locus) == locus.__all__
    for name in locus.__all__:
        assert getattr(locus, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        locus.nonsense  # noqa: B018


def test_the_names_of_a_package_are_there_without_importing_them_first():
    packages = ["evaluation", "features", "houses", "keypoints", "model", "render", "tasks"]
    code = f"""
import sys
for package in {packages}:
    for module in [name for name in sys.modules if name.split(".")[0] == "locus"]:
        del sys.modules[module]  # so that one package does not find what another has imported
    import locus
    part = getattr(locus, package)
    missing = [name for name in part.__all__ if not hasattr(part, name)]
    print(package, *missing)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == packages, done.stderr


def test_importing_locus_alone_is_quick():
    code = "import sys, locus; print([name for name in ('torch', 'numpy', 'transformers') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_what_benchmarks_import_from_locus_is_there():
    """Nothing else runs them, and importing all of it would take seconds."""
    missing = []
    for file in sorted((ROOT / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "locus":
                there = names_of(ROOT / "src" / node.module.replace(".", "/"))
                missing += [f"{file.name}: {node.module}.{each.name}" for each in node.names if each.name not in there]
    assert not missing


def names_of(module):
    """What a module (a path without its ending) defines or imports, or a package contains."""
    file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    nodes = list(ast.walk(ast.parse(file.read_text())))
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias)}
    defined |= {node.id for node in nodes if isinstance(node, ast.Name)}
    return defined | {each.stem for each in module.glob("*")}


def test_no_file_is_long():
    long = {
        str(file.relative_to(SOURCE)): n for file in FILES if (n := len(file.read_text().splitlines())) > MOST_LINES
    }
    assert not long


def test_no_two_modules_share_a_name():
    """Commands are called after their verb."""
    names = Counter(file.stem for file in FILES if "commands" not in file.parts and file.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_two_classes_share_a_name():
    classes: dict[str, list[str]] = {}
    for file in FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append(str(file.relative_to(SOURCE)))
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}


def test_the_table_of_rooms_is_up_to_date():
    script = runpy.run_path(str(ROOT / "docs" / "figures" / "rooms.py"))
    page = Path(script["PAGE"]).read_text(encoding="utf-8")
    assert page == script["page_with"](script["table"]()), "run python docs/figures/rooms.py --write"
