"""Landmarks looked for in views that took no part in choosing them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from locus.cli import main
from locus.evaluation import runner
from locus.evaluation.landmark_recall import SPOTS, LandmarkRecall, figures_of, look_for
from locus.evaluation.methods import Chance, Unavailable
from locus.evaluation.runner import run
from locus.evaluation.scene_patches import EvaluationError
from locus.evaluation.true_map import TrueMap
from locus.features.dense import SceneFeatures

RECALL = LandmarkRecall(radius=0.6, random=50)


def test_a_spot_is_found_where_the_most_similar_patch_lies_within_the_radius(patches):
    points = np.array([[[[0, 0, 0], [1, 0, 0]]], [[[0.1, 0, 0], [np.nan] * 3]]], np.float32)  # two views of two patches
    features = torch.tensor([[[[[0.0, 1.0], [1.0, 0.0]]], [[[0.6, 0.8], [0.0, 1.0]]]]])
    views = SceneFeatures(patches.scene, [0, 1], points, features)
    positions, embeddings = np.zeros((2, 3), np.float32), np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    found = look_for(positions, embeddings, views, 0.2)
    assert found[0].tolist() == [[1, 0, 1], [1, 1, pytest.approx(0.6)]]
    assert found[1].tolist() == [[1, 1, 1], [1, 0, 1]]  # the patch without a point lies nowhere


def test_blind_asks_for_more_similarity_than_views_without_the_spot_have():
    # One spot in 40 views: 20 show it and find it with rising similarity; the others do not show it.
    shown = np.repeat([1.0, 0.0], 20)
    similarity = np.concatenate([np.linspace(0, 0.95, 20), np.linspace(0, 0.5, 20)])
    figures = figures_of(np.stack([shown, shown, similarity], axis=-1)[None])
    least = np.quantile(np.linspace(0, 0.5, 20), 0.95)
    assert figures == {"shown": 1.0, "blind": np.mean(np.linspace(0, 0.95, 20) > least), "times": 20.0}


def test_what_knows_the_world_is_found_again_and_random_features_are_not(rooms, tmp_path):
    paths = {"unseen": [rooms / "first"]}
    outcome = run(RECALL, [TrueMap(), Chance(), Unavailable("gone", "no weights")], paths, folder=tmp_path)
    truth, chance = (part.measured for part in outcome.parts)
    for kind in SPOTS:
        assert truth[kind]["shown"] > 0.9
        assert chance[kind]["shown"] < 0.3
    (table,) = RECALL.tables(outcome)
    assert len(table.rows) == 2 * len(SPOTS) + 1
    spots = table.rows[2]
    assert spots.label == "ground truth, random spots"
    assert spots.cells[3] == 1  # to itself


def test_halves_that_show_nothing_of_each_other_are_told(patches):
    points = patches.points.copy()
    points[6:] += 100
    with pytest.raises(EvaluationError, match="first: the second half of the frames shows nothing of the first"):
        RECALL.measure(TrueMap(), replace(patches, points=points))


@pytest.mark.parametrize("best", [0.0, 1.5])
def test_a_share_that_is_none_is_refused(best):
    with pytest.raises(EvaluationError, match="--best is a share"):
        LandmarkRecall(best=best)


def test_the_command(rooms, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    words = [str(rooms / "first"), "--methods", "classic", "--cache", str(tokens)]
    assert main(["eval", "landmarks", *words, "--radius", "0.6", "--random", "40"]) == 0
    assert "blind, × random spots" in capsys.readouterr().out
