"""Two processes that share a job by --shard leave what one process leaves that does all of it."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from locus.cli import main
from locus.training import Settings
from locus.training.run import cache_shard
from tests.scenes import layouts, room


@pytest.fixture
def scene(tmp_path):
    folder = tmp_path / "room"
    folder.mkdir()
    layouts.nerfstudio(folder, room.shots(9))
    return folder


def in_turn(*words: str | Path) -> None:
    """The command's two halves, one after the other."""
    for number in range(2):
        assert main([*map(str, words), "--shard", f"{number}/2"]) == 0


def in_two(*words: str | Path) -> None:
    """The same in two processes at the same time."""
    command = [sys.executable, "-m", "locus", *map(str, words)]
    halves = [subprocess.Popen([*command, "--shard", f"{number}/2"], text=True, stderr=-1) for number in range(2)]
    for half in halves:
        _, said = half.communicate(timeout=300)
        assert half.returncode == 0, said


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def arrays(path: Path) -> dict[str, np.ndarray]:
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def test_features_are_put_together_by_the_last(scene, tmp_path):
    words = ("extract", scene, "--model", "classic", "--batch", "1", "--out")
    in_two(*words, tmp_path / "two.h5")
    assert main([*map(str, words), str(tmp_path / "one.h5")]) == 0
    one, two = arrays(tmp_path / "one.h5"), arrays(tmp_path / "two.h5")
    assert one.keys() == two.keys()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)
    assert not list(tmp_path.glob("*rank?.h5"))


def test_a_map_finds_all_its_tokens(scene, tmp_path):
    words = ("map", scene, "--model", "classic", "--out", tmp_path / "map", "--cache")
    in_turn(*words, tmp_path / "two")
    assert not (tmp_path / "map").exists()
    assert main([*map(str, words), str(tmp_path / "one")]) == 0
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_training_finds_all_its_tokens(scene, tmp_path):
    classic = ("--backbone", "classic", "--layer", "None", "--head", "linear", "--resolution", "None", "--copies", "1")
    in_turn("train", scene, *classic, "--out", tmp_path / "run", "--cache", tmp_path / "two")
    assert not (tmp_path / "run").exists()
    settings = Settings(backbone="classic", layer=None, head="linear", resolution=None, copies=1)
    assert cache_shard([scene], settings, (0, 1), cache=tmp_path / "one") == 18  # nine frames, and a copy of each
    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.parametrize("shard", ["2/2", "1", "-1/2", "a/b", "0/0", "/2"])
def test_parts_that_there_are_not(shard, tmp_path, capsys):
    assert main(["houses", str(tmp_path / "out"), "--shard", shard]) == 2
    assert "such as 0/8" in " ".join(capsys.readouterr().err.split())


def test_a_preview_needs_all_houses(tmp_path, capsys):
    assert main(["houses", str(tmp_path / "out"), "--preview", "--shard", "0/2"]) == 2
    assert "without --shard" in " ".join(capsys.readouterr().err.split())
