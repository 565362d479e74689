"""`locus cache`: what is kept, and what goes."""

import os
import time

import pytest

from locus import backbones, load_scene
from locus.cli import main
from locus.features.cache import cache_scene
from tests.scenes import layouts, room


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A cache with the tokens of a scene, a part of an evaluation and the weights of two networks."""
    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path / "kept"))
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", room.shots(3))
    cache_scene(load_scene(tmp_path / "room"), backbones.load("classic"))
    for name in ("evaluation/retrieval/a.json", "weights/old/config.json", "weights/old/model", "weights/new/model"):
        file = tmp_path / "kept" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(10**6))
    return tmp_path / "kept"


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_lists_what_is_kept_with_sizes(kept, capsys):
    assert main(["cache", "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["evaluation:", "retrieval", "1", "1.0", "0.0"] in rows
    assert ["weights:", "old", "2", "2.0", "0.0"] in rows
    assert [row[2] for row in rows if row[0] == "tokens:" and row[1].startswith("classic-")] == ["3"]
    total = sum((kept / name).stat().st_size for name in files(kept))
    assert rows[-1] == [f"{total / 1e6:.1f}", "MB", "in", str(kept)]


def test_clears_one_part(kept, capsys):
    others = {name for name in files(kept) if not name.startswith("tokens/")}
    assert main(["cache", "clear", "tokens"]) == 0
    assert "Removed 7 files" in capsys.readouterr().out
    assert files(kept) == others
    assert main(["cache", "clear", "all"]) == 0
    assert not files(kept)
    assert main(["cache", "list"]) == 0
    assert f"0.0 MB in {kept}" in capsys.readouterr().out


def test_a_clock_that_was_set_back_keeps_nothing_from_being_cleared(kept, capsys):
    later = time.time() + 5 * 86400
    for name in files(kept):
        os.utime(kept / name, (later, later))
    assert main(["cache", "list"]) == 0
    assert ["weights:", "old", "2", "2.0", "0.0"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert main(["cache", "clear", "all"]) == 0
    assert not files(kept)


def test_clears_what_was_not_used_for_some_time_and_weights_as_a_whole(kept):
    long_ago = time.time() - 40 * 86400
    for name in files(kept):
        if name != "weights/old/model":
            os.utime(kept / name, (long_ago, long_ago))
    token = min(name for name in files(kept) if name.startswith("tokens/classic-"))
    os.utime(kept / token, (time.time(), long_ago))  # read since
    assert main(["cache", "clear", "all", "--unused", "30"]) == 0
    assert files(kept) == {token, "weights/old/config.json", "weights/old/model"}
