"""Extraction that goes on: run again, killed at any moment, shared among processes."""

import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from PIL import Image

import locus
from locus.features.feature_file import open_features
from locus.features.images import sources
from locus.features.journal import journal_of
from tests.features.extracted import check, inside, stored

pytestmark = pytest.mark.usefixtures("one_thread")
RNG = np.random.default_rng(0)

# Imports take seconds, so one process has them done and forks; it runs no network itself, which would not fork well.
SERVER = """
import os, sys, traceback
import locus.features.extraction
from locus.model import LoCUS

for line in sys.stdin:
    verb, *words = line.split()
    if verb == "wait":
        print(os.waitpid(int(words[0]), 0)[1], flush=True)
        continue
    child = os.fork()
    if child:
        print(child, flush=True)
        continue
    folder, out, os.environ["RANK"], os.environ["WORLD_SIZE"] = words
    try:
        locus.extract(folder, out, LoCUS("classic", head="identity"), batch=2)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
"""


@pytest.fixture(scope="module")
def server():
    """A question to the process that starts and waits for others, and its answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(*words):
        process.stdin.write(" ".join(map(str, words)) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait()


def grown(out, size):
    """Wait until a file is there and larger than it was."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if out.exists() and out.stat().st_size > size:
            return
        time.sleep(0.001)
    raise AssertionError(f"{out} did not grow")


def test_a_rerun_does_only_what_is_new(tmp_path, folder, model):
    out = tmp_path / "out.h5"
    locus.extract(folder / "far", out, model)
    assert locus.extract(folder / "far", out, model).written == 0
    before = out.read_bytes()
    Image.fromarray(np.zeros((50, 50, 3), np.uint8)).save(folder / "far/new.png")
    again = locus.extract(folder / "far", out, model)
    assert (again.written, again.present) == (1, 6)
    assert len(out.read_bytes()) > len(before)
    check(out, folder / "far", model)


def test_an_image_that_changed_is_done_again(folder, model, tmp_path):
    out = tmp_path / "features.h5"
    locus.extract(folder, out, model)
    changed = next(path for path in sorted(folder.rglob("*.png")))
    Image.fromarray(np.random.default_rng(5).integers(0, 255, (60, 90, 3), np.uint8)).save(changed)
    with pytest.warns(UserWarning, match="changed"):
        summary = locus.extract(folder, out, model)
    assert summary.written == 1
    name = changed.relative_to(folder).as_posix()
    with open_features(out) as file:
        np.testing.assert_allclose(file[name]["features"], model.features(np.asarray(Image.open(changed))), atol=1e-3)
    assert locus.extract(folder, out, model).written == 0


def test_killed_at_random_moments_it_ends_as_if_nothing_had_happened(tmp_path, model, server):
    folder, out = tmp_path / "images", tmp_path / "out.h5"
    folder.mkdir()
    for i in range(160):
        Image.fromarray(RNG.integers(0, 256, (112, 112, 3), dtype=np.uint8)).save(folder / f"{i:03d}.bmp")
    finished, killed = set(), 0
    for _ in range(8):
        if len(finished) == 160:
            break
        process = server("start", folder, out, 0, 1)
        grown(out, out.stat().st_size if out.exists() else 0)
        time.sleep(RNG.uniform(0, 0.08))
        os.kill(process, signal.SIGKILL)
        killed += server("wait", process) == signal.SIGKILL  # on a busy machine it may have finished before
        with open_features(out):
            pass
        now = stored(out)
        assert now >= finished
        check(out, folder, model, now - finished)
        finished = now
    assert killed
    assert len(finished) >= 8
    summary = locus.extract(folder, out, model, batch=2)
    assert (summary.written, summary.present) == (160 - len(finished), len(finished))
    locus.extract(folder, tmp_path / "quiet.h5", model, batch=2)
    with h5py.File(out, "r") as a, h5py.File(tmp_path / "quiet.h5", "r") as b:
        assert stored(out) == stored(tmp_path / "quiet.h5")
        for name in stored(out):
            np.testing.assert_array_equal(a[name]["features"][:], b[name]["features"][:])
    assert not journal_of(out).exists()


def test_two_processes_share_the_images_and_leave_one_file(tmp_path, folder, model, server):
    out = tmp_path / "out[1].h5"  # no pattern
    processes = [server("start", folder, out, rank, 2) for rank in range(2)]
    assert [server("wait", process) for process in processes] == [0, 0]
    assert inside(tmp_path) == ["images", "out[1].h5"]
    assert stored(out) == {image.name for image in sources(folder)}
    check(out, folder, model)


def test_what_one_of_two_processes_left_is_taken_over(tmp_path, folder, model, monkeypatch):
    out = tmp_path / "out.h5"
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    half = locus.extract(folder, out, model)
    assert half.path == tmp_path / "out.rank1.h5"
    assert not out.exists()
    monkeypatch.setenv("RANK", "0")
    assert locus.extract(folder, out, model).path == out
    assert locus.extract(folder, out, model).written == 0
    out.unlink()
    monkeypatch.setenv("RANK", "1")
    locus.extract(folder, out, model)
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    rest = locus.extract(folder, out, model)
    assert (rest.written, rest.present) == (5, 5)
    assert inside(tmp_path) == ["images", "out.h5"]
    check(out, folder, model)


def test_an_image_replaced_with_the_same_size_and_time_is_noticed(tmp_path):
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a.bmp"
    Image.fromarray(RNG.integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(file)
    locus.extract(tmp_path / "in", tmp_path / "f.h5", locus.LoCUS("classic", head="identity"))
    state = file.stat()
    Image.fromarray(RNG.integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(file)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    with pytest.warns(UserWarning, match=r"1 images changed since they were done, a\.bmp first"):
        locus.extract(tmp_path / "in", tmp_path / "f.h5", locus.LoCUS("classic", head="identity"))
