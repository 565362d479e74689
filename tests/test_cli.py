import subprocess
import sys

import pytest

from locus.cli import COMMANDS, main
from locus.commands.scenes import Format
from locus.errors import LocusError
from locus.scenes.formats import READERS
from tests.scenes import layouts, room


def test_errors_are_one_sentence_and_exit_code_2(capsys, tmp_path):
    assert main(["inspect", str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip().startswith("locus:")
    assert "does not exist" in captured.err
    assert "Traceback" not in captured.err


def test_debug_shows_where_an_error_came_from(tmp_path):
    with pytest.raises(LocusError):
        main(["inspect", str(tmp_path / "nowhere"), "--debug"])


def test_convert_writes_a_folder_that_loads(capsys, tmp_path):
    import locus

    layouts.tum(tmp_path, room.shots(3))
    out = tmp_path / "native"
    assert main(["convert", str(tmp_path), "--out", str(out)]) == 0
    assert "Wrote 3 of 3 frames" in " ".join(capsys.readouterr().out.split())
    assert len(locus.load_scene(out)) == 3
    assert main(["convert", str(tmp_path), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert len(capsys.readouterr().out) > 300


def test_every_format_can_be_named():
    assert set(Format.__args__) == set(READERS)


def test_a_wrong_word_exits_with_2():
    result = subprocess.run([sys.executable, "-m", "locus", "frobnicate"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "frobnicate" in result.stderr + result.stdout
