"""A tiny demo from beginning to end: what it leaves, what it takes up again, what it says of a damaged folder."""

import json
import os
import shlex
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

from locus.cli import main
from locus.demo.pipeline import run
from locus.demo.plan import DemoFolder, DemoPlan
from locus.demo.report_page import write_page
from locus.demo.stage_log import program
from locus.errors import LocusError
from locus.evaluation.retrieval import Retrieval
from tests.html_pages import HOSTILE, Parsed, assert_escaped, fetched
from tests.scenes import layouts, room
from tests.training.launching import SETTINGS

PLAN = DemoPlan(
    houses=2,
    frames=12,
    unseen=1,
    unseen_frames=12,
    settings=replace(SETTINGS, steps=4, validate_every=2),
    retrieval=Retrieval(radii=(0.3,), frames_per_batch=6, batches=1, landmarks=40),
    size=(126, 98),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished demo. Simple rooms stand in for all houses but the one that is mapped."""
    folder = tmp_path_factory.mktemp("made") / HOSTILE
    DemoFolder(folder, PLAN).remember()
    for turn, name in enumerate(("trained/house-005000", "trained/house-005001", "unseen/house-006001")):
        shots = room.shots(12)
        for shot in shots:
            shot.image = np.roll(shot.image, turn, axis=2)  # other colours, as if another place
        (folder / name).mkdir(parents=True)
        layouts.nerfstudio(folder / name, shots)
    run(folder, PLAN)
    return folder


@pytest.fixture
def spoil(made):
    """Write something else into a file of the finished demo; after the test it is as it was, its time too."""
    kept = []

    def spoil(name, content):
        file = made / name
        kept.append((file, file.read_bytes(), file.stat().st_mtime_ns))
        file.write_bytes(content(kept[-1][1]))

    yield spoil
    for file, before, time in kept:
        file.write_bytes(before)
        os.utime(file, ns=(time, time))


def test_the_page_shows_everything_and_needs_nothing_else(made):
    page = (made / "report.html").read_text(encoding="utf-8")
    for title in (
        "The same thing, the same colour",
        "Finding the same spot again",
        "One spot, in every view",
        "A map of a new house",
        "Where images were taken",
        "How training went",
        "What was done",
    ):
        assert f"<h2>{title}</h2>" in page
    parsed = Parsed(page)
    assert [parsed.count(tag) for tag in ("table", "svg")] == [3, 4]
    assert parsed.count("img") == 2 + 12  # colours, glow; the query and its views
    assert fetched(page) == []
    assert_escaped(page)  # the folder's name
    assert "classic" in parsed.text


def test_the_same_results_are_the_same_page(made):
    results = run(made, PLAN)
    page = (made / "report.html").read_bytes()
    write_page(results)
    assert (made / "report.html").read_bytes() == page


def test_the_numbers_of_the_page_are_those_of_the_run(made):
    page = (made / "report.html").read_text(encoding="utf-8")
    kept = [json.loads(file.read_text())["measured"] for file in (made / "cache/evaluation/retrieval").iterdir()]
    reached = {f"{part['radii']['0.3'][0]['cross-view']['AP']:.3f}" for part in kept}
    assert len(kept) == 3
    assert all(value in page for value in reached)


def test_run_again_it_takes_up_what_is_finished(made, spoil, capsys):
    def times():
        return {f: f.stat().st_mtime_ns for f in made.rglob("*") if f.is_file() and f.parent.name != "run"}

    spoil("report.html", lambda page: page[:1000])
    before = times()
    run(made, PLAN)
    changed = {str(file.relative_to(made)) for file, time in times().items() if before.get(file) != time}
    assert changed == {"report.html", "demo.json"}
    said = capsys.readouterr().out
    assert "4 of the houses were there" in said
    assert "(were there)" in said
    assert "How training went" in (made / "report.html").read_text(encoding="utf-8")


def test_a_given_model_is_not_trained(made, tmp_path, capsys):
    DemoFolder(tmp_path / "demo", PLAN).remember()
    shutil.copytree(made / "trained", tmp_path / "demo/trained")
    shutil.copytree(made / "unseen", tmp_path / "demo/unseen")
    page = run(tmp_path / "demo", PLAN, str(made / "run")).folder.report.read_text(encoding="utf-8")
    assert not (tmp_path / "demo/run").exists()
    assert "How training went" not in page
    assert "was not trained in this run" in page
    assert "6/6" in capsys.readouterr().out


def test_the_line_that_opens_the_viewer_works_as_it_is(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path))
    words = shlex.split(run(made, PLAN).view)
    assert shutil.which(words[0])

    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("locus.commands.view.time.sleep", stop)
    assert main([*words[words.index("view") :], "--port", "0"]) == 0
    assert "12 frames; the map given, of house-006000" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())  # the demo's tokens are used


def test_without_the_extra_there_is_no_line_that_opens_the_viewer(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    assert run(made, PLAN).view == ""


@pytest.mark.parametrize(("path", "typed"), [("bin", "locus"), ("elsewhere", "bin/locus")])
def test_the_program_is_named_as_it_can_be_typed(tmp_path, monkeypatch, path, typed):
    for folder in ("bin", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "locus").touch(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", str(tmp_path / path))
    monkeypatch.chdir(tmp_path)
    assert program() == typed


def test_a_damaged_house_is_named(made, spoil):
    image = next((made / "unseen/house-006001/images").iterdir())
    spoil(image.relative_to(made), lambda content: content[:100])
    with pytest.raises(LocusError, match=r"house-006001 is damaged .*; remove it and .*run, and run the demo again"):
        run(made, PLAN)


def test_a_damaged_run_is_named(made, spoil):
    spoil("run/training.json", lambda content: content[:20])
    with pytest.raises(LocusError, match=r"training\.json is damaged; remove .*run to begin again"):
        run(made, PLAN)


def test_a_damaged_map_is_built_again(made, spoil, capsys):
    spoil("map/map.safetensors", lambda content: content[:200])
    run(made, PLAN)
    assert "(were there)" not in capsys.readouterr().out


def test_other_things_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(LocusError, match="something else than a demo"):
        run(tmp_path, PLAN)
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"plan": 3}', '{"plan": "full"}'])
def test_a_damaged_note_is_named(tmp_path, text):
    (tmp_path / "demo.json").write_text(text)
    with pytest.raises(LocusError, match=r"demo\.json is damaged"):
        DemoFolder(tmp_path, PLAN)


def test_a_demo_of_another_size_is_refused(tmp_path):
    DemoFolder(tmp_path, PLAN).remember()
    with pytest.raises(LocusError, match=r"another size \(houses\)"):
        DemoFolder(tmp_path, replace(PLAN, houses=3))


def test_as_typed_a_wrong_folder_is_one_sentence(tmp_path, capsys):
    (tmp_path / "letter.txt").write_text("dear")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "name a new folder with --out" in capsys.readouterr().err
