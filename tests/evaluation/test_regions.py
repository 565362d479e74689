"""Spots and marked things in other views, and how well regions fit."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, jaccard_score

from locus import load_scene
from locus.cli import main
from locus.evaluation import regions, runner
from locus.evaluation.methods import Chance, Method, Truth
from locus.evaluation.regions import THRESHOLDS, Regions, box_overlap, instances, overlap_of, precision
from locus.evaluation.runner import run
from locus.evaluation.scene_patches import read_patches
from tests.tasks import labelled_room

REGIONS = Regions(radius=0.3, queries=4)


class Objects(Method):
    """Features that say which thing a patch shows most of, and nothing else."""

    label = "objects"
    fingerprint = "objects"

    def features(self, patches, radius):
        maps = torch.from_numpy(instances(patches)).long()
        shares = F.adaptive_avg_pool2d(F.one_hot(maps, 8).permute(0, 3, 1, 2).float(), patches.grid)
        return F.normalize(shares.permute(0, 2, 3, 1), dim=-1)


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    root = tmp_path_factory.mktemp("homes")
    return [labelled_room.write(root / name) for name in ("one", "two")]


@pytest.fixture(scope="module")
def home(homes):
    return read_patches(load_scene(homes[0]), (12, 16))


@pytest.fixture(scope="module")
def outcome(homes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    return run(REGIONS, [Objects(), Chance(), Truth()], {"unseen": homes}, folder=folder)


def test_metrics_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    found, truth, scores = rng.random((3, 5, 7)) < 0.4, rng.random((3, 5, 7)) < 0.4, rng.random(105)
    assert overlap_of(found, truth) == pytest.approx(jaccard_score(truth.ravel(), found.ravel()))
    assert precision(scores, truth.ravel()) == pytest.approx(average_precision_score(truth.ravel(), scores))


def test_boxes_overlap_as_their_pixels_do():
    masks = np.zeros((2, 20, 20), bool)
    masks[0, 2:9, 3:12] = masks[1, 5:15, 1:8] = True
    assert box_overlap((3, 2, 12, 9), (1, 5, 8, 15)) == pytest.approx(overlap_of(*masks))
    assert box_overlap(None, (1, 5, 8, 15)) == 0


def test_pixels_lie_on_things_and_their_truth_in_other_views(home):
    things = instances(home)
    drawn = list(REGIONS.pixels(home, things))
    assert len(drawn) == 4
    for view, row, column, (spot, thing) in drawn:
        frame = home.frame(view)
        kinds = {label.id: label.kind for label in home.scene.classes}
        assert kinds[frame.semantic[row, column]] == "thing"
        assert not spot[view].any()
        assert not thing[view].any()
        for other, mask in enumerate(thing):
            assert (home.frame(other).instance[mask] == frame.instance[row, column]).all()


def test_features_that_know_objects_find_objects(outcome):
    objects, chance = (part.measured for part in outcome.parts)
    assert len(objects["spots"]) == 8
    best = [np.mean([query["object"] for query in part["spots"]], axis=0).max() for part in (objects, chance)]
    assert best[0] > 0.6
    assert best[1] < 0.1
    ranking = [np.mean([thing["AP, own scene"] for thing in part["things"]]) for part in (objects, chance)]
    assert ranking[0] > 0.95 > ranking[1]
    # The same things stand in both rooms, which these features cannot know.
    assert np.mean([thing["AP, all scenes"] for thing in objects["things"]]) < 0.9
    assert np.mean([value for thing in objects["things"] for value in thing["mask IoU"]]) > 0.6


def test_the_tables_and_the_curves(outcome):
    assert "regions have no ceiling" in outcome.failures["ground truth on one, two"]
    spots, things, there = REGIONS.tables(outcome)
    assert [row.label for row in spots.rows] == [
        f"{name}, {truth}" for name in ("objects", "random") for truth in regions.TRUTHS
    ]
    mean = np.mean([query["object"] for query in outcome.parts[0].measured["spots"]], axis=0)
    assert spots.rows[1].cells[0] == pytest.approx(mean[THRESHOLDS.index(0.4)])
    assert spots.rows[1].cells[-2].startswith(f"{mean.max():.3f} at")
    assert len(things.rows[0].cells) == len(things.columns) == 4
    found = [float(np.mean([s >= 0.5 for t in outcome.parts[0].measured["things"] for s in t["shown"]]))]
    assert there.rows[0].cells[0].startswith(f"{found[0]:.3f}, ")
    assert "<svg" in REGIONS.figures(outcome)[0][1]


def test_the_command_tells_scenes_without_things(homes, rooms, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    words = [str(homes[0]), str(rooms / "first"), "--methods", "classic", "--cache", str(tokens)]
    file = tmp_path / "results.json"
    assert main(["eval", "regions", *words, "--queries", "2", "--radius", "0.3", "--json", str(file)]) == 1
    told = capsys.readouterr()
    assert "AP of the views" in told.out
    assert "first has no labelled things" in " ".join(told.err.split())
    assert json.loads(file.read_text())["parts"][0]["measured"]["scenes"] == 1
