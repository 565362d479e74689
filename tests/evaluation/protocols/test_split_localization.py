"""7-Scenes, 12-Scenes, Indoor-6 and RIO10 with a house inside: the truth scores everything, chance nothing."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from locus.cli import main
from locus.errors import LocusError
from locus.evaluation import runner
from locus.evaluation.predictions import LocationPredictions, read_poses
from locus.evaluation.protocols.seven_scenes import COLOUR_FOCAL, COLOUR_FROM_DEPTH, SevenScenes
from locus.evaluation.protocols.split_localization import reprojected
from locus.evaluation.protocols.twelve_scenes import TwelveScenes
from locus.evaluation.scene_patches import EvaluationError
from locus.geometry import Camera
from locus.scenes import SceneReading
from tests.evaluation.protocols.published_layouts import LOCALIZATION, hloc_line, seven_scenes, tum_line
from tests.scenes import layouts, room

SHOTS = room.shots(12)
PLACES = {"7scenes": "chess", "12scenes": "apt1/kitchen", "indoor6": "scene1", "rio10": "seq01"}


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "cache_folder", lambda: tmp_path / "kept")


def written(name, root, write=None):
    """A scene in its published place, and its queries."""
    path = root / PLACES[name]
    path.mkdir(parents=True)
    return path, (write or LOCALIZATION[name])(path, SHOTS)


def evaluated(root, *words):
    file = root / "results.json"
    assert main(["eval", "protocol", *map(str, words), "--json", str(file)]) == 0
    return json.loads(file.read_text())


def off(pose, metres, degrees, random):
    """A pose that is wrong by so much."""
    moved, axis = random.normal(size=(2, 3))
    wrong = pose.copy()
    turn = Rotation.from_rotvec(np.radians(degrees) * axis / np.linalg.norm(axis))
    wrong[:3, :3] = turn.as_matrix() @ pose[:3, :3]
    wrong[:3, 3] += metres * moved / np.linalg.norm(moved)
    return wrong


@pytest.mark.parametrize("name", LOCALIZATION)
def test_the_truth_scores_everything_chance_nothing_and_known_errors_themselves(name, tmp_path):
    path, queries = written(name, tmp_path)
    random = np.random.default_rng(0)
    elsewhere = room.look((5.0, 4.0, 1.0), (0.0, 0.0, 3.0))
    lists = {
        "truth": [hloc_line(image, shot.world_from_camera) for image, shot in queries.items()],
        "random": [hloc_line(image, off(elsewhere, 9.0, 170.0, random)) for image in queries],
        "known": [hloc_line(image, off(shot.world_from_camera, 0.04, 3.0, random)) for image, shot in queries.items()],
        "missing": [hloc_line(*next((image, shot.world_from_camera) for image, shot in queries.items()))],
    }
    for label, lines in lists.items():
        (tmp_path / f"{label}.txt").write_text("\n".join(lines))
    found = evaluated(tmp_path, name, path, "--methods", *(f"predictions:{tmp_path / label}.txt" for label in lists))
    rows = {
        (table["title"].split(": ")[1], row["label"]): row["cells"]
        for table in found["tables"]
        for row in table["rows"]
    }
    share, cm, degrees = "share within 5 cm and 5°", "median error, cm", "median error, °"
    assert [rows[share, label][-1] for label in lists] == [1.0, 0.0, 1.0, pytest.approx(1 / len(queries))]
    assert rows[cm, "truth"][-1] == pytest.approx(0, abs=1e-6)
    assert rows[cm, "known"][-1] == pytest.approx(4.0, abs=1e-6)
    assert rows[degrees, "known"][-1] == pytest.approx(3.0, abs=1e-4)
    limits = [cell["value"] for cell in rows["share of frames within", "known"][:-1]]
    assert limits == [1, 1, 0, 0]
    assert rows["share of frames within", "missing"][-1] == pytest.approx(1 - 1 / len(queries))
    assert ("reprojection", "truth") in rows or name == "indoor6"


def test_a_model_is_asked_with_depth_and_without(tmp_path, tokens):
    path, queries = written("7scenes", tmp_path)
    found = evaluated(tmp_path, "7scenes", path, "--methods", "classic", "--cache", tokens)
    answers = found["parts"][0]["measured"]["answers"]
    assert list(answers) == ["with depth", "by colour alone"]
    assert {each["frame"] + ".color.png" for each in answers["with depth"]} == set(queries)
    labels = [row["label"] for row in found["tables"][0]["rows"]]
    assert labels == ["classic 56-d, with depth", "classic 56-d, by colour alone"]


def test_a_model_maps_indoor_six_without_depth(tmp_path, tokens, monkeypatch):
    path, queries = written("indoor6", tmp_path)
    true = {f"image-{k:06d}": shot.depth for k, shot in enumerate(SHOTS)}
    seen = []

    def found(model, scene):
        seen.extend(source.name for source in scene.sources)
        layouts.nerfstudio(tmp_path / "found", SHOTS[4:])
        return SceneReading().load(tmp_path / "found")

    monkeypatch.setattr("locus.evaluation.protocols.split_localization.with_depth", found)
    (tmp_path / "found").mkdir()
    results = evaluated(tmp_path, "indoor6", path, "--methods", "classic", "--cache", tokens)
    assert seen == sorted(true)[4:]  # no query takes part
    assert list(results["parts"][0]["measured"]["answers"]) == ["by colour alone"]
    assert len(queries) == 4


def test_the_poses_of_structure_from_motion_take_the_place_of_the_sensors(tmp_path):
    """Another world: what is right in one is wrong in the other. Frames that the list lacks are left out."""
    path, queries = written("12scenes", tmp_path)
    other = off(np.eye(4), 2.0, 60.0, np.random.default_rng(1))
    (tmp_path / "sfm").mkdir()
    for part, shots in (("train", SHOTS[4:]), ("test", SHOTS[:3])):
        start = 4 if part == "train" else 0
        lines = [
            hloc_line(f"data/frame-{start + k:06d}.color.jpg", other @ shot.world_from_camera, room.FX)
            for k, shot in enumerate(shots)
        ]
        (tmp_path / "sfm" / f"apt1_kitchen_{part}.txt").write_text("\n".join(lines))
    lines = [hloc_line(name, other @ shot.world_from_camera) for name, shot in queries.items()]
    (tmp_path / "poses_12scenes_apt1_kitchen_.txt").write_text("\n".join(lines))
    words = ["12scenes", path, "--methods", f"predictions:{tmp_path / 'poses_12scenes_apt1_kitchen_.txt'}"]
    assert evaluated(tmp_path, *words)["tables"][0]["rows"][0]["cells"] == [0.0, 0.0]
    results = evaluated(tmp_path, *words, "--poses", tmp_path / "sfm")
    assert results["tables"][0]["rows"][0]["cells"] == [1.0, 1.0]
    assert len(results["parts"][0]["measured"]["answers"]["predictions"]) == 3
    scene = TwelveScenes(poses=tmp_path / "sfm").load(path, SceneReading())
    assert scene[0].camera.fx == pytest.approx(room.FX)


def test_depth_of_seven_scenes_is_carried_to_its_colour_camera(tmp_path, monkeypatch):
    """Each camera sees the room through its own lens, a step beside the other."""
    scale = room.WIDTH / 640
    monkeypatch.setattr(room, "CX", 40.0)
    monkeypatch.setattr(room, "CY", 30.0)
    seen = {}
    for focal in (585.0, COLOUR_FOCAL):
        for name in ("FX", "FY"):
            monkeypatch.setattr(room, name, focal * scale)
        step = np.eye(4) if focal == 585.0 else np.linalg.inv(COLOUR_FROM_DEPTH)
        seen[focal] = [room.shoot(shot.name, shot.world_from_camera @ step) for shot in SHOTS]
    mixed = [
        room.Shot(d.name, c.image, d.depth, c.semantic, c.instance, d.world_from_camera)
        for c, d in zip(seen[COLOUR_FOCAL], seen[585.0], strict=True)
    ]
    path, _ = written("7scenes", tmp_path, lambda root, shots: seven_scenes(root, mixed))
    (path / "camera-intrinsics.txt").unlink()
    scene = SevenScenes().load(path, SceneReading())
    assert len(scene.queries) == 6
    expected = {shot.name: shot for shot in seen[COLOUR_FOCAL]}
    order = [*expected.values()][::2] + [*expected.values()][1::2]  # the layout deals them out to two sequences
    for frame, shot in zip(scene, order, strict=True):
        assert np.allclose(frame.world_from_camera, shot.world_from_camera, atol=1e-5)
        known = frame.depth > 0
        assert known.mean() > 0.8
        assert np.mean(np.abs(frame.depth - shot.depth)[known] < 0.05) > 0.9


def test_pixels_move_as_the_focal_length_says():
    camera = Camera(80, 60, 50.0, 50.0, 40.0, 30.0)
    found = np.eye(4)
    found[0, 3] = 0.1
    moved = reprojected(camera, np.full((60, 80), 2.0, np.float32), np.eye(4), found)
    assert moved == pytest.approx(50 * 0.1 / 2 / 100)  # a diagonal of 100 pixels
    behind = np.diag([-1.0, 1.0, -1.0, 1.0])
    assert reprojected(camera, np.full((60, 80), 2.0, np.float32), np.eye(4), behind) == 1


def test_a_folder_has_one_list_for_each_scene(tmp_path):
    shot = SHOTS[0]
    for name in ("chess/results_dense.txt", "poses_pgt_7scenes_redkitchen_.txt", "apt1_kitchen_hloc.txt"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(hloc_line("seq-01-frame-000000.color.png", shot.world_from_camera))
    asked = LocationPredictions(tmp_path)
    for scene in ("chess", "redkitchen"):
        (pose,) = asked.poses(scene, ["seq-01/frame-000000"])
        assert np.allclose(pose, shot.world_from_camera, atol=1e-9)
    with pytest.raises(EvaluationError, match=r"none of the 1 frames of apt1/kitchen .* the first frame is data/frame"):
        asked.poses("apt1/kitchen", ["data/frame-000000"])
    with pytest.raises(EvaluationError, match="should hold one list of poses whose name has kitchen in it, not none"):
        LocationPredictions(tmp_path / "chess").poses("kitchen", ["a"])


def test_trajectories_are_matched_by_time_or_by_the_names_they_tell(tmp_path):
    a, b = (shot.world_from_camera for shot in SHOTS[:2])
    (tmp_path / "times.txt").write_text(f"# time\n{tum_line('1000.01', a)}\n{tum_line('1001.5', b)}\n")
    first, second = LocationPredictions(tmp_path / "times.txt").poses("s", ["1000.000000", "1001.000000"])
    assert np.allclose(first, a, atol=1e-9)
    assert second is None  # half a second is too far
    (tmp_path / "told.txt").write_text(f"# 0 is seq-02/frame-000007\n{tum_line('0', b)}\n")
    (found,) = LocationPredictions(tmp_path / "told.txt").poses("s", ["seq-02/frame-000007"])
    assert np.allclose(found, b, atol=1e-9)


@given(st.text(max_size=200))
def test_any_text_is_poses_or_a_sentence(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("any") / "poses.txt"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    with suppress(LocusError):
        assert read_poses(file)


@pytest.mark.parametrize(
    ("name", "broken", "sentence"),
    [
        ("7scenes", "TestSplit.txt", "TestSplit.txt is missing"),
        ("12scenes", "split.txt", "should begin with `sequence0"),
        ("12scenes", "info.txt", "does not describe the color camera"),
        ("indoor6", "test.txt", "pickled files can run code"),
        ("rio10", "intrinsics.txt", "write `seq01_02 fx fy cx cy`"),
    ],
)
def test_what_is_missing_is_told_in_one_sentence(name, broken, sentence, tmp_path, capsys):
    path, queries = written(name, tmp_path)
    (path / broken).unlink()
    (tmp_path / "p.txt").write_text("\n".join(hloc_line(n, shot.world_from_camera) for n, shot in queries.items()))
    assert main(["eval", "protocol", name, str(path), "--methods", f"predictions:{tmp_path / 'p.txt'}"]) == 1
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_another_split_is_measured_anew(tmp_path):
    path, queries = written("7scenes", tmp_path)
    (tmp_path / "p.txt").write_text("\n".join(hloc_line(n, shot.world_from_camera) for n, shot in queries.items()))
    words = ["7scenes", path, "--methods", f"predictions:{tmp_path / 'p.txt'}"]
    assert evaluated(tmp_path, *words)["tables"][0]["rows"][0]["cells"] == [1.0, 1.0]
    (path / "TestSplit.txt").write_text("sequence1\nsequence2\n")
    assert evaluated(tmp_path, *words)["tables"][0]["rows"][0]["cells"] == [0.5, 0.5]
