import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import fields
from importlib.metadata import version
from inspect import getdoc
from types import SimpleNamespace
from typing import Literal, get_args

import pytest

from locus.cli import COMMANDS, TASKS, main
from locus.commands.benchmarks import Task
from locus.commands.options import counted
from locus.commands.parsing import parsed
from locus.errors import LocusError, to_install
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


def test_a_part_of_a_scene_is_inspected_converted_and_viewed(capsys, tmp_path, monkeypatch):
    import locus

    monkeypatch.chdir(tmp_path)
    layouts.tum(tmp_path / "walk", room.shots(4))
    assert main(["convert", "walk", "--frames", "1::2", "--out", "half"]) == 0
    names = [source.name for source in locus.load_scene("walk").sources]
    assert [source.name for source in locus.load_scene("half").sources] == names[1::2]
    main(["inspect", "walk", "--frames", ":3"])
    assert "3 in the format tum" in capsys.readouterr().out
    assert main(["inspect", "walk", "--frames", "4:"]) == 2
    assert "--frames 4: leaves none of the 4 frames" in capsys.readouterr().err
    assert main(["view", f"walk:{names[1]}", "--frames", "::2", "--model", "classic", "--port", "0"]) == 2
    assert f"has no frame '{names[1]}'" in " ".join(capsys.readouterr().err.split())


def test_one_thing_is_not_several():
    assert (counted(0, "frame"), counted(1, "frame"), counted(2, "frame")) == ("0 frames", "1 frame", "2 frames")


def help_of(capsys, *words):
    try:
        code = main([*words, "--help"])
    except SystemExit as stop:
        code = stop.code
    assert code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_fits_79_columns_and_names_what_it_takes(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    told = help_of(capsys, command)
    actions = re.search(r"\[-h\] \{(.*?)\}", told, re.DOTALL)
    assert bool(actions) == (command in ("cache", "segment", "weights"))
    below = re.split(r",\s*", actions[1]) if actions else TASKS if command == "eval" else ()
    pages = [told, *(help_of(capsys, command, each) for each in below)]
    for page in pages:
        assert len(page) > 200
        assert max(map(len, page.splitlines())) < 80
        assert "None}" not in page
        assert "{None" not in page
        positional = re.search(r"^ positional arguments +\n -+ \n(.*?)\n +\n", page, re.DOTALL | re.MULTILINE)
        for name in re.findall(r"^  (\S+)", positional[1], re.MULTILINE) if positional else ():
            assert name.strip("[]") not in ("PATH", "STR", "INT", "FLOAT")
            assert not name.startswith("{")
    assert os.environ["COLUMNS"] == "200"


def test_what_may_be_none_is_shown_as_what_it_is_and_none_can_be_typed(capsys):
    def made(size: tuple[int, int] | None, steps: int | None = 3, kind: Literal["a", "b"] | None = "a") -> int:
        raise AssertionError((size, steps, kind))

    for words, meant in {
        "--size 4 5": ((4, 5), 3, "a"),
        "--size None --steps None --kind None": (None, None, None),
        "--size 1 2 --steps 7 --kind b": ((1, 2), 7, "b"),
    }.items():
        call = parsed(made, "made", words.split())
        with pytest.raises(AssertionError) as called:
            call()
        assert called.value.args[0] == meant
    for words in ("--size 1", "--size 1 2 3", "--size 1 2 --steps x", "--size 1 2 --kind c"):
        with pytest.raises(SystemExit) as stop:
            parsed(made, "made", words.split())
        assert stop.value.code == 2


LATE = """
import sys
from locus.cli import main
for line in sys.stdin.read().splitlines():
    try:
        code = main(line.split())
    except SystemExit as stop:
        code = stop.code
    print(code, "torch" in sys.modules, line)
"""
TOO_LATE = [
    "--help",
    "--version",
    "train --help",
    "map --help",
    "train SCENE nowhere --out out",
    "train SCENE --out FILE/run",
    "train SCENE --out run --preset best",
    "train-glue SCENE --out weights.bin",
    "map nowhere --out map",
    "map --out map",
    "map SCENE --out FILE/map",
    "map SCENE --out map --model locus-smal",
    "map SCENE --out map --frames 10",
    "map SCENE --out map --shard 8/8",
    "map SCENE --out new --add",
    "align SCENE nowhere",
    "localize SCENE --map nowhere",
    "localize nowhere.jpg --map MAP",
    "localize SCENE --map MAP --json FILE/answers.json",
    "localize SCENE --map MAP --frames 90:",
    "retrieve SCENE:77 --map MAP",
    "view nowhere",
    "serve --map MAP nowhere",
    "serve --map MAP --batch 0",
    "extract SCENE --out .",
    "extract SCENE --model locus-smal",
    "export locus-small",
    "export locus-smal --hub hub",
    "match SCENE:0 SCENE:1 --out lines",
    "cosegment SCENE:0 1 1 --out FILE/sheet.png",
    "find SCENE:0 SCENE",
    "segment fit SCENE --out FILE/probe.safetensors",
    "segment predict probe.safetensors nowhere --out out",
    "depth SCENE --out SCENE",
    "demo --pretrained locus-smal",
    "check",
    "frobnicate",
    "eval --help",
    "eval",
    "eval retrieve",
]


def test_outputs_names_and_options_are_checked_before_torch_is_loaded(tmp_path):
    (tmp_path / "scene").mkdir()
    layouts.nerfstudio(tmp_path / "scene", room.shots(3))
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "map.safetensors").touch()
    meant = {"SCENE": "scene", "MAP": "map", "FILE": "scene/transforms.json"}
    words = "\n".join(re.sub("SCENE|MAP|FILE", lambda word: meant[word[0]], line) for line in TOO_LATE)
    done = run_python("-c", LATE, input=words, cwd=tmp_path)
    answers = [line.split(maxsplit=2) for line in done.stdout.splitlines() if re.match(r"\d+ (True|False) ", line)]
    assert len(answers) == len(TOO_LATE)
    for code, torch, line in answers:
        assert torch == "False", line
        assert code == ("0" if line.endswith(("help", "--version")) else "2"), f"{line}: {done.stderr}"
    assert "this is a bug" not in done.stderr


def run_python(*words, **how):
    """Another interpreter, with this one's paths."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))} | how.pop("env", {})
    return subprocess.run(
        [sys.executable, *words], **{"capture_output": True, "text": True, "check": False, "env": environment} | how
    )


@pytest.mark.parametrize("words", [["--help"], ["map", "--help"], ["cache", "list"]])
def test_a_closed_pipe_prints_nothing(words, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    where = {"env": {"LOCUS_CACHE": str(tmp_path)}}
    done = run_python("-m", "locus", *words, stdout=writer, stderr=subprocess.PIPE, capture_output=False, **where)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.6, 1.2])
def test_ctrl_c_at_any_moment_prints_no_traceback(seconds, tmp_path):
    words = ["localize", str(tmp_path), "--map", str(tmp_path), "--model", "classic"]
    (tmp_path / "map.safetensors").write_bytes(b"no map")
    layouts.nerfstudio(tmp_path, room.shots(2))
    running = subprocess.Popen(
        [sys.executable, "-m", "locus", *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(seconds)
    running.send_signal(signal.SIGINT)
    told = running.communicate()[1]
    assert "Traceback" not in told
    assert "bug" not in told
    assert running.returncode in (-signal.SIGINT, 130, 2)  # 2: it was quicker, and had found that there is no map


def test_the_summary_has_one_line_a_command(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 80
    for command in COMMANDS:
        (line,) = [line for line in lines if line.startswith(f"  {command} ")]
        assert line.endswith(".")


def test_the_tasks_of_eval_are_listed_as_they_are(capsys):
    assert main(["eval", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    named = [get_args(task) for task in get_args(Task)]
    tasks = {stated.name: stated.description or getdoc(command) for command, stated in named}
    assert list(TASKS) == list(tasks)
    for name, told in tasks.items():
        assert f"{name} {TASKS[name]}" in words
        assert told.startswith(TASKS[name][:-1])


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


def test_a_home_that_cannot_be_written_to_names_the_cache(tmp_path, capsys, monkeypatch):
    layouts.nerfstudio(tmp_path, room.shots(3))
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))  # also who may write anywhere cannot make a folder there
    monkeypatch.delenv("LOCUS_CACHE", raising=False)
    assert main(["map", str(tmp_path), "--out", str(tmp_path / "map"), "--model", "classic"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path}/file/.cache/locus" in told
    assert "let $LOCUS_CACHE name a folder that can be written" in told


def test_install_hints_name_the_clone_or_the_package(monkeypatch):
    def made_from(text):
        return lambda name: SimpleNamespace(read_text=lambda file: text)

    for text, words in {
        '{"url": "file:///home/me/my%20locus", "dir_info": {"editable": true}}': ["-e", "/home/me/my locus[serve]"],
        '{"url": "file:///home/me/locus", "dir_info": {}}': ["/home/me/locus[serve]"],
        '{"url": "file:///tmp/locus.whl", "archive_info": {}}': ["locus-features[serve]"],
        None: ["locus-features[serve]"],
    }.items():
        monkeypatch.setattr("locus.errors.distribution", made_from(text))
        assert shlex.split(to_install("serve")) == [sys.executable, "-m", "pip", "install", *words]


def test_every_format_can_be_named():
    assert set(Format.__args__) == set(READERS)
    assert set(Target.__args__) == set(WRITERS)


def test_a_wrong_word_exits_with_2():
    result = run_python("-m", "locus", "frobnicate")
    assert result.returncode == 2
    assert "frobnicate" in result.stderr + result.stdout


WAITING = """
import os, sys
names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
for said in ({}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "1000"}):
    for name in names:
        os.environ.pop(name, None)
    os.environ.update(said)
    sys.modules.pop("locus", None)
    import locus
    print([os.environ.get(name) for name in names], "torch" in sys.modules)
"""


def test_threads_of_openmp_sleep_while_they_wait_unless_they_are_told_otherwise():
    said = ["['PASSIVE', None, None]", "['active', None, None]", "[None, '1000', None]"]
    assert run_python("-c", WAITING).stdout.splitlines() == [f"{line} False" for line in said]
