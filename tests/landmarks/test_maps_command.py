"""map, localize and retrieve, as typed."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from PIL import Image

from locus.cli import main
from locus.commands.options import counted
from locus.errors import WeightsError
from locus.files import lock
from locus.landmarks import LandmarkMap
from locus.model import LoCUS
from locus.tasks import placed_points
from locus.tasks.localize import localize
from locus.tasks.place_graph import PlaceGraph
from tests.networks import save
from tests.scenes import layouts, room

CAMERA = (room.FX, room.FY, room.CX, room.CY)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A room, and its map by the classic features."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "room").mkdir()
    layouts.nerfstudio(folder / "room", room.shots(16))
    assert run("map", folder / "room", "--model", "classic", "--out", folder / "map", cache=folder) == 0
    return folder


def run(*words, cache=None):
    more = [] if cache is None else ["--cache", str(cache / "cache")]
    return main([*map(str, words), *more])


def test_a_map_has_its_files(here):
    stated = json.loads((here / "map/map.json").read_text())
    assert stated["environments"] == ["room"]
    cloud = trimesh.load(here / "map/landmarks.ply")
    assert len(cloud.vertices) == stated["landmarks"] > 10


def test_a_map_computes_no_overlap_of_frames_which_it_would_not_use(here):
    kept = {file.parent.name for file in (here / "cache").rglob("*") if file.is_file()}
    assert kept
    assert "overlap" not in kept


def test_features_are_computed_of_the_frames_asked_for_alone(here, tmp_path):
    words = ("map", here / "room", "--model", "classic", "--frames", "::4", "--out", tmp_path / "map")
    assert run(*words, cache=tmp_path) == 0
    tokens = [file for file in (tmp_path / "cache").rglob("*") if file.parent.name.startswith("classic-")]
    assert len(tokens) == 4


def test_frames_of_the_map_are_found(here, capsys):
    out, answers = here / "poses.txt", here / "answers.json"
    code = run("localize", here / "room", "--map", here / "map", "--model", "classic", "--out", out, "--json", answers)
    assert code == 0
    said = capsys.readouterr().out
    found = json.loads(answers.read_text()).values()
    assert all("stuck" in answer for answer in found)
    assert {answer["environment"] for answer in found} <= {"room", None}
    errors = np.array([list(answer["error"].values()) for answer in found if "error" in answer])
    assert f"{len(errors)} of 16 found in the map" in said
    assert "matches at the same image position" in said
    assert len(errors) >= 14
    assert (np.median(errors, axis=0) < [0.1, 4]).all()  # metres, degrees
    assert errors[:, 0].max() < 0.3
    assert len(np.loadtxt(out, ndmin=2)) == len(errors)


def test_without_keypoints_the_map_says_why_and_has_landmarks(here, tmp_path, capsys, monkeypatch):
    def lacking():
        raise WeightsError("keypoint networks need kornia")

    monkeypatch.setattr(placed_points, "point_detector", lacking)
    assert run("map", here / "room", "--model", "classic", "--out", tmp_path / "map", cache=here) == 0
    said = capsys.readouterr().out
    assert (
        "These frames were mapped without points, which would make poses exact: keypoint networks need kornia" in said
    )
    assert not (tmp_path / "map/points.safetensors").exists()
    stated = json.loads((tmp_path / "map/map.json").read_text())
    assert (stated["points"], stated["provenance"]["scenes"][0]["points"]) == (None, 0)


def test_an_image_file_needs_no_scene(here, capsys):
    image = next((here / "room/images").iterdir())
    code = run("localize", image, "--map", here / "map", "--model", "classic", "--min-confidence", 0)
    assert code in (0, 1)  # its camera is a guess
    assert "The camera is a guess" in capsys.readouterr().out


def test_a_pose_by_a_guessed_camera_does_not_say_how_likely_right_it_is(here, tmp_path, capsys):
    """However good the guess, nobody knows it."""
    image, answers = next((here / "room/images").iterdir()), tmp_path / "answers.json"
    words = ["localize", image, "--map", here / "map", "--model", "classic", "--min-confidence", 0, "--json", answers]
    told = []
    for camera in (["--fov", 2 * np.degrees(np.arctan(room.WIDTH / 2 / room.FX))], ["--camera", *CAMERA]):
        assert run(*words, *camera) == 0
        told.append(next(iter(json.loads(answers.read_text()).values())))
    assert (told[0]["probability"], told[0]["covariance"]) == (None, None)
    assert told[1]["probability"] > 0
    by_guess, by_known = capsys.readouterr().out.split("The camera is a guess")
    assert "probability" not in by_guess
    assert "probability" in by_known


def test_what_cannot_be_used_is_named_and_counted_and_the_rest_goes_on(here, tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(b"no picture")
    Image.new("RGB", (640, 3)).save(tmp_path / "b.png")
    shutil.copy(next((here / "room/images").iterdir()), tmp_path / "c.png")
    run("localize", tmp_path, "--map", here / "map", "--model", "classic", "--json", tmp_path / "answers.json")
    said = capsys.readouterr().out
    assert "a.png: could not be used" in said
    assert "b.png: could not be used" in said
    assert "of 3 found in the map, 2 could not be used" in said
    assert "matches" in json.loads((tmp_path / "answers.json").read_text())["c.png"]


def test_answers_are_written_as_they_come_and_when_it_is_stopped(here, tmp_path, capsys, monkeypatch):
    asked, seen = [], []

    def interrupted(*arguments, **options):
        asked.append(arguments)
        if len(asked) == 3:
            seen.extend(json.loads((tmp_path / "answers.json").read_text()))
        if len(asked) == 4:
            raise KeyboardInterrupt
        return localize(*arguments, **options)

    monkeypatch.setattr("locus.tasks.localize.localize", interrupted)
    monkeypatch.setattr("locus.commands.maps.SECONDS", 0.0)
    files = ("--out", tmp_path / "poses.txt", "--json", tmp_path / "answers.json")
    assert run("localize", here / "room", "--map", here / "map", "--model", "classic", *files) == 130
    assert len(seen) == 2
    assert len(json.loads((tmp_path / "answers.json").read_text())) == 3
    assert (tmp_path / "poses.txt").exists()
    assert "3 of 16 images" in capsys.readouterr().out


def test_frames_of_the_same_name_in_two_scenes_are_all_localized(here, tmp_path, capsys):
    (tmp_path / "other").mkdir()
    layouts.nerfstudio(tmp_path / "other", room.shots(16))
    answers = tmp_path / "answers.json"
    words = ("localize", here / "room", tmp_path / "other", "--map", here / "map", "--model", "classic")
    run(*words, "--json", answers)
    assert len(json.loads(answers.read_text())) == 32


def test_the_frame_itself_is_the_most_similar(here, capsys):
    ranked = here / "ranked.json"
    assert run("retrieve", f"{here / 'room'}:3", "--map", here / "map", "--model", "classic", "--json", ranked) == 0
    answer = json.loads(ranked.read_text())
    rows = answer["frames"]
    assert {row["environment"] for row in rows} == {"room"}
    assert rows[0]["frame"] == "000003"
    assert rows[1]["frame"] in ("000002", "000004")  # before and after it on the walk
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert lines[10] == f"{answer['stuck']:.0%} of matches at the same image position"


def test_environments_and_frames_are_added(here, tmp_path, capsys):
    out = tmp_path / "map"
    words = ("map", here / "room", "--model", "classic", "--out", out)
    assert run(*words, "--frames", "::2", cache=here) == 0
    assert run(*words, cache=here) == 2
    assert "--add" in capsys.readouterr().err
    assert run(*words, "--frames", "1::2", "--add", cache=here) == 0
    assert "1 environment, 16 frames" in capsys.readouterr().out
    assert run(*words, "--frames", "1::2", "--add", cache=here) == 2
    assert "in the map already" in capsys.readouterr().err


def test_another_place_in_a_folder_of_the_same_name_is_not_merged(here, tmp_path, capsys):
    shutil.copytree(here / "map", tmp_path / "map")
    other = tmp_path / "room"
    other.mkdir()
    layouts.nerfstudio(
        other, [replace(shot, name=f"other-{shot.name}", image=255 - shot.image) for shot in room.shots(6)]
    )
    words = ("map", other, "--model", "classic", "--out", tmp_path / "map", "--add")
    assert run(*words, cache=here) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the map has an environment room, and these frames do not fit it" in said
    assert "give it another name with --name" in said
    assert run(*words, "--name", "hall", cache=here) == 0
    assert "2 environments, 22 frames" in capsys.readouterr().out


def test_frames_in_other_coordinates_are_not_added(here, tmp_path, capsys):
    shutil.copytree(here / "map", tmp_path / "map")
    other = tmp_path / "room"
    other.mkdir()
    shots = room.shots(16)[::2]
    for shot in shots:
        shot.world_from_camera[0, 3] += 3.0
    layouts.nerfstudio(other, [replace(shot, name=f"other-{shot.name}") for shot in shots])
    assert run("map", other, "--model", "classic", "--out", tmp_path / "map", "--add", cache=here) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "these frames show room, but in other coordinates, 3.0" in said
    assert "--session-of room" in said


def test_the_same_scene_under_another_name_is_known_again(here, tmp_path, capsys):
    shutil.copytree(here / "map", tmp_path / "map")
    shutil.copytree(here / "room", tmp_path / "parlour")
    words = ("map", tmp_path / "parlour", "--model", "classic", "--out", tmp_path / "map", "--add")
    assert run(*words, cache=here) == 2
    assert "parlour is in the map already, as room; --name room adds to it" in " ".join(capsys.readouterr().err.split())
    assert run(words[0], here / "room", *words[1:], "--name", "room", cache=here) == 2
    assert "--name names the environment of one scene" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--frames", "30:"), "leaves none of the 16 frames"),
        (("--frames", "3"), "frames are START:STOP"),
        (("--frames", "::0"), "frames are START:STOP"),
        (("--frames", "a:b"), "frames are START:STOP"),
        (("--add",), "holds no map"),
    ],
)
def test_words_that_make_no_map(here, tmp_path, capsys, words, sentence):
    code = run("map", here / "room", "--model", "classic", "--out", tmp_path / "none", *words, cache=here)
    assert code == 2
    assert sentence in capsys.readouterr().err


def test_another_model_is_refused(here, tmp_path, capsys):
    save("dinov2", tmp_path / "network")
    code = run("localize", here / "room", "--map", here / "map", "--model", tmp_path / "network")
    assert code == 2
    assert "build the map again" in capsys.readouterr().err


def test_a_map_remembers_its_model(here, tmp_path, capsys, monkeypatch):
    assert run("localize", f"{here / 'room'}:3", "--map", here / "map") == 0
    (tmp_path / "network").mkdir()
    LoCUS("classic", dimension=16, head="linear").write(tmp_path / "network")
    monkeypatch.chdir(tmp_path)
    words = ("map", here / "room", "--frames", "::2", "--out", "map")
    assert run(*words, "--model", "network", cache=here) == 0
    monkeypatch.chdir(here)
    assert run("retrieve", here / "room:3", "--map", tmp_path / "map") == 0
    (tmp_path / "network").rename(tmp_path / "moved")
    capsys.readouterr()
    assert run("retrieve", here / "room:3", "--map", tmp_path / "map") == 2
    assert f"was made with the model in {tmp_path / 'network'}, which is not there now" in " ".join(
        capsys.readouterr().err.split()
    )
    assert run("retrieve", here / "room:3", "--map", tmp_path / "map", "--model", tmp_path / "moved") == 0


def test_a_scene_read_in_another_unit_is_said(here, tmp_path, capsys):
    words = ("map", here / "room", "--model", "classic", "--out", tmp_path / "map", "--depth-scale", 200)
    run(*words, cache=here)
    said = " ".join(capsys.readouterr().err.split())
    assert "warning: room: Not sound as read" in said
    assert "With --depth-scale 1000" in said


def test_a_map_that_lacks_its_side_files_is_completed_when_it_is_opened(here, tmp_path, capsys):
    whole = {file.name: file.read_bytes() for file in (here / "map").iterdir()}
    folder = tmp_path / "map"
    shutil.copytree(here / "map", folder)
    (folder / "landmarks.ply").unlink()
    (folder / "map.json").write_text("{}")
    assert run("map", here / "room", "--out", folder, "--model", "classic") == 2
    assert "holds a map already" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == whole


def test_a_second_writer_meets_a_sentence(here, tmp_path, capsys):
    shutil.copytree(here / "map", tmp_path / "map")
    with lock(tmp_path / "map" / "map.safetensors"):
        assert run("map", here / "room", "--out", tmp_path / "map", "--add") == 2
    assert "another process is writing" in capsys.readouterr().err


def test_a_graph_of_rooms_objects_and_spots_is_written_beside_the_map(here, tmp_path, capsys):
    assert run("map", here / "room", "--model", "classic", "--out", tmp_path / "map", "--graph", cache=here) == 0
    graph = PlaceGraph.load(tmp_path / "map")
    counts = ", ".join(counted(len(graph.of(kind)), kind) for kind in ("room", "object", "spot"))
    assert f"graph.json: {counts}" in capsys.readouterr().out.replace("\n", " ")
    assert all(graph.of(kind) for kind in ("room", "object", "spot"))
    LandmarkMap.load(tmp_path / "map").save(tmp_path / "map")
    assert not (tmp_path / "map" / "graph.json").exists()  # a map that is written again has no graph of the one before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--probe", "names.safetensors"], "--graph must be given too"),
        (["--graph", "--add"], "leave --add out"),
        (["--graph", "--words", "chair"], "name one with --clip"),
    ],
)
def test_options_of_a_graph_that_do_not_go_together_are_refused_at_once(here, tmp_path, capsys, words, message):
    assert run("map", here / "room", "--model", "classic", "--out", tmp_path / "map", *words) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "map").exists()
