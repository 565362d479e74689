"""The yardstick: the figures of the benchmarks themselves, one table a scene."""

from dataclasses import replace

import pytest

from locus.cli import main
from locus.evaluation import runner, yardstick
from locus.evaluation.correspondence import Correspondence
from locus.evaluation.methods import Truth
from locus.evaluation.runner import run
from locus.evaluation.segmentation import Segmentation
from locus.evaluation.specs import MethodOptions, methods_of
from locus.evaluation.table import number
from locus.evaluation.yardstick import Yardstick
from tests.tasks import labelled_room


@pytest.fixture(autouse=True, scope="module")
def less():
    """Of what takes most of the time; how much is measured is not what is looked at here."""
    asked = {split: replace(each, queries=3) for split, each in yardstick._LOCALIZATION.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yardstick, "_RETRIEVAL", replace(yardstick._RETRIEVAL, batches=2, landmarks=32))
        patch.setattr(yardstick, "_LOCALIZATION", asked)
        patch.setattr(yardstick, "_POSE", {kind: replace(each, pairs=5) for kind, each in yardstick._POSE.items()})
        yield


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Two labelled rooms, and one without labels."""
    root = tmp_path_factory.mktemp("yardstick")
    return [labelled_room.write(root / name, 10, labels=name != "three") for name in ("one", "two", "three")]


@pytest.fixture(scope="module")
def methods(tokens):
    return methods_of(["classic"], MethodOptions(cache=tokens))


@pytest.fixture(scope="module")
def tables(scenes, methods, tmp_path_factory):
    outcome = run(Yardstick(), methods, {"unseen": scenes[:2]}, folder=tmp_path_factory.mktemp("parts"))
    assert not outcome.failures
    made = {table.title: table for table in Yardstick().tables(outcome)}
    return {
        title: dict(zip([column.name for column in table.columns], table.rows[0].cells, strict=True))
        for title, table in made.items()
    }


def test_there_is_a_table_of_every_scene_and_one_of_classes(tables):
    assert list(tables) == [
        *(f"Yardstick: {name}" for name in ("one", "two")),
        "Yardstick: classes in other scenes",
    ]
    for figures in tables.values():
        for name, value in figures.items():
            assert value is not None
            assert 0 <= value <= (180 if name.endswith("median, °") else 1)


def test_the_figures_are_those_of_the_benchmarks(tables, scenes, methods, tmp_path):
    def own(protocol, path):
        outcome = run(protocol, methods, {"unseen": [path]}, folder=tmp_path / path.name)
        return {
            (table.title, column.name): number(cell)
            for table in protocol.tables(outcome)
            for column, cell in zip(table.columns, table.rows[0].cells, strict=True)
        }

    figures = tables["Yardstick: one"]
    retrieval = own(yardstick._RETRIEVAL, scenes[0])
    for radius in ("0.2", "0.6", "2.5"):
        expected = retrieval[f"AP, cross-view, by scene, radius {radius} m", "one"]
        assert figures[f"AP, {radius} m"] == pytest.approx(expected)
    correspondence = own(Correspondence(), scenes[0])
    for pixels in (10, 20):
        title = f"Correspondence: matches within {pixels} pixels, by viewpoint change"
        assert figures[f"≤ {pixels} pixels"] == pytest.approx(correspondence[title, "all"])
    stuff = [own(Segmentation(), scene)["Segmentation", "mIoU, stuff"] for scene in scenes[:2]]
    assert tables["Yardstick: classes in other scenes"]["stuff mIoU, 0.2 m"] == pytest.approx(sum(stuff) / 2)


def test_what_is_no_model_is_refused(scenes, tmp_path):
    outcome = run(Yardstick(), [Truth()], {"unseen": scenes[:1]}, folder=tmp_path)
    assert "the yardstick is for models and backbones" in next(iter(outcome.failures.values()))


def test_the_command_prints_it(scenes, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path)
    assert main(["eval", "yardstick", str(scenes[2]), "--methods", "classic", "--cache", str(tokens)]) == 0
    printed = capsys.readouterr().out
    assert "Yardstick: three" in printed
    assert "classes in other scenes" not in printed
