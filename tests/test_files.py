"""Files that are there whole or not at all, have one writer, and are told apart by content."""

import ast
import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import locus
from locus.errors import LocusError
from locus.features.feature_file import FeatureFile, Header
from locus.files import atomic, atomic_folder, clear_leftovers, content_hash, lock, temporary_name
from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from locus.opening import read
from locus.training.checkpoints import load_state

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
    with pytest.raises(LocusError, match=r"it\.onnx is a folder"), atomic(tmp_path / "it.onnx"):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["it.onnx"]


def test_leftovers_are_those_of_processes_that_are_gone_and_nothing_else(tmp_path):
    others = [
        "it.bin",
        ".it.lock",
        ".it.bin.abcdefgh",
        ".it.bin.0123abcd",
        ".it.bin.0123abcd.partial",
        "it.bin.0123abcd.locus-partial",
    ]
    left = [
        ".it.bin.0123abcd.locus-partial",
        "..it.bin.0123abcd.locus-partial.locus-lock",
        "..new.89abcdef.locus-partial.locus-lock",
        ".done.locus-lock",
    ]
    for name in [*others, *left]:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (2**33, 2**33))  # whatever the clock says, which may have been set back
    (tmp_path / ".scene.89abcdef.locus-partial" / "images").mkdir(parents=True)
    with temporary_name(tmp_path / "another") as alive:
        alive.touch()
        clear_leftovers(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {*others, alive.name, f".{alive.name}.locus-lock"}
    clear_leftovers(tmp_path / "nowhere")
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
    with pytest.raises(LocusError, match=r"another process is writing .*it\.h5"), lock(path):
        pass
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


def test_a_name_that_no_file_can_have_counts_as_no_file(tmp_path):
    assert content_hash(tmp_path / "a\0b") == content_hash(tmp_path / "nowhere")


def test_content_counts_where_size_and_time_stay_the_same(tmp_path):
    file = tmp_path / "image.png"
    file.write_bytes(b"one")
    state, before = file.stat(), content_hash(file)
    (tmp_path / "other").write_bytes(b"two")
    (tmp_path / "other").replace(file)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert content_hash(file) != before


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_and_folders_have_the_rights_that_the_umask_leaves(tmp_path, mask):
    before = os.umask(mask)
    try:
        with atomic(tmp_path / "file") as file:
            file.write_text("")
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "one").write_text("")
    finally:
        os.umask(before)
    rights = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "file", tmp_path / "folder")}
    assert rights == {"file": 0o666 & ~mask, "folder": 0o777 & ~mask}


def test_the_umask_of_the_process_is_not_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("another thread would write with this one"))
    with atomic(tmp_path / "file") as file:
        file.write_text("written")
    assert (tmp_path / "file").read_text() == "written"


def test_what_cannot_be_written_is_named_as_the_user_named_it(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a file").touch()
    with (
        pytest.raises(LocusError, match=r"it\.json cannot be written: .*a file"),
        atomic(tmp_path / "a file" / "it.json"),
    ):
        pass
    monkeypatch.setattr(os, "fsync", full)
    for write in (atomic, atomic_folder):
        with (
            pytest.raises(LocusError, match=r"it\.json cannot be written: No space left"),
            write(tmp_path / "it.json") as new,
        ):
            assert new.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"a file"}


def test_a_pipe_and_a_file_too_large_are_refused_before_they_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LocusError, match="is a pipe or a device"):
        read(tmp_path / "pipe")
    with pytest.raises(LocusError, match="is a folder"):
        read(tmp_path)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(LocusError, match=r"has 1099512 MB"):
        read(tmp_path / "large")


@pytest.mark.parametrize(
    "name", ["map/map.safetensors", "model/config.json", "model/model.safetensors", "last.pt", "f.h5"]
)
def test_a_pipe_in_a_files_place_is_one_sentence_and_does_not_hang(tmp_path, name):
    load = {
        "map": lambda: LandmarkMap.load(tmp_path / "map"),
        "model": lambda: LoCUS.from_pretrained(tmp_path / "model"),
        "last.pt": lambda: load_state(tmp_path / "last.pt"),
        "f.h5": lambda: FeatureFile(tmp_path / "f.h5", Header("a model", "1", (0.2,), "dense", 0)),
    }[name.split("/")[0]]
    LoCUS("classic", head="linear", dimension=8).save_pretrained(tmp_path / "model")
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(LocusError, match="is a pipe or a device"):
        load()


def test_a_pipe_in_a_journals_place_is_one_sentence(tmp_path):
    header = Header("a model", "1", (0.2,), "dense", 0)
    FeatureFile(tmp_path / "f.h5", header).__exit__()
    os.mkfifo(tmp_path / "f.h5.journal")
    with pytest.raises(LocusError, match="is a pipe or a device"):
        FeatureFile(tmp_path / "f.h5", header)
