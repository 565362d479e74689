"""Pose errors in closed form, SuperGlue's AUC, pairs files, predictions, and whole rows of the table."""

import json
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from locus.cli import main
from locus.errors import LocusError
from locus.evaluation import pose, runner
from locus.evaluation.calibration import answered
from locus.evaluation.matchers import KEYPOINT_MATCHERS, TrueMatcher
from locus.evaluation.methods import Chance
from locus.evaluation.metrics import area_under_curve, error_of, median
from locus.evaluation.pairs import draw_pairs, named_pairs, read_pairs
from locus.evaluation.pose import RelativePoses
from locus.evaluation.pose_tables import errors
from locus.evaluation.predictions import PosePredictions
from locus.evaluation.runner import run
from locus.evaluation.scene_patches import EvaluationError, ScenePatches
from locus.geometry import invert
from tests.scenes import room

angles = st.floats(-3.1, 3.1)


def motion(rotation, way):
    """b_from_a of a camera B that is turned and stands at `way` in A's frame."""
    a_from_b = np.eye(4)
    a_from_b[:3, :3], a_from_b[:3, 3] = rotation.as_matrix(), way
    return invert(a_from_b)


@given(st.tuples(angles, angles, angles), st.floats(0, np.pi), st.integers(0, 1000))
def test_errors_in_closed_form(vector, turn, seed):
    random = np.random.default_rng(seed)
    true = Rotation.from_rotvec(vector)
    axis = random.normal(size=3)
    axis /= np.linalg.norm(axis)
    way, off = random.normal(size=3), random.normal(size=3)
    error = error_of(
        motion(true * Rotation.from_rotvec(turn * axis), way + off), motion(true, way), scale_from_truth=False
    )
    assert error.degrees == pytest.approx(np.degrees(turn), abs=1e-5)
    assert error.metres == pytest.approx(np.linalg.norm(off), rel=1e-9)
    cosine = abs(way @ (way + off)) / np.linalg.norm(way) / np.linalg.norm(way + off)
    assert error.direction == pytest.approx(np.degrees(np.arccos(min(1, cosine))), abs=1e-5)


def test_with_the_scale_from_the_truth_only_the_direction_counts():
    same = Rotation.identity()
    true = motion(same, [0.0, 0.0, 3.0])
    assert error_of(motion(same, [0.0, 0.0, 1.0]), true, scale_from_truth=True).metres == pytest.approx(0)
    assert error_of(motion(same, [1.0, 0.0, 0.0]), true, scale_from_truth=True).metres == pytest.approx(3 * np.sqrt(2))
    assert error_of(motion(same, [0.0, 0.0, 1.0]), true, scale_from_truth=False).metres == pytest.approx(2)
    assert error_of(motion(same, [0.0, 0.0, 0.0]), true, scale_from_truth=True).direction == 90
    still = motion(same, [0.0, 0.001, 0.0])
    assert error_of(motion(same, [1.0, 0.0, 0.0]), still, scale_from_truth=True).direction == 0


def superglue_auc(errors, threshold):
    """As published with SuperGlue."""
    errors = np.concatenate([[0.0], np.sort(errors)])
    recall = np.arange(len(errors)) / (len(errors) - 1)
    last = np.searchsorted(errors, threshold)
    r = np.concatenate([recall[:last], [recall[last - 1]]])
    e = np.concatenate([errors[:last], [threshold]])
    return np.trapezoid(r, x=e) / threshold


@given(st.lists(st.floats(0, 200) | st.just(np.inf), min_size=1, max_size=30), st.sampled_from([5.0, 10.0, 20.0]))
def test_auc_is_superglues(errors, threshold):
    errors = np.array(errors)
    expected = superglue_auc(errors, threshold)
    assert area_under_curve(errors, threshold) == pytest.approx(expected, abs=1e-9)
    assert area_under_curve(np.stack([errors, errors]), threshold) == pytest.approx([expected] * 2, abs=1e-9)


def test_auc_of_perfect_and_useless_poses():
    assert area_under_curve(np.zeros(5), 5.0) == 1
    assert area_under_curve(np.full(5, np.inf), 5.0) == 0


def test_the_median_of_many_failures_is_infinite():
    assert median(np.array([1.0, np.inf, np.inf])) == np.inf
    assert median(np.array([1.0, 2.0, np.inf])) == 2


def test_pairs_are_drawn_by_overlap_and_their_motion_is_the_scenes(patches):
    pairs = draw_pairs(patches, 4, 0)
    assert pairs
    for pair in pairs:
        assert pair.overlap == pytest.approx(min(patches.overlap[pair.a, pair.b], patches.overlap[pair.b, pair.a]))
        frame_a, frame_b = patches.frame(pair.a), patches.frame(pair.b)
        assert np.allclose(frame_b.world_from_camera @ pair.b_from_a, frame_a.world_from_camera)
    assert [(p.a, p.b) for p in pairs] == [(p.a, p.b) for p in draw_pairs(patches, 4, 0)]


def test_pairs_are_drawn_with_the_overlap_that_is_asked_for(patches):
    everything = draw_pairs(patches, 1000, 0, (0.0, 1.0))
    assert len(everything) == len(patches) * (len(patches) - 1) / 2
    asked = RelativePoses(pairs=1000, overlap=(0.2, 0.4, 0.6)).compared(patches)
    within = [pair for pair in everything if 0.2 <= pair.overlap < 0.6]
    assert {frozenset((pair.a, pair.b)) for pair in asked} == {frozenset((pair.a, pair.b)) for pair in within}
    assert 0 < len(asked) < len(everything)


def test_pairs_can_be_asked_to_lie_apart(patches):
    centres = [patches.frame(row).world_from_camera[:3, 3] for row in range(len(patches))]
    everything = draw_pairs(patches, 1000, 0, (0.0, 1.0))
    apart = [np.linalg.norm(centres[pair.a] - centres[pair.b]) for pair in everything]
    limit = float(np.mean(np.sort(apart)[len(apart) // 2 :][:2]))  # between two of them: rounding decides nothing
    asked = draw_pairs(patches, 1000, 0, (0.0, 1.0), baseline=limit)
    assert len(asked) == sum(distance >= limit for distance in apart) < len(everything)
    assert all(np.linalg.norm(centres[pair.a] - centres[pair.b]) >= limit for pair in asked)


@pytest.mark.parametrize("edges", [(0.1,), (0.5, 0.2), (0.2, 0.2), (-0.1, 1.0), (0.1, 1.5)])
def test_bad_ranges_of_overlap_are_one_sentence(edges):
    with pytest.raises(EvaluationError, match="rising shares from 0 to 1"):
        RelativePoses(overlap=edges)


def superglue_line(patches, a, b, motion):
    """With intrinsics as SuperGlue keeps them: the centre of the top-left pixel is at (0, 0)."""
    matrix = patches.frame(a).camera.matrix - [[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]
    intrinsics = " ".join(str(value) for value in matrix.ravel())
    names = f"{patches.frame(a).name}.png {patches.scene.name}/{patches.frame(b).name}.png"
    return f"{names} 0 0 {intrinsics} {intrinsics} {' '.join(str(v) for v in motion.ravel())}"


def test_superglues_lines_bring_their_own_motion(patches, tmp_path):
    told = motion(Rotation.from_euler("y", 20, degrees=True), [0.3, 0.0, 0.1])
    file = tmp_path / "pairs.txt"
    file.write_text(
        f"# pairs\n\n{superglue_line(patches, 0, 1, told)}\n{patches.frame(2).name} {patches.frame(3).name}\n"
    )
    first, second = named_pairs(patches, read_pairs(file))
    assert (first.a, first.b, second.a, second.b) == (0, 1, 2, 3)
    assert np.allclose(first.b_from_a, told)
    assert np.allclose(first.cameras[0].matrix, patches.frame(0).camera.matrix)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no pair"),
        ("a b c\n", "line 1: a pair has 2 names"),
        ("a b\na b\n", "line 2: the pair a b is there twice"),
        ("a a\n", "line 1: a is paired with itself"),
        ("s/a.png s/a\n", "line 1: s/a.png is paired with itself"),
        ("a b 1 0 " + "1 " * 34, "turned images"),
        ("a b 0 0 " + "1 " * 34, "not rigid"),
        ("a b 0 0 " + "x " * 34, "line 1: could not convert"),
    ],
)
def test_bad_pairs_files_are_one_sentence(tmp_path, text, words):
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(EvaluationError, match=words):
        read_pairs(tmp_path / "pairs.txt")


POSE = np.eye(4).tolist()
MIRRORED = np.diag([1.0, 1.0, -1.0, 1.0]).tolist()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"scene": "s", "a": "1", "b": "2", "b_from_a": MIRRORED}], "line 1: the pose is not rigid"),
        ([{"scene": "s", "a": "1", "b": "2", "b_from_a": [1, 2]}], "line 1: b_from_a has shape"),
        ([{"scene": "s", "a": "1", "b": "2"}], "line 1: b_from_a is missing"),
        ([{"scene": "s", "a": "1", "b": "2", "b_from_a": POSE}] * 2, "line 2: the pair s 1 2 is there twice"),
        (["no object"], "line 1"),
    ],
)
def test_bad_predictions_are_one_sentence(tmp_path, lines, words):
    file = tmp_path / "theirs.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(LocusError, match=words):
        PosePredictions(file)


def test_bad_predictions_end_the_command(rooms, tmp_path, capsys):
    file = tmp_path / "theirs.jsonl"
    file.write_text(json.dumps({"scene": "s", "a": "1", "b": "2", "b_from_a": MIRRORED}))
    words = ["eval", "pose", str(rooms / "first"), "--methods", "random", f"predictions:{file}"]
    assert main(words) == 2
    assert "line 1: the pose is not rigid" in capsys.readouterr().err


def test_predictions_must_have_every_pair(tmp_path):
    file = tmp_path / "theirs.jsonl"
    file.write_text(json.dumps({"scene": "s", "a": "1", "b": "2", "b_from_a": None}))
    assert PosePredictions(file).poses("s", [("1", "2")]) == [None]
    with pytest.raises(EvaluationError, match="misses 1 of 2 pairs of s, the first 2 3"):
        PosePredictions(file).poses("s", [("1", "2"), ("2", "3")])


@pytest.mark.parametrize(("solver", "scale"), [("5-point", "truth"), ("3d-3d", "metric")])
def test_true_matches_give_true_poses(rooms, tmp_path, solver, scale):
    protocol = RelativePoses(pairs=3, solver=solver, translation_scale=scale)
    outcome = run(protocol, [TrueMatcher()], {"unseen": [rooms / "first"]}, folder=tmp_path)
    found = errors(outcome, "ground truth")
    assert len(found) >= 3
    assert np.median(found[:, 1]) < 1.5
    assert np.median(found[:, 0]) < 0.12


def test_true_matches_are_right_matches_and_random_ones_hardly_ever(rooms, tmp_path):
    protocol = RelativePoses(pairs=3, solver="3d-3d")
    outcome = run(protocol, [TrueMatcher(), Chance()], {"unseen": [rooms / "first"]}, folder=tmp_path)
    matches, refused, trust, _ = protocol.tables(outcome)[4:]
    (true_count, true_right, _), (count, right, stuck) = (row.cells for row in matches.rows)
    pairs = outcome.parts[0].measured["pairs"]
    assert true_count.value == pytest.approx(np.mean([pair["matches"] for pair in pairs]))
    assert true_right.value > 0.9
    assert count.value > 0
    assert right.value < 0.2
    assert stuck.value < 0.5
    right = [pair["trust"] for pair in pairs if pair["trust"] and pair["trust"]["right"]]
    assert refused.rows[0].cells[:2] == ["0 of 0", f"{sum(map(answered, right))} of {len(right)}"]
    answers, share, probability, *_ = trust.rows[0].cells
    assert answers == len([pair for pair in pairs if pair["errors"]])
    assert share == np.mean([pair["trust"]["right"] for pair in pairs if pair["trust"]]) > 0.9
    assert probability is None or probability > 0.8  # None: no curve was fitted to keypoints


def test_the_table_counts_pairs_without_a_pose_as_wrong(rooms, patches, tmp_path):
    protocol = RelativePoses(pairs=3)
    pairs = draw_pairs(patches, 3, 0)
    lines = [
        {"scene": "first", "a": patches.frame(p.a).name, "b": patches.frame(p.b).name, "b_from_a": p.b_from_a.tolist()}
        for p in pairs
    ]
    lines[0]["b_from_a"] = None
    file = tmp_path / "theirs.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    outcome = run(protocol, [PosePredictions(file)], {"unseen": [rooms / "first"]}, folder=tmp_path)
    main_table, auc, auc_by_overlap, by_overlap, published = outcome.benchmark.tables(outcome)
    cells = main_table.rows[0].cells
    share = 1 - 1 / len(pairs)
    assert [cell.value for cell in cells] == pytest.approx([0, 0, share, 0, 0, share], abs=1e-5)
    assert [cell.value for cell in auc.rows[0].cells[:3]] == pytest.approx([share] * 3, abs=1e-3)
    assert auc.rows[0].cells[3] == pytest.approx(1 / len(pairs))
    assert len(by_overlap.rows) == 1
    assert published.rows[-1].label == "LoCUS"
    assert {row.kind for row in main_table.rows} == {"measured"}  # no row of other data beside ours
    parts = [cell for cell in auc_by_overlap.rows[0].cells[2::3] if cell is not None]  # AUC@20 of each range
    assert min(cell.value for cell in parts) < 1 - 1 / len(pairs) < max(cell.value for cell in parts)


def test_another_matcher_of_points_is_measured_again(monkeypatch):
    first = RelativePoses().fingerprint()
    monkeypatch.setattr(pose, "points_fingerprint", lambda: "another")
    assert RelativePoses().fingerprint() != first
    assert RelativePoses(rule="mutual").fingerprint() == RelativePoses(rule="mutual").fingerprint()


def test_other_seeds_of_ransac_count_as_pairs_of_their_own(rooms, tmp_path):
    once, thrice = (
        run(RelativePoses(pairs=2, runs=runs), [TrueMatcher()], {"unseen": [rooms / "first"]}, folder=tmp_path)
        for runs in (1, 3)
    )
    first, all_runs = (errors(outcome, "ground truth") for outcome in (once, thrice))
    assert len(all_runs) == 3 * len(first)
    np.testing.assert_array_equal(all_runs[::3], first)


def test_a_pairs_file_is_told_by_what_is_in_it(rooms, patches, tmp_path):
    file = tmp_path / "pairs.txt"
    protocol = RelativePoses(pairs_file=file)
    counts = []
    for last in (1, 2):
        file.write_text("".join(f"{patches.frame(0).name} {patches.frame(b).name}\n" for b in range(1, last + 1)))
        outcome = run(protocol, [TrueMatcher()], {"unseen": [rooms / "first"]}, folder=tmp_path / "kept")
        counts.append(len(errors(outcome, "ground truth")))
    assert counts == [1, 2]
    assert json.loads(json.dumps(outcome.json()))["protocol"]["pairs_file"] == str(file)


def test_a_named_frame_is_of_the_scene_whose_folder_it_is_in(rooms, patches, tmp_path):
    first, second = patches.frame(0).name, patches.frame(1).name
    file = tmp_path / "pairs.txt"
    file.write_text(f"second/{first}.png second/{second}.png\nscans/first/{first}.jpg first/{second}\nx {second}\n")
    assert [(pair.a, pair.b, pair.line) for pair in named_pairs(patches, read_pairs(file))] == [(0, 1, 1)]
    outcome = run(RelativePoses(pairs_file=file), [TrueMatcher()], {"unseen": [rooms / "first"]}, folder=tmp_path)
    notes = " ".join(outcome.benchmark.tables(outcome)[0].notes)
    assert f"2 of 3 pairs of {file} are of no scene here, the first second/{first}.png second/{second}.png." in notes


def test_metric_scale_takes_depth():
    with pytest.raises(EvaluationError, match="3d-3d"):
        RelativePoses(translation_scale="metric")


def test_the_command_takes_features_sift_and_a_filled_template(rooms, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    template = tmp_path / "theirs.jsonl"
    words = ["eval", "pose", str(rooms / "first"), "--pairs", "2", "--cache", str(tokens), "--methods", "sift-ratio"]
    assert main([*words, "--template", str(template)]) == 0
    assert "without poses" in capsys.readouterr().out
    told = [json.loads(line) for line in template.read_text().splitlines()]
    assert all(line["b_from_a"] is None for line in told)
    report = ["--report", str(tmp_path / "report")]
    assert main([*words, "classic", "truth", f"predictions:{template}", *report]) == 0
    printed = capsys.readouterr().out
    assert "SIFT, ratio 0.8" in printed
    assert "theirs" in printed
    assert "<svg" in (tmp_path / "report" / "report.html").read_text()


def test_sift_finds_a_shifted_image(patches):
    """Twelve pixels further right in the second of two images."""
    image = np.random.default_rng(0).integers(0, 255, (24, 32, 3)).astype(np.uint8)
    image = cv2.resize(image, (room.WIDTH, room.HEIGHT), interpolation=cv2.INTER_CUBIC)

    class Shifted(ScenePatches):
        def frame(self, row):
            return SimpleNamespace(image=np.roll(image, 12 * row, axis=1), camera=patches.frame(0).camera)

    matches = KEYPOINT_MATCHERS["sift-ratio"]().match(Shifted(**vars(patches)), 0, 1)
    shift = matches.pixels_b - matches.pixels_a
    assert len(matches) > 20
    assert np.mean(np.abs(shift - [12, 0]).max(axis=1) < 0.5) > 0.9


def test_features_at_random_are_no_pose_or_a_wrong_one(rooms, tmp_path):
    outcome = run(RelativePoses(pairs=4, solver="3d-3d"), [Chance()], {"unseen": [rooms / "first"]}, folder=tmp_path)
    found = errors(outcome, "random")
    assert (found[:, 1] > 10).mean() > 0.8
