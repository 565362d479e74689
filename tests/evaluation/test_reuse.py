"""Localization in maps of half the frames; reuse across places."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from locus.cli import main
from locus.evaluation import runner
from locus.evaluation.methods import Chance, Method
from locus.evaluation.reuse import Reuse
from locus.evaluation.runner import run
from locus.evaluation.scene_patches import EvaluationError
from tests.scenes import layouts, room
from tests.tasks import labelled_room

REUSE = Reuse(radius=0.3, kappas=(2.0, 10.0), frames_per_scene=6, landmarks=20)


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """The same labelled room under two names: two places, as far as a benchmark knows."""
    root = tmp_path_factory.mktemp("homes")
    return [labelled_room.write(root / name) for name in ("one", "two")]


class Same(Method):
    """Features that are the point in the room, the same in both places: the perfect reuser."""

    label = "same"
    fingerprint = "same"

    def features(self, patches, radius):
        points = torch.from_numpy(patches.points).nan_to_num(50.0)
        random = torch.Generator().manual_seed(0)
        waves = points @ torch.randn(3, 512, generator=random) / (radius / 2)
        return F.normalize(torch.cat([waves.cos(), waves.sin()], dim=-1), dim=-1)


def test_embeddings_that_mean_the_same_everywhere_serve_every_place(homes, tmp_path):
    outcome = run(REUSE, [Same(), Chance()], {"unseen": homes}, folder=tmp_path)
    same, chance = (part.measured["landmarks"] for part in outcome.parts)
    for kappa in ("2", "10"):
        assert np.mean([home["served"][kappa] for home in same]) > 0.7
        assert [home["served"][kappa] for home in same] == [home["at home"][kappa] for home in same]
    assert np.mean([home["served"]["10"] for home in chance]) < 0.1


def test_random_features_rank_classes_as_chance_does(homes, tmp_path):
    outcome = run(REUSE, [Chance()], {"unseen": homes}, folder=tmp_path)
    pairs = [each for home in outcome.parts[0].measured["landmarks"] for each in home["class AP"]]
    assert np.mean([each["AP"] for each in pairs]) == pytest.approx(
        np.mean([each["chance"] for each in pairs]), rel=0.1
    )
    classes, service = REUSE.tables(outcome)
    assert classes.rows[0].cells[0].value == pytest.approx(classes.rows[0].cells[1].value, rel=0.1)
    assert [column.name for column in service.columns] == ["κ = 2", "κ = 10", "at home, κ = 10"]


def test_places_without_labels_have_no_classes_but_can_be_served(rooms, tmp_path):
    outcome = run(REUSE, [Chance()], {"unseen": [rooms / "first", rooms / "second"]}, folder=tmp_path)
    assert [table.title for table in REUSE.tables(outcome)] == [
        "Reuse: other scenes that a landmark's embedding serves"
    ]


def test_a_place_that_cannot_be_used_is_told_and_the_others_are_measured(homes, rooms, tmp_path):
    layouts.nerfstudio(tmp_path / "lonely", room.shots(1))
    shots = room.shots(2)
    shots[1].world_from_camera[:3, 3] += 100  # nothing is seen in both frames
    layouts.nerfstudio(tmp_path / "apart", shots)
    bad = [tmp_path / "lonely", tmp_path / "apart", tmp_path / "nowhere"]
    outcome = run(REUSE, [Chance()], {"unseen": [homes[0], *bad, homes[1]]}, folder=tmp_path / "kept")
    assert set(outcome.failures) == set(map(str, bad))
    assert "no spot is seen in two frames" in outcome.failures[str(tmp_path / "apart")]
    (part,) = outcome.parts
    assert part.measured["scenes"] == [home.name for home in homes]
    assert np.isfinite(REUSE.tables(outcome)[-1].rows[0].cells[0].value)


def test_one_place_is_refused(patches):
    with pytest.raises(EvaluationError, match="at least two"):
        REUSE.measure(Chance(), [patches])


def test_the_commands(homes, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    words = [*map(str, homes), "--methods", "classic", "--cache", str(tokens), "--report", str(tmp_path / "report")]
    assert main(["eval", "reuse", *words, "--landmarks", "10", "--frames-per-scene", "4"]) == 0
    assert "class AP, other scenes" in capsys.readouterr().out
