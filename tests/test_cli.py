import subprocess
import sys
from dataclasses import fields
from importlib.metadata import version

import pytest

from locus.cli import COMMANDS, main
from locus.errors import LocusError
from locus.scenes import SceneReading
from locus.scenes.formats import READERS
from locus.scenes.load import Format
from locus.scenes.writers import WRITERS, Target
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
    assert f"to {out} in the format nerfstudio" in " ".join(capsys.readouterr().out.split())
    assert len(locus.load_scene(out)) == 3
    assert main(["convert", str(tmp_path), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["convert", str(out), "--out", str(tmp_path / "model"), "--to", "colmap"]) == 0
    assert locus.load_scene(tmp_path / "model").format == "colmap"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert len(capsys.readouterr().out) > 300


def test_the_summary_has_one_line_a_command(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 80
    for command in COMMANDS:
        (line,) = [line for line in lines if line.startswith(f"  {command} ")]
        assert line.endswith(".")


def test_the_version_is_the_packages(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"locus {version('locus-features')}\n"


LOADING = "inspect convert train eval-retrieval map localize retrieve view extract match cosegment find segment-fit"


@pytest.mark.parametrize("command", [*LOADING.split(), "segment-predict", "eval-pose", "eval-reuse"])
def test_every_command_that_loads_a_scene_takes_the_options_that_repair_one(command, capsys):
    with pytest.raises(SystemExit):
        main([*command.split("-"), "--help"])
    said = capsys.readouterr().out
    for option in fields(SceneReading):
        name = "topic" if option.name == "topics" else option.name.replace("_", "-")  # it is given once a topic
        assert f"--{name} " in said


@pytest.mark.parametrize(
    "words",
    [
        "inspect SCENE",
        "convert SCENE --out OUT",
        "train SCENE --out OUT --backbone classic --layer None --head linear",
        "eval retrieval SCENE --methods classic",
        "eval reuse SCENE SCENE --methods classic",
        "map SCENE --out OUT --model classic",
        "view SCENE:1 --model classic --port 0",
        "extract SCENE --model classic --out OUT",
        "match SCENE:0 SCENE:1 --model classic",
        "cosegment SCENE:0 1 1 --model classic",
        "find SCENE:0 SCENE --box 1 1 9 9 --model classic",
        "segment fit SCENE --out OUT --model classic",
    ],
)
def test_scenes_are_read_as_the_options_say(words, tmp_path, capsys):
    """A native scene, read as one of TUM, has no list of images."""
    (tmp_path / "scene").mkdir()
    layouts.nerfstudio(tmp_path / "scene", room.shots(3))
    meant = {"OUT": str(tmp_path / "out")}
    arguments = [meant.get(word, word.replace("SCENE", str(tmp_path / "scene"))) for word in words.split()]
    assert main([*arguments, "--format", "tum"]) in (1, 2)
    assert "rgb.txt" in capsys.readouterr().err


def test_every_format_can_be_named():
    assert set(Format.__args__) == set(READERS)
    assert set(Target.__args__) == set(WRITERS)


def test_a_wrong_word_exits_with_2():
    result = subprocess.run([sys.executable, "-m", "locus", "frobnicate"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "frobnicate" in result.stderr + result.stdout
