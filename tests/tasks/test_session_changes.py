"""A room visited again with a chair elsewhere, as typed: what is told, shown, and done to the map."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from locus import LandmarkMap
from locus.checksums import metadata
from locus.cli import main
from locus.features.kinds import DIMENSION
from locus.landmarks import session_of
from locus.landmarks.map_files import ARRAYS
from locus.model.pca import Components
from locus.tasks.map_update import lost_share, updated
from locus.tasks.placed_points import available
from locus.tasks.seen_through import surface_points
from locus.tasks.session_changes import SessionChanges, compare
from tests.landmarks import places
from tests.scenes import layouts, room
from tests.tasks.test_sessions import moved

CHAIR = 3  # of the room's boxes
UPPER = ((-1.6, -1.2, 0.3), (-1.2, -0.8, 1.1))  # the chair without its foot, which the floor is near to
THERE = ((-1.6, 0.6, 0.0), (-1.2, 1.0, 1.1), 5, 4)


@pytest.fixture(scope="module", autouse=True)
def kinds():
    """The numbers that tokens begin with tell the kind, for there is none fitted for this backbone."""
    with pytest.MonkeyPatch.context() as patch:
        length = places.model().backbone.dimension
        first = Components(torch.zeros(length), torch.eye(DIMENSION, length))
        patch.setattr("locus.features.kinds.fitted_kinds", lambda backbone: first)
        yield


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The room, its map, and later visits: the chair moved (in other coordinates), gone, and nothing changed."""
    folder = tmp_path_factory.mktemp("changes")
    boxes = room.BOXES
    with pytest.MonkeyPatch.context() as patch:
        layouts.nerfstudio(folder / "room", room.shots(12))
        layouts.nerfstudio(folder / "still", room.shots(11))
        patch.setattr(room, "BOXES", [*boxes[:CHAIR], THERE])
        layouts.nerfstudio(folder / "moved", moved(room.shots(11)))
        patch.setattr(room, "BOXES", boxes[:CHAIR])
        layouts.nerfstudio(folder / "gone", room.shots(11))
    assert run("map", folder / "room", "--out", folder / "map", folder=folder) == 0
    return folder


def run(*words, folder):
    return main([*map(str, words), "--model", "classic", "--cache", str(folder / "cache")])


def changes(here, scene, *words, map="map"):
    """What `locus changes` says for machines, of a scene in the map's coordinates or, if it is `moved`, in its own."""
    out = here / f"{scene}.json"
    given = () if scene == "moved" else ("--same-coordinates",)
    files = ("--json", out, "--page", here / f"{scene}.html")
    assert run("changes", here / map, here / scene, *given, *files, *words, folder=here) == 0
    return json.loads(out.read_text())


def in_box(points, box, slack=0.1):
    low, high = np.array(box[0]) - slack, np.array(box[1]) + slack
    return ((np.array(points) >= low) & (np.array(points) <= high)).all(axis=1)


def test_a_moved_chair_is_found_where_it_was_and_where_it_is(here, capsys):
    if reason := available():
        pytest.skip(reason)
    answer = changes(here, "moved", "--before", here / "room")
    said = capsys.readouterr().out
    assert "0 gone, 0 new, 1 moved" in said
    assert "moved was recorded in room" in said
    assert answer["environment"] == "room"
    (change,) = answer["changes"]
    assert change["change"] == "moved"
    assert in_box(change["before"]["points"], room.BOXES[CHAIR]).all()
    assert in_box(change["after"]["points"], THERE).all()
    assert change["probability"] > 0.9
    assert len(change["before"]["shown by"]) > 1
    assert all(name.startswith("moved/") for name in change["before"]["missed by"])
    page = (here / "moved.html").read_text()
    assert page.count("<img") == 5  # from above, and both spots on both visits
    assert "Before: here it was" in page


def test_a_chair_that_is_taken_away_is_gone_and_one_that_is_brought_is_new(here, tmp_path, capsys):
    (change,) = changes(here, "gone")["changes"]
    assert (change["change"], change["after"]) == ("gone", None)
    assert in_box(change["before"]["points"], room.BOXES[CHAIR]).all()
    assert run("map", here / "gone", "--out", here / "empty", folder=here) == 0
    (change,) = changes(here, "room", map="empty")["changes"]
    assert (change["change"], change["before"]) == ("new", None)
    assert in_box(change["after"]["points"], room.BOXES[CHAIR]).all()
    assert "name the scene that the map was made from" in (here / "room.html").read_text()


def test_nothing_changed_is_nothing_found(here, capsys):
    assert changes(here, "still")["changes"] == []
    assert "Nothing has changed." in capsys.readouterr().out


def test_an_updated_map_has_forgotten_what_is_gone_and_is_not_told_twice(here, capsys):
    assert run("map", here / "room", "--out", here / "updated", folder=here) == 0
    before = LandmarkMap.load(here / "updated")
    (change,) = changes(here, "gone", "--update", map="updated")["changes"]
    after = LandmarkMap.load(here / "updated")
    assert f"{len(before)} landmarks before, {len(after)} now" in capsys.readouterr().out
    assert len(after.frames) == 23
    on_it = [in_box(world.points.position[world.points.rows], UPPER, 0.05).sum() for world in (before, after)]
    assert on_it[0] > 30 > 5 > on_it[1]
    assert in_box(change["before"]["points"], room.BOXES[CHAIR]).all()
    later = LandmarkMap.load(here / "empty")
    assert compare(after, replace(later, environments=after.environments)) == []
    again = (
        "changes",
        here / "updated",
        here / "gone",
        "--same-coordinates",
        "--page",
        here / "again.html",
        "--update",
    )
    assert run(*again, folder=here) == 2
    assert "in the map already" in capsys.readouterr().err


def test_landmarks_of_what_is_gone_go_and_others_keep_their_weight(monkeypatch):
    model = places.model()
    before = LandmarkMap.build(model, places.seen(places.scene(room.shots(16))))
    monkeypatch.setattr(room, "BOXES", room.BOXES[:CHAIR])
    later = session_of(LandmarkMap.build(model, places.seen(places.scene(room.shots(15)))), "room", "later", np.eye(4))
    found = SessionChanges(before, later, compare(before, later), None)
    assert [change.what for change in found.changes] == ["gone"]
    after = updated(before, found)
    on_it = [in_box(world.landmarks.position, UPPER, 0.05).sum() for world in (before, after)]
    assert on_it[0] > 5 > 1 > on_it[1]
    table = in_box(before.landmarks.position, room.BOXES[1])
    lost = lost_share(before.landmarks, surface_points(before.frames), found.changes[0].before.points)
    assert table.sum() > 5
    assert (lost[table] == 0).all()
    assert after.landmarks.patches.sum() > before.landmarks.patches.sum()
    assert compare(after, replace(later, frame_names=before.frame_names[:15])) == []


def test_words_and_scenes_that_cannot_be_compared(here, tmp_path, capsys):
    assert run("changes", here / "room", here / "still", folder=here) == 2
    assert "holds no map" in capsys.readouterr().err
    (tmp_path / "nothing").mkdir()
    assert run("changes", here / "map", tmp_path / "nothing", folder=here) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    colour = tmp_path / "colour"
    layouts.nerfstudio(colour, room.shots(4))
    stated = json.loads((colour / "transforms.json").read_text())
    for frame in stated["frames"]:
        del frame["depth_file_path"]
    (colour / "transforms.json").write_text(json.dumps(stated))
    assert run("changes", here / "map", colour, folder=here) == 2
    assert "colour has no depth" in capsys.readouterr().err


def test_a_map_of_an_earlier_version_says_that_it_cannot_be_compared(here, tmp_path, capsys):
    content = (here / "map" / ARRAYS).read_bytes()
    arrays = {name: array for name, array in load(content).items() if name not in ("frames.surface", "frames.lens")}
    header = metadata(content)["header"].replace('"points": "', '"points": null, "were": "')
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / ARRAYS).write_bytes(save(arrays, {"header": header}))
    assert run("changes", tmp_path / "map", here / "still", "--same-coordinates", folder=here) == 2
    assert "does not know what its frames see" in capsys.readouterr().err
