"""Other recordings of a mapped room, in coordinates of their own: align, and map --add --session-of, as typed."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from locus import LandmarkMap
from locus.cli import main
from locus.geometry import pose_error, transform
from locus.landmarks import MapError, merge, session_of
from locus.landmarks.merging import trajectories
from locus.tasks.placed_points import available
from locus.tasks.sessions import spread_over
from tests.landmarks import places
from tests.scenes import layouts, room

A_FROM_B = np.eye(4)
A_FROM_B[:3, :3] = Rotation.from_rotvec([0.4, -1.1, 2.0]).as_matrix()
A_FROM_B[:3, 3] = (3.0, -7.0, 1.0)


def moved(shots):
    """The shots in the session's own coordinates."""
    return [replace(shot, world_from_camera=np.linalg.inv(A_FROM_B) @ shot.world_from_camera) for shot in shots]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A room, its map by the classic features, and a walk through it from other places in coordinates of its own."""
    folder = tmp_path_factory.mktemp("here")
    for name, shots in {"room": room.shots(24), "walk": moved(room.shots(23))}.items():
        (folder / name).mkdir()
        layouts.nerfstudio(folder / name, shots)
    assert run("map", folder / "room", "--out", folder / "map", folder=folder) == 0
    return folder


def run(*words, folder):
    return main([*map(str, words), "--model", "classic", "--cache", str(folder / "cache")])


def off(a_from_b):
    """How far the cameras of the walk are placed wrongly, at most: metres and degrees."""
    cameras = [shot.world_from_camera for shot in moved(room.shots(23))]
    return np.max([pose_error(a_from_b @ camera, A_FROM_B @ camera) for camera in cameras], axis=0)


def test_a_session_is_aligned_with_a_map(here, capsys):
    out, trajectory = here / "answers.json", here / "walk.txt"
    assert run("align", here / "map", here / "walk", "--json", out, "--trajectory", trajectory, folder=here) == 0
    said = capsys.readouterr().out
    assert "walk was recorded in room" in said
    answer = json.loads(out.read_text())
    assert answer["scale"] == 1
    assert answer["agree"] <= answer["localized"] <= answer["asked"] == 23
    assert (off(np.array(answer["a_from_b"])) < [0.06, 2]).all()
    assert answer["error"]["metres"] < 0.06
    rows = np.loadtxt(trajectory)  # the frames are named by numbers
    truth = np.stack([shot.world_from_camera for shot in room.shots(23)])
    assert np.abs(rows[:, 1:4] - truth[:, :3, 3]).max() < 0.06
    assert (Rotation.from_quat(rows[:, 4:]) * Rotation.from_matrix(truth[:, :3, :3]).inv()).magnitude().max() < 0.04


def test_a_scene_is_mapped_first_and_frames_without_depth_are_localized_by_colour(here, tmp_path, capsys):
    if reason := available():
        pytest.skip(reason)
    session = tmp_path / "colour"
    session.mkdir()
    layouts.nerfstudio(session, moved(room.shots(23)))
    stated = json.loads((session / "transforms.json").read_text())
    for frame in stated["frames"]:
        del frame["depth_file_path"]
        matrix = np.array(frame["transform_matrix"])
        matrix[:3, 3] /= 2.5
        frame["transform_matrix"] = matrix.tolist()
    (session / "transforms.json").write_text(json.dumps(stated))
    out = tmp_path / "answers.json"
    assert run("align", here / "room", session, "--scale", "--json", out, folder=here) == 0
    assert "23 by colour alone" in capsys.readouterr().out
    answer = json.loads(out.read_text())
    assert answer["scale"] == pytest.approx(2.5, rel=0.05)
    assert answer["by colour"] == answer["asked"]


def test_a_session_is_merged_where_it_was_recorded(here, tmp_path, capsys):
    out = tmp_path / "map"
    assert run("map", here / "room", "--out", out, folder=here) == 0
    alone = LandmarkMap.load(out)
    words = ("map", here / "walk", "--add", "--session-of", "room", "--out", out, "--trajectories", tmp_path / "poses")
    assert run(*words, folder=here) == 0
    assert "1 environment, 47 frames" in capsys.readouterr().out
    both = LandmarkMap.load(out)
    assert both.environments == ("room",)
    assert len(both) < 1.5 * len(alone)  # most spots of the walk have a landmark, which gets its patches
    assert both.landmarks.patches.sum() > 1.5 * alone.landmarks.patches.sum()
    truth = np.stack([shot.world_from_camera for shot in room.shots(23)])
    assert np.abs(both.frames.world_from_camera[24:] - truth).max() < 0.06
    assert both.provenance["scenes"][1]["session of"] == "room"
    poses = tmp_path / "poses/room"
    assert [len(np.loadtxt(poses / name)) for name in ("room.txt", "walk.txt")] == [24, 23]
    shutil.copytree(here / "walk", tmp_path / "stroll")
    for again in (here / "walk", tmp_path / "stroll"):  # it is there now, whatever its folder is called
        assert run("map", again, *words[2:], folder=here) == 2
        assert f"{again.name} is in the map already, in room" in capsys.readouterr().err


def test_another_room_is_refused_and_nothing_is_written(here, tmp_path, capsys):
    other = tmp_path / "other"
    other.mkdir()
    random = np.random.default_rng(0)
    shots = [
        replace(shot, image=random.integers(0, 255, shot.image.shape, dtype=np.uint8))  # nothing of it is in the room
        for shot in room.shots(8)
    ]
    layouts.nerfstudio(other, shots)
    before = (here / "map/map.safetensors").read_bytes()
    code = run("map", other, "--add", "--session-of", "room", "--out", here / "map", folder=here)
    assert code == 2
    assert "other was not merged" in capsys.readouterr().err
    assert (here / "map/map.safetensors").read_bytes() == before


def test_words_that_join_no_session(here, tmp_path, capsys):
    assert run("map", here / "walk", "--session-of", "room", "--out", tmp_path / "map", folder=here) == 2
    assert "--add must be given too" in capsys.readouterr().err
    assert run("map", here / "walk", "--add", "--session-of", "hall", "--out", here / "map", folder=here) == 2
    assert "there is no environment hall" in capsys.readouterr().err
    assert run("align", here / "map", here / "walk", "--frames", "23:", folder=here) == 2
    assert "leaves none of the 23 frames" in capsys.readouterr().err
    assert run("align", here / "map", here / "walk", "--queries", 0, folder=here) == 2
    assert "at least one frame must be localized" in capsys.readouterr().err


def test_a_map_moved_and_merged_is_the_map_of_both():
    """Halves of a walk in two worlds, put together by the true motion, against the two in one world."""
    model = places.model()
    shots = room.shots(16)
    first, second = shots[::2], shots[1::2]
    whole = merge([LandmarkMap.build(model, places.seen(places.scene(part))) for part in (first, second)])
    own = places.seen(places.scene(second, "walk"))
    mine = LandmarkMap.build(
        model,
        replace(
            own,
            scene=places.scene(moved(second), "walk"),
            points=transform(np.linalg.inv(A_FROM_B), own.points.astype(float)).astype(np.float32),
        ),
    )
    home = LandmarkMap.build(model, places.seen(places.scene(first)))
    both = merge([home, session_of(mine, "room", "walk", A_FROM_B)])
    assert np.allclose(both.frames.world_from_camera, whole.frames.world_from_camera)
    assert abs(len(both) - len(whole)) < 0.1 * len(whole)  # candidates are drawn from cells of a world
    assert list(trajectories(both)) == [("room", "room"), ("room", "walk")]
    assert list(trajectories(both)["room", "walk"]) == [shot.name for shot in second]
    with pytest.raises(MapError, match="a session is of one environment"):
        session_of(merge([home, mine]), "room", "walk", A_FROM_B)


def test_frames_are_spread_over_the_session():
    assert spread_over(3, 10) == [0, 1, 2]
    assert spread_over(101, 5) == [0, 25, 50, 75, 100]
    assert spread_over(0, 5) == []
