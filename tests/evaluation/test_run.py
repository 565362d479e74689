"""Whole evaluations from the command line: kept parts, failures, reports."""

import json
from dataclasses import replace

import pytest

from locus.cli import main
from locus.errors import LocusError
from locus.evaluation import runner, scene_patches
from locus.evaluation.correspondence import Correspondence
from locus.evaluation.methods import Chance, Truth, Unavailable
from locus.evaluation.pose import RelativePoses
from locus.evaluation.report import Shown, write_report
from locus.evaluation.retrieval import Retrieval
from locus.evaluation.runner import run
from locus.scenes import load
from tests.html_pages import HOSTILE, Parsed, assert_escaped, fetched
from tests.scenes import layouts, room

PROTOCOL = Retrieval(radii=(0.3,), frames_per_batch=6, batches=2, landmarks=30)
SMALL = ["--radii", "0.3", "--frames-per-batch", "6", "--batches", "2", "--landmarks", "30"]


class Counting(Chance):
    """Counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def features(self, patches, radius):
        self.asked += 1
        return super().features(patches, radius)


def test_finished_parts_are_skipped_and_done_again_if_wanted(rooms, tmp_path):
    method, scenes = Counting(), {"unseen": [rooms / "first", rooms / "second"]}
    first = run(PROTOCOL, [method], scenes, folder=tmp_path)
    assert method.asked == 2
    assert run(PROTOCOL, [method], scenes, folder=tmp_path).parts == first.parts
    assert method.asked == 2
    run(PROTOCOL, [method], scenes, folder=tmp_path, fresh=True)
    assert method.asked == 4
    run(Retrieval(radii=(0.4,), frames_per_batch=6, batches=2, landmarks=30), [method], scenes, folder=tmp_path)
    assert method.asked == 6


@pytest.mark.parametrize("damaged", ["{half", "{}", "[]"])
def test_a_damaged_part_is_measured_again_with_a_word(rooms, tmp_path, damaged):
    method, scenes = Counting(), {"unseen": [rooms / "first"]}
    first = run(PROTOCOL, [method], scenes, folder=tmp_path)
    next(tmp_path.rglob("*.json")).write_text(damaged)
    with pytest.warns(UserWarning, match="is damaged; its part is measured again"):
        assert run(PROTOCOL, [method], scenes, folder=tmp_path).parts == first.parts
    assert method.asked == 2


def test_a_failed_scene_does_not_lose_the_others(rooms, tmp_path):
    scenes = {"unseen": [tmp_path / "nowhere", rooms / "first"]}
    outcome = run(
        PROTOCOL, [Truth(), Chance(), Unavailable("resnet50", "no weights")], scenes, folder=tmp_path / "kept"
    )
    assert [part.method for part in outcome.parts] == ["ground truth", "random"]
    assert list(outcome.failures) == [str(tmp_path / "nowhere")]


class Half(Chance):
    """Knows nothing of the second patches."""

    label = "half"
    fingerprint = "half"
    bound = False

    def features(self, patches, radius):
        if patches.scene.name == "second":
            raise LocusError("never heard of it")
        return super().features(patches, radius)


@pytest.mark.parametrize(
    "protocol", [PROTOCOL, Correspondence(pairs=2), RelativePoses(pairs=2, solver="3d-3d")], ids=lambda each: each.name
)
def test_a_row_that_lacks_a_place_says_so_and_is_never_the_best(rooms, tmp_path, protocol):
    whole = Chance()
    whole.bound = False
    scenes = {"unseen": [rooms / "first", rooms / "second"]}
    outcome = run(protocol, [Half(), whole], scenes, folder=tmp_path)
    assert outcome.failures == {"half on second": "never heard of it"}
    for table in protocol.tables(outcome):
        if table.title.startswith("Published") or (not table.rows and table.title.endswith("trust")):
            continue  # of others; and random features agree on no pose
        half, all_of_it = table.rows[:2]
        assert half.label == "half (1 of 2 scenes)"
        assert all_of_it.label == "random"
        assert not any(row == 0 for row, _ in table.best())
    assert "half (1 of 2 scenes)" in protocol.figures(outcome)[0][1]


def test_a_row_of_one_place_beside_rows_of_two_has_no_interval(rooms, tmp_path):
    scenes = {"unseen": [rooms / "first", rooms / "second"]}
    outcome = run(PROTOCOL, [Half(), Chance()], scenes, folder=tmp_path)
    half, whole = (row.cells[1] for row in PROTOCOL.tables(outcome)[0].rows[:2])
    assert half.low is None  # it would be of batches, where the note says scenes
    assert whole.low is not None


def test_pictures_are_of_a_scene_that_every_method_was_measured_on(rooms, tmp_path):
    paths, methods = [rooms / "second", rooms / "first"], [Half(), Chance()]
    ((caption, _),) = run(PROTOCOL, methods, {"unseen": paths}, folder=tmp_path).pictures()
    assert caption.startswith("first, top to bottom: ")
    assert run(PROTOCOL, methods, {"unseen": paths[:1]}, folder=tmp_path).pictures() == []  # and there is a report


def test_a_scene_that_no_method_can_use_is_no_methods_lack(rooms, tmp_path):
    layouts.nerfstudio(tmp_path / "lonely", room.shots(1))
    outcome = run(PROTOCOL, [Chance(), Half()], {"unseen": [tmp_path / "lonely", rooms / "first"]}, folder=tmp_path)
    assert list(outcome.failures) == [str(tmp_path / "lonely")]
    assert [outcome.label(method) for method in outcome.methods] == ["random", "half"]


def test_scenes_are_opened_and_read_once(rooms, tmp_path, monkeypatch):
    calls = {"load_scene": [], "read_patches": []}
    for module, name in ((load, "load_scene"), (scene_patches, "read_patches")):
        real = getattr(module, name)

        def counted(*given, real=real, name=name, **options):
            calls[name].append(given)
            return real(*given, **options)

        monkeypatch.setattr(module, name, counted)
    scenes = {"unseen": [rooms / "first"], "training": [rooms / "second"]}
    run(PROTOCOL, [Chance(), Half()], scenes, folder=tmp_path).pictures()
    assert {name: len(made) for name, made in calls.items()} == {"load_scene": 2, "read_patches": 2}


def test_two_scenes_of_one_name_are_refused(rooms, tmp_path):
    (tmp_path / "first").symlink_to(rooms / "first")
    with pytest.raises(LocusError, match="have the same name; rename one"):
        run(PROTOCOL, [Chance()], {"unseen": [rooms / "first", tmp_path / "first"]}, folder=tmp_path / "kept")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    return tmp_path


def test_the_command_prints_tables_and_writes_a_page_that_needs_nothing_else(rooms, tokens, kept, capsys):
    words = [
        "eval",
        "retrieval",
        str(rooms / "first"),
        str(rooms / "second"),
        "--methods",
        "classic",
        "truth",
        "random",
    ]
    words += [*SMALL, "--cache", str(tokens), "--report", str(kept / "report"), "--json", str(kept / "all.json")]
    assert main([*words, "--train", str(rooms / "unseen")]) == 0
    printed = capsys.readouterr().out
    assert "Published: the paper's Table 1" in printed
    assert "V-Smooth-AP, all pairs, training" in printed
    page = (kept / "report" / "report.html").read_text(encoding="utf-8")
    assert [Parsed(page).count(tag) for tag in ("table", "svg", "img")] == [4, 1, 1]
    assert fetched(page) == []
    told = json.loads((kept / "all.json").read_text())
    assert {part["scene"] for part in told["parts"]} == {"first", "second", "unseen"}
    for name in ("tables.md", "tables.tex", "results.json"):
        assert (kept / "report" / name).stat().st_size > 500


def test_the_report_escapes_names_and_is_the_same_twice(rooms, tmp_path):
    class Named(Half):
        label = HOSTILE

    methods = [Named(), Chance(), Unavailable(HOSTILE, HOSTILE)]
    outcome = run(PROTOCOL, methods, {"unseen": [rooms / "first"]}, folder=tmp_path)
    outcome = replace(outcome, failures={HOSTILE: HOSTILE})
    shown = Shown(PROTOCOL.tables(outcome), PROTOCOL.figures(outcome))
    page = write_report(tmp_path / "a", outcome, shown).read_text(encoding="utf-8")
    assert_escaped(page)
    assert_escaped(page[page.index("<svg") : page.index("</svg>")])  # matplotlib has escaped the legend
    assert fetched(page) == []
    again = Shown(PROTOCOL.tables(outcome), PROTOCOL.figures(outcome))
    assert write_report(tmp_path / "b", outcome, again).read_text(encoding="utf-8") == page


def test_a_scene_that_failed_is_told_and_exits_with_1(rooms, tokens, kept, capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    words = ["eval", "retrieval", str(tmp_path / "empty"), str(rooms / "first"), "--methods", "random", *SMALL]
    assert main([*words, "--style", "markdown"]) == 1
    captured = capsys.readouterr()
    assert "not measured:" in captured.err
    assert "| random |" in captured.out


@pytest.mark.parametrize(
    ("task", "option", "value", "least"),
    [
        ("retrieval", "frames-per-batch", 1, 2),
        ("retrieval", "batches", 0, 1),
        ("pose", "pairs", 0, 1),
        ("pose", "pairs", -1, 1),
        ("correspondence", "pairs", -1, 1),
        ("correspondence", "refine", 0, 1),
        ("localization", "queries", 0, 1),
        ("localization", "queries", -1, 1),
        ("reuse", "landmarks", 0, 1),
    ],
)
def test_options_that_leave_nothing_to_measure_are_one_sentence(task, option, value, least, capsys):
    assert main(["eval", task, "nowhere", "--methods", "random", f"--{option}", str(value)]) == 2
    assert f"--{option} must be at least {least}, not {value}" in capsys.readouterr().err


def test_nothing_at_all_is_one_sentence(kept, capsys):
    assert main(["eval", "retrieval", "nowhere", "--methods", "random"]) == 2
    assert "matches nothing" in capsys.readouterr().err
