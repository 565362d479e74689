"""A command on a Ray cluster of this machine leaves what it leaves alone, also if a worker is killed in the middle."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from locus.cli import main
from locus.commands.cluster import without

HOUSES = ("--count", "4", "--seed", "4", "--frames-per-scene", "2", "--size", "32", "24")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def workers_at_work(of: int) -> list[psutil.Process]:
    """Ray's workers that are doing a part."""
    below = psutil.Process(of).children(recursive=True)
    return [each for each in below if each.name().startswith("ray::_part")]


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(tmp_path):
    pytest.importorskip("ray")
    words = [sys.executable, "-m", "locus", "houses", tmp_path / "many", *HOUSES, "--cluster", "auto"]
    with subprocess.Popen(list(map(str, words)), stdout=-1, stderr=-1, text=True) as process:
        until, killed = time.monotonic() + 120, 0
        while process.poll() is None and time.monotonic() < until and not killed:
            for worker in workers_at_work(process.pid)[:1]:
                worker.send_signal(signal.SIGKILL)
                killed += 1
            time.sleep(0.02)
        said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert killed
    assert "4 houses" in said[0]
    assert main(["houses", str(tmp_path / "one"), *HOUSES]) == 0
    assert files(tmp_path / "many") == files(tmp_path / "one")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:port"])
def test_an_address_without_a_cluster_is_one_sentence(tmp_path, capsys, address):
    pytest.importorskip("ray")
    assert main(["houses", str(tmp_path), "--cluster", address]) == 2
    assert f"there is no Ray cluster at {address};" in " ".join(capsys.readouterr().err.split())


def test_without_ray_the_sentence_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["houses", str(tmp_path), "--cluster", "auto"]) == 2
    assert "--cluster needs Ray" in " ".join(capsys.readouterr().err.split())


def test_the_option_is_taken_off_however_it_is_written():
    assert without(["out", "--cluster", "auto", "--seed", "1"], "--cluster") == ["out", "--seed", "1"]
    assert without(["out", "--cluster=auto"], "--cluster") == ["out"]
    assert without(["out"], "--cluster") == ["out"]
