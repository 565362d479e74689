"""Localization in maps of half the frames: which frames are asked about, and what counts as an answer."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from locus import load_scene
from locus.cli import main
from locus.demo import finding
from locus.evaluation import localization, localizers, runner
from locus.evaluation.localization import LEAST, Localization, covered
from locus.evaluation.localizers import Hloc, LandmarkLocalizer, LandmarksAlone, PointLocalizer, Sparse, ask, localizer
from locus.evaluation.methods import Chance, Truth, Unavailable
from locus.evaluation.outcome import MeasuredPart, Outcome
from locus.evaluation.runner import run
from locus.evaluation.scene_patches import EvaluationError, first_size, read_patches
from locus.evaluation.specs import MethodOptions, method_of, methods_of
from locus.evaluation.true_map import TrueMap
from locus.landmarks import LandmarkMap
from locus.tasks.depth_surfaces import Spots
from locus.tasks.localize import localize_features
from tests.scenes import layouts, room

DEPTH, COLOUR = LEAST


@pytest.fixture(scope="module")
def measured(rooms, tmp_path_factory):
    """The ceiling in two rooms of the same shape: in their own maps, in each other's and in one of both."""
    (method,) = methods_of(["truth"], MethodOptions(), {"truth": TrueMap})
    folder = tmp_path_factory.mktemp("measured")
    return run(Localization(queries=6), [method], {"unseen": [rooms / "first", rooms / "second"]}, folder=folder)


def patches_of(path, method):
    scene = load_scene(path)
    return read_patches(scene, method.grid(*first_size(scene)))


def test_halves_share_no_frame(patches):
    for split in ("halves", "interleaved", "random"):
        mapped, asked, left_out = Localization(split).rows(patches)
        assert not set(mapped) & set(asked)
        assert len(mapped) == len(patches) // 2
        assert len(mapped) + len(asked) + left_out == len(patches)
    assert len(Localization(queries=2).rows(patches)[1]) == 2


def test_halves_are_apart_in_time_and_interleaved_frames_take_turns(patches):
    everything = replace(patches, overlap=csr_array(np.ones((12, 12), np.float32)))
    assert Localization("halves").rows(everything)[:2] == ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11])
    assert Localization("interleaved").rows(everything)[:2] == ([0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11])


def test_a_query_sees_a_twentieth_of_what_a_mapped_frame_sees(patches):
    overlap = np.zeros((12, 12), np.float32)
    overlap[6:, 0] = (0.04, 0.06, 0.0, 1.0, 0.05, 0.0)
    overlap[0, 6:] = overlap[6:, 7] = 1  # neither what the map sees of a query, nor what queries see of each other
    _, asked, left_out = Localization("halves").rows(replace(patches, overlap=csr_array(overlap)))
    assert asked == [7, 9, 10]
    assert left_out == 3
    overlap[6:, 0] = 0
    with pytest.raises(EvaluationError, match=r"first: no frame sees 5% .* try another --split"):
        Localization("halves").check(replace(patches, overlap=csr_array(overlap)))


def test_frames_that_show_nothing_of_the_map_are_not_asked_about(tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    shots = room.shots(12)
    astray = {shot.name for shot in shots[::3]}
    for number, shot in enumerate(shots[::3], 1):
        shot.world_from_camera[:3, 3] += 100 * number
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", shots)
    file = tmp_path / "results.json"
    words = [str(tmp_path / "room"), "--methods", "classic", "--cache", str(tokens), "--json", str(file)]
    assert main(["eval", "localization", *words]) == 0
    (part,) = json.loads(file.read_text())["parts"]
    asked = {query["frame"] for query in part["measured"]["queries"]}
    assert asked
    assert not asked & astray
    assert f"of their patches: {6 - len(asked)}." in capsys.readouterr().out


def test_recall_counts_answers_within_both_limits():
    answers = [
        ([0.04, 4.0], 0.9),
        ([0.1, 1.0], 0.9),
        ([0.4, 9.0], 0.9),
        ([0.6, 1.0], 0.9),
        ([0.0, 0.0], 0.01),
        (None, 0),
    ]
    said = [{"error": error, "confidence": confidence, "elsewhere": [], "trust": None} for error, confidence in answers]
    queries = [{DEPTH: each, COLOUR: each, "covered": 1, "stuck": 0, "first hit": True} for each in said]
    method = Chance()
    method.label = "m"
    part = MeasuredPart("m", "s", "unseen", {"queries": queries, "left out": 0, "environments": 1})
    for table in Localization().tables(Outcome(Localization(), [method], [part], {}))[:2]:
        *recall, metres, degrees, none = table.rows[0].cells
        assert [cell.value * 6 for cell in recall] == pytest.approx([1, 1, 2, 3, 4, 4])
        assert (metres.value, degrees.value) == (0.6, 9.0)  # the worse of the middle two
        assert none == pytest.approx(2 / 6)


def test_maps_are_made_with_models(rooms, tokens, tmp_path):
    method = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    outcome = run(Localization(queries=3), [method, Truth()], {"unseen": [rooms / "first"]}, folder=tmp_path)
    (part,) = outcome.parts
    assert len(part.measured["queries"]) == 3
    assert "maps are made with models" in outcome.failures["ground truth on first"]
    assert len(Localization().tables(outcome)) == 5
    assert "<svg" in Localization().figures(outcome)[0][1]


def test_the_ground_truth_places_every_frame_that_the_map_covers(measured):
    queries = measured.measured("ground truth", "queries")
    metres, degrees = np.median(localization.errors([query[DEPTH] for query in queries], LEAST[DEPTH]), axis=0)
    assert metres < 0.25
    assert degrees < 5


def test_the_ground_truth_knows_its_environment(measured):
    table = Localization().tables(measured)[3]
    cells = dict(zip([column.name for column in table.columns], table.rows[0].cells, strict=True))
    assert cells[f"not here, {DEPTH}"].value == 1
    assert cells[f"named, {DEPTH}"].value == 1
    assert cells[f"right, {DEPTH}"].value > 0.8


def test_answers_are_judged_by_the_true_pose_and_those_elsewhere_are_wrong(measured):
    queries = measured.measured("ground truth", "queries")
    for kind, tables in zip(LEAST, Localization().tables(measured)[-2:], strict=True):
        given = [query[kind] for query in queries if query[kind]["confidence"] >= LEAST[kind]]
        assert len(given) == tables.rows[0].cells[0] > 0
        for each in given:
            metres, degrees = each["error"]
            assert each["trust"]["right"] == (metres <= 0.1 and degrees <= 5)
            assert 0 <= each["trust"]["probability"] <= 1
        elsewhere = [trust for query in queries for trust in query[kind]["trust elsewhere"]]
        assert all(trust is None or not trust["right"] for trust in elsewhere)
    figure = Localization().figures(measured)[-1]
    assert "probability" in figure[0]
    assert "<svg" in figure[1]


def test_the_least_confidence_trades_answers_for_refusals(measured):
    least = Localization().tables(measured)[4].rows[0].cells
    right, refused = np.array([cell.split(", ") for cell in least], float).T
    assert (np.diff(right) <= 0).all()
    assert (np.diff(refused) >= 0).all()


def test_an_answer_is_what_localize_says_by_itself(rooms, tokens):
    method = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    seen = method.seen(patches_of(rooms / "first", method))
    world = LandmarkMap.build(method.model, seen.take(range(0, 12, 2)))
    for row in range(1, 12, 2):
        frame = seen.frame(row)
        for kind, depth in ((DEPTH, frame.depth), (COLOUR, None)):
            plain = localize_features(world, seen.features[:, row], frame.camera, depth)
            assert plain.here == (ask(world, seen, row, kind).confidence >= LEAST[kind])


def test_landmarks_and_hloc_stand_beside_the_first_model_that_is_named(rooms, tmp_path):
    words = ["hloc", "classic", "landmarks"]
    hloc, classic, alone = methods_of(
        words, MethodOptions(resolution=None, cache=tmp_path), Localization().words(words)
    )
    if isinstance(hloc, Unavailable):
        pytest.skip(hloc.reason)
    assert isinstance(hloc, Hloc)
    assert isinstance(alone, LandmarksAlone)
    assert hloc.model.fingerprint == classic.model.fingerprint == alone.model.fingerprint
    assert len({each.fingerprint for each in (hloc, classic, alone)}) == 3
    assert type(localizer(classic)) is PointLocalizer
    found = run(
        Localization(queries=2, split="interleaved"),
        [hloc, classic, alone],
        {"unseen": [rooms / "first", rooms / "second"]},
        folder=tmp_path,
    )
    assert not found.failures
    queries = {part.method: part.measured["queries"] for part in found.parts}
    assert len(queries) == 3
    frames = [[(query["scene"], query["frame"]) for query in of_method] for of_method in queries.values()]
    assert frames[0] == frames[1] == frames[2]
    for of_method in queries.values():
        assert all(0 <= query[kind]["confidence"] <= 1 for query in of_method for kind in LEAST)


def test_a_sparse_map_is_made_of_found_depth_alone(rooms, tokens, monkeypatch):
    """Spots are made up here; tests/tasks/test_sparse_depth.py is about finding them."""
    true = load_scene(rooms / "first")
    method = Sparse("classic")
    seen = method_of("classic", MethodOptions(resolution=None, cache=tokens)).seen(patches_of(rooms / "first", method))
    bare = replace(true, sources=[replace(source, depth_path=None) for source in true.sources])
    mapped = list(range(0, len(seen), 2))

    def spots(scene, placed):
        frames = [true[index] for index in mapped]
        assert [frame.name for frame in scene] == [frame.name for frame in frames]
        pixels = frames[0].camera.pixel_grid()[::4, ::4].reshape(-1, 2)
        x, y = pixels.astype(int).T
        return [Spots(pixels, 1 / frame.depth[y, x].astype(np.float64)) for frame in frames]

    monkeypatch.setattr(localizers, "triangulated", spots)
    monkeypatch.setattr(localizers, "point_detector", lambda: None)
    monkeypatch.setattr(PointLocalizer, "placed", lambda self, seen, row: None)
    world = localizer(method).build(replace(seen, scene=bare).take(mapped))
    assert len(world.frames) == len(mapped)
    known = seen.points[mapped]
    finest = world.landmarks.position[world.landmarks.scale == np.argmin(world.radii)]
    every = known[np.isfinite(known).all(axis=-1)]
    assert (
        np.median(np.linalg.norm(finest[:, None] - every, axis=-1).min(axis=1)) < 0.1
    )  # patches are half a metre apart


def test_covered_is_the_share_of_patches_near_a_landmark(rooms, tokens):
    method = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    seen = method.seen(patches_of(rooms / "first", method))
    world = LandmarkMap.build(method.model, seen)
    points = np.full((2, 2, 3), np.nan, np.float32)
    assert covered(world, points) == 0
    points[0] = world.landmarks.position[0]
    points[1, 0] = 1000
    assert covered(world, points) == pytest.approx(2 / 3)


def test_the_demo_counts_as_the_benchmark_does_by_landmarks(rooms, tokens, tmp_path, monkeypatch):
    monkeypatch.setattr(localization, "localizer", LandmarkLocalizer)
    method = method_of("classic", MethodOptions(resolution=None, cache=tokens))
    paths = [rooms / "first", rooms / "second"]
    outcome = run(finding.PROTOCOL, [method], {"unseen": paths}, folder=tmp_path)
    queries = outcome.measured(method.label, "queries")
    scenes = [patches_of(path, method) for path in paths]
    (mapped, asked, _), (_, elsewhere, _) = map(finding.PROTOCOL.rows, scenes)
    here, there = map(method.seen, scenes)
    world = LandmarkMap.build(method.model, here.take(mapped))
    found = finding.find("classic", world, here.take(asked), there.take(elsewhere))
    own, other = ([query for query in queries if query["scene"] == path.name] for path in paths)
    for kind, answers in found.here.items():
        expected = localization.errors([query[kind] for query in own], LEAST[kind])
        np.testing.assert_allclose(answers.errors, expected)
        assert found.elsewhere[kind].refused == sum(query[kind]["elsewhere"][0] < LEAST[kind] for query in other)


def test_the_command(rooms, tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")
    words = [str(rooms / "first"), str(rooms / "second"), "--methods", "classic", "--cache", str(tokens)]
    assert main(["eval", "localization", *words, "--queries", "2", "--split", "interleaved", "--elsewhere", "1"]) == 0
    printed = capsys.readouterr().out
    for text in ("0.05 m, 5°", "0.25 m, 2°", "0.5 m, 10°", "not here, with depth", "named, by colour alone"):
        assert text in printed
