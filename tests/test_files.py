"""Files that are there whole or not at all, have one writer, and are told apart by content."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from filelock import Timeout

import locus
from locus.files import atomic, clear_leftovers, content_hash, lock

UNIX_ONLY = {"fcntl", "grp", "pwd", "resource", "termios"}
HOLDER = """
import sys
from pathlib import Path
from locus.files import lock

with lock(Path(sys.argv[1])):
    print("held", flush=True)
    input()
"""


def test_a_folder_in_a_files_place_is_named_before_anything_is_written(tmp_path):
    (tmp_path / "it.onnx").mkdir()
    with pytest.raises(IsADirectoryError) as error, atomic(tmp_path / "it.onnx"):
        pass
    assert error.value.filename == str(tmp_path / "it.onnx")
    assert [path.name for path in tmp_path.rglob("*")] == ["it.onnx"]


def test_leftovers_are_those_of_the_file_and_of_nothing_else(tmp_path):
    others = ["it[1].bin", ".it1.bin.abcdefgh", ".it[1].bin.mine", ".it[1].bin.abcdefgh.txt", "it[1].bin.abcdefgh"]
    for name in [*others, ".it[1].bin.abcdefgh", ".it[1].bin.0_zz9876"]:
        (tmp_path / name).touch()
    clear_leftovers([tmp_path / "it[1].bin", tmp_path / "nowhere" / "else"])
    assert {path.name for path in tmp_path.iterdir()} == set(others)


def test_nothing_needs_what_only_unix_has():
    sources = list(Path(locus.__file__).parent.rglob("*.py"))
    assert len(sources) > 100
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {*names, getattr(node, "module", None)} & UNIX_ONLY, source


def test_a_lock_keeps_other_processes_out_until_its_process_is_gone(tmp_path):
    path = tmp_path / "new" / "it.h5"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Timeout):
        lock(path).acquire(timeout=0)
    holder.kill()
    holder.communicate()
    with lock(path):
        pass


def test_content_counts_and_not_where_it_is(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"1")
    assert content_hash(tmp_path / "a") == content_hash(tmp_path / "b") != content_hash(tmp_path / "none")
    before = content_hash(tmp_path / "a")
    os.utime(tmp_path / "a", ns=(1, 1))
    assert content_hash(tmp_path / "a") == before
    (tmp_path / "a").write_bytes(b"2")
    assert content_hash(tmp_path / "a") != before
    rows = np.arange(6.0).reshape(2, 3)
    assert content_hash(rows) == content_hash(np.asfortranarray(rows)) != content_hash(rows.T)
    assert content_hash(rows) != content_hash(rows.astype(np.float32))
    assert content_hash("a", "bc") != content_hash("ab", "c")
