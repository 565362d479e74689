"""Retrieval: the ceiling is 1, the floor is chance, and the figures are those of training's own validation."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from locus import load_scene
from locus.evaluation.methods import Chance, Method, Truth
from locus.evaluation.retrieval import Retrieval
from locus.evaluation.scene_patches import EvaluationError, read_patches
from locus.evaluation.specs import MethodOptions, method_of
from locus.objective import vectorized_smooth_ap_reference
from locus.training import Settings
from locus.training.batches import Batch
from locus.training.validation import precision
from tests.scenes import layouts, room

PROTOCOL = Retrieval(radii=(0.3,), frames_per_batch=6, batches=3, landmarks=40)


class Lucky(Method):
    """The points themselves, a little off: as good as a method that is not the ceiling gets."""

    label = fingerprint = "lucky"

    def features(self, patches, radius):
        points = patches.points + np.random.default_rng(0).normal(scale=0.05, size=patches.points.shape)
        return Truth().features(replace(patches, points=points.astype(np.float32)), radius)


def batches(method: Method, patches, protocol=PROTOCOL):
    return protocol.measure(method, patches)["radii"]["0.3"]


def test_ground_truth_scores_one(patches):
    for batch in batches(Truth(), patches):
        for view in ("all pairs", "cross-view"):
            assert batch[view]["AP"] == pytest.approx(1, abs=1e-6)
            assert batch[view]["V-Smooth-AP"] is None  # its cosines all lie within a temperature of 1
            assert min(batch[view]["curve"]) == pytest.approx(1, abs=1e-4)


def test_random_features_score_what_chance_gives(patches):
    measured = batches(Chance(), patches)
    for view in ("all pairs", "cross-view"):
        chance = np.mean([batch[view]["chance"] for batch in measured])
        assert np.mean([batch[view]["AP"] for batch in measured]) == pytest.approx(chance, rel=0.2)


def test_no_method_beats_the_ground_truth_and_colour_statistics_beat_chance(patches, tokens):
    classic = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    found = batches(classic, patches)
    for other in (found, batches(Chance(), patches), batches(Lucky(), patches)):
        for ceiling, batch in zip(batches(Truth(), patches), other, strict=True):
            assert all(batch[view]["AP"] <= ceiling[view]["AP"] for view in ("all pairs", "cross-view"))
    assert np.mean([batch["cross-view"]["AP"] / batch["cross-view"]["chance"] for batch in found]) > 1.2


def test_smooth_ap_is_the_definition(patches, tokens):
    """The quadratic one, on the same pairs."""
    from locus.objective import retrieval_sets

    classic = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    batch = next(PROTOCOL.drawn(patches))
    features = classic.features(patches, 0.3)[batch.rows].flatten(0, 2)
    for view, left_out in (("all pairs", False), ("cross-view", True)):
        sets = retrieval_sets(*batch.geometry, 0.3, 50.0, exclude_same_frame=left_out)
        expected = vectorized_smooth_ap_reference(features @ features[batch.landmarks].T, *sets, 0.01)
        assert batches(classic, patches)[0][view]["V-Smooth-AP"] == pytest.approx(float(expected), abs=1e-4)


def test_the_figures_are_those_of_validation_while_training(patches, tokens):
    classic = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    batch = next(PROTOCOL.drawn(patches))
    maps = classic.features(patches, 0.3)[batch.rows]
    stub = Batch([(maps.flatten(1, 2), patches.grid)], *batch.geometry)
    expected = precision(lambda tokens, grid: tokens.unflatten(1, grid)[None], [stub], Settings(radii=(0.3,)))[0]
    first = batches(classic, patches)[0]
    assert first["all pairs"]["AP"] == pytest.approx(expected["all pairs"])
    assert first["cross-view"]["AP"] == pytest.approx(expected["cross-view"])


def test_batches_are_the_same_in_every_run_and_for_every_method(rooms, patches):
    again = read_patches(load_scene(rooms / "first"), (9, 12))
    for batch, other in zip(PROTOCOL.drawn(patches), PROTOCOL.drawn(again), strict=True):
        assert batch.rows.tolist() == other.rows.tolist()
        assert torch.equal(batch.landmarks, other.landmarks)


def test_one_frame_is_refused(tmp_path):
    layouts.nerfstudio(tmp_path, room.shots(1))
    with pytest.raises(EvaluationError, match="two are needed"):
        read_patches(load_scene(tmp_path))


def test_frames_that_share_nothing_are_refused(tmp_path):
    shots = room.shots(2)
    for shot, shift in zip(shots, (0, 100), strict=True):
        shot.world_from_camera[:3, 3] += shift
    layouts.nerfstudio(tmp_path, shots)
    with pytest.raises(EvaluationError, match="no spot is seen in two frames"):
        PROTOCOL.measure(Truth(), read_patches(load_scene(tmp_path)))


def test_a_frame_that_cannot_be_read_is_left_out_with_a_word(tmp_path):
    layouts.nerfstudio(tmp_path, room.shots(4))
    next(tmp_path.rglob("*000002*.png")).write_bytes(b"no picture")
    with pytest.warns(UserWarning, match="1 of 4 frames are left out"):
        assert len(read_patches(load_scene(tmp_path))) == 3
