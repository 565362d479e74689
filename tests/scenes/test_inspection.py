"""`inspect` calls sound data sound, and names the repair of data broken in each of the usual ways."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import locus
from locus.cli import main
from locus.geometry import invert
from locus.scenes import Convention, inspect, overlap
from locus.scenes.consistency import choose_pairs
from locus.scenes.inspection import doubt
from locus.scenes.inspection_page import write_page
from tests.html_pages import HOSTILE, Parsed, assert_escaped, fetched
from tests.scenes import layouts, room

FLIP = np.diag([1.0, -1.0, -1.0, 1.0])


def break_poses(change):
    def apply(content, folder):
        for frame in content["frames"]:
            frame["transform_matrix"] = change(np.array(frame["transform_matrix"])).tolist()

    return apply


def transposed(matrix):
    result = matrix.copy()
    result[:3, :3] = matrix[:3, :3].T
    return result


def swap_intrinsics(content, folder):
    content["fl_x"], content["fl_y"] = content["fl_y"], content["fl_x"]
    content["cx"], content["cy"] = content["cy"], content["cx"]


def set_unit(unit):
    def apply(content, folder):
        content["depth_unit_scale_factor"] = unit

    return apply


def scale_depth(factor):
    def apply(content, folder):
        for frame in content["frames"]:
            file = folder / frame["depth_file_path"]
            depth = np.asarray(Image.open(file)).astype(np.float64) * factor
            Image.fromarray(np.rint(depth).astype(np.uint16)).save(file)

    return apply


def both(*breaks):
    def apply(content, folder):
        for each in breaks:
            each(content, folder)

    return apply


MISTAKES = {
    "camera_from_world": (break_poses(invert), {"pose": "camera_from_world"}),
    "opencv axes": (break_poses(lambda m: m @ FLIP), {"axes": "opencv"}),
    "transposed": (break_poses(transposed), {"rotation": "transposed"}),
    "swapped intrinsics": (swap_intrinsics, {"intrinsics": "swapped"}),
    "millimetres for metres": (set_unit(1.0), {"depth_scale": 1000}),
    "1/5000 m for millimetres": (scale_depth(5), {"depth_scale": 5000}),
    "an unusual unit": (scale_depth(0.37), {"depth_scale": 370}),
    "two at once": (
        both(break_poses(lambda m: invert(m @ FLIP)), set_unit(1 / 4000)),
        {"pose": "camera_from_world", "axes": "opencv", "depth_scale": 1000},
    ),
}


def broken_copy(source: Path, target: Path, apply, step: int = 1) -> Path:
    """Every step-th frame with its own transforms.json and depth maps; the images stay where they are."""
    content = json.loads((source / "transforms.json").read_text())
    content["frames"] = content["frames"][::step]
    (target / "depth").mkdir(parents=True)
    for frame in content["frames"]:
        frame["file_path"] = str(source / frame["file_path"])
        depth = source / frame["depth_file_path"]
        (target / frame["depth_file_path"]).write_bytes(depth.read_bytes())
    apply(content, target)
    (target / "transforms.json").write_text(json.dumps(content))
    return target


@pytest.mark.parametrize("mistake", MISTAKES)
def test_real_data_broken_in_each_way_is_repaired(mistake, real_data, tmp_path):
    apply, expected = MISTAKES[mistake]
    folder = broken_copy(real_data / "hololens", tmp_path / "broken", apply, step=5)
    inspection = inspect(locus.load_scene(folder, allow_outside=True))
    assert not inspection.sound
    assert set(inspection.repair) == set(expected)
    for key, value in expected.items():
        found = inspection.repair[key]
        assert found == value if isinstance(value, str) else found == pytest.approx(value, rel=0.05)
    assert inspect(locus.load_scene(folder, allow_outside=True, **inspection.repair)).sound


@pytest.mark.parametrize(
    ("name", "frames"),
    [("hololens", 125), ("tum/rgbd_dataset_freiburg1_xyz", 48), ("tum/rgbd_dataset_freiburg1_desk", 72)],
)
def test_real_data_is_sound_and_every_frame_loads(name, frames, real_data):
    inspection = inspect(locus.load_scene(real_data / name))
    assert len(inspection.summaries) == frames
    assert inspection.unreadable == {}
    assert inspection.scene.skipped == {}
    assert inspection.sound
    assert inspection.repair == {}
    assert (np.diag(overlap(inspection.scene[:10]).toarray()) > 0.95).all()


@pytest.fixture(scope="module")
def room_folder(tmp_path_factory):
    return layouts.nerfstudio(tmp_path_factory.mktemp("scene") / "room", room.shots(16))


@pytest.mark.parametrize("mistake", [name for name in MISTAKES if "two" not in name])
def test_a_small_unordered_scene_is_repaired_too(mistake, room_folder, tmp_path):
    apply, expected = MISTAKES[mistake]
    folder = broken_copy(room_folder, tmp_path / "broken", apply)
    inspection = inspect(locus.load_scene(folder, allow_outside=True))
    assert set(inspection.repair) == set(expected)
    assert inspection.options.startswith("--")


def test_options_are_those_of_the_command_line(room_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = broken_copy(room_folder, tmp_path / "broken", MISTAKES["two at once"][0])
    inspection = inspect(locus.load_scene(folder, allow_outside=True))
    assert inspection.options == "--pose camera_from_world --axes opencv --depth-scale 1000"
    assert main(["inspect", str(folder), "--allow-outside"]) == 1
    assert "--axes opencv" in " ".join(capsys.readouterr().out.split())
    assert main(["inspect", str(folder), "--allow-outside", *inspection.options.split()]) == 0
    assert "Sound" in capsys.readouterr().out
    assert (tmp_path / "inspect-broken.html").is_file()


def test_random_poses_are_not_sound_and_no_repair_is_made_up(room_folder, tmp_path):
    random = np.random.default_rng(0)
    shots = room.shots(16)
    order = random.permutation(16)

    def shuffle(content, folder):
        for frame, other in zip(content["frames"], order, strict=True):
            frame["transform_matrix"] = (shots[other].world_from_camera @ FLIP).tolist()

    inspection = inspect(locus.load_scene(broken_copy(room_folder, tmp_path / "b", shuffle), allow_outside=True))
    assert not inspection.sound
    assert inspection.repair == {}
    assert "none of the usual mistakes" in inspection.verdict


def test_frames_that_share_nothing_leave_it_open(room_folder, tmp_path):
    def apart(content, folder):
        for k, frame in enumerate(content["frames"]):
            frame["transform_matrix"][0][3] += 1000.0 * k

    inspection = inspect(locus.load_scene(broken_copy(room_folder, tmp_path / "b", apart), allow_outside=True))
    assert not inspection.sound
    assert inspection.repair == {}
    assert inspection.verdict.startswith("Cannot tell")
    one = inspect(locus.load_scene(room_folder)[:1])
    assert one.verdict.startswith("Cannot tell")


def test_a_camera_that_stands_still_leaves_it_open(room_folder, tmp_path):
    def still(content, folder):
        content["frames"] = [content["frames"][0] | {"file_path": f["file_path"]} for f in content["frames"]]

    inspection = inspect(locus.load_scene(broken_copy(room_folder, tmp_path / "b", still), allow_outside=True))
    assert inspection.verdict.startswith("Cannot tell")


def test_what_the_frames_cannot_tell_is_said(tmp_path):
    """A camera that only turns says nothing about the depth's unit."""
    poses = [room.look((0.2, 1.1, 1.5), (1.2 * np.cos(a), -1.2 * np.sin(a), 0.6)) for a in np.linspace(0, 3, 12)]
    layouts.nerfstudio(tmp_path, [room.shoot(f"{k:03d}", pose) for k, pose in enumerate(poses)])
    inspection = inspect(locus.load_scene(tmp_path))
    assert inspection.sound
    assert "depth_scale" in inspection.diagnosis.undecided
    assert "moves too little to check this" in inspection.verdict
    assert "depth scale" in inspection.verdict


def test_a_camera_that_moves_far_is_not_said_to_move_too_little(tmp_path):
    """It turns in one place, and then in another that is 500 m away, so the depth's unit is as open as before."""
    shots = []
    for k, angle in enumerate([*np.linspace(0, 3, 12)] * 2):
        shot = room.shoot(f"{k:03d}", room.look((0.2, 1.1, 1.5), (1.2 * np.cos(angle), -1.2 * np.sin(angle), 0.6)))
        shot.world_from_camera[0, 3] += 500.0 * (k >= 12)
        shots.append(shot)
    layouts.nerfstudio(tmp_path, shots)
    inspection = inspect(locus.load_scene(tmp_path))
    assert "depth scale" in inspection.verdict
    assert "moves too little" not in inspection.verdict
    assert "sees too little from different places" in inspection.verdict


def test_a_sample_of_frames_is_enough_to_doubt_a_scene(room_folder, tmp_path):
    assert doubt(locus.load_scene(room_folder)) == ""
    wrong = locus.load_scene(room_folder, depth_scale=200.0)
    assert "With --depth-scale 1000" in doubt(wrong)

    def halve(content, folder):
        content.update({name: content[name] / 2 for name in ("fl_x", "fl_y", "cx", "cy")})

    small = locus.load_scene(broken_copy(room_folder, tmp_path / "small", halve), allow_outside=True)
    assert "Not sound" in doubt(small) or "off-centre" in doubt(small)


@pytest.mark.parametrize("frames", [5, 20])
@pytest.mark.parametrize("name", ["hololens", "tum/rgbd_dataset_freiburg1_xyz", "tum/rgbd_dataset_freiburg1_desk"])
def test_few_frames_of_sound_data_get_no_repair(name, frames, real_data):
    scene = locus.load_scene(real_data / name)
    for start in (0, len(scene) // 2):
        assert inspect(scene[start : start + frames]).repair == {}


def test_one_wrong_pose_among_many_is_named_and_no_other(real_data, tmp_path):
    def move(content, folder):
        content["frames"][20]["transform_matrix"][0][3] += 1.2

    folder = broken_copy(real_data / "hololens", tmp_path / "moved", move, step=2)
    inspection = inspect(locus.load_scene(folder, allow_outside=True))
    assert inspection.sound
    assert list(inspection.odd_frames()) == [inspection.scene[20].name]


def test_odd_frames_are_named(tmp_path):
    shots = room.shots(16)
    layouts.nerfstudio(tmp_path, shots)
    layouts.save(tmp_path / "depth/000003.png", np.zeros((room.HEIGHT, room.WIDTH), np.uint16))
    layouts.save(tmp_path / "images/000006.png", np.full((room.HEIGHT, room.WIDTH, 3), 7, np.uint8))
    file = tmp_path / "transforms.json"
    content = json.loads(file.read_text())
    content["frames"][9]["transform_matrix"] = (room.look((0.1, 1.2, 2.2), (1.8, -1, 0)) @ FLIP).tolist()
    file.write_text(json.dumps(content))
    odd = inspect(locus.load_scene(tmp_path)).odd_frames()
    assert odd["000003"] == "depth is known at 0% of its pixels"
    assert odd["000006"] == "its image has only one colour"
    assert "is its pose wrong" in odd["000009"]
    assert len(odd) == 3


def test_the_page_stands_alone_and_escapes_names(tmp_path):
    root = tmp_path / "scannet"
    layouts.scannet(root, room.shots(6))
    scene = locus.load_scene(root)
    named = [replace(label, name=HOSTILE) if label.name == "floor" else label for label in scene.classes]
    hostile = replace(scene, name=HOSTILE, classes=tuple(named), skipped={HOSTILE: HOSTILE})
    inspection = inspect(hostile)
    page = write_page(inspection, tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert_escaped(page)
    assert Parsed(page).text.count(HOSTILE) >= 6  # title, heading, labels, skipped
    assert fetched(page) == []
    assert page.count('src="data:image/jpeg;base64,') == 3 * 3 + 2 + 6 * 3
    assert write_page(inspection, tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_labels_are_summed_up(room_folder, tmp_path):
    root = tmp_path / "scannet"
    layouts.scannet(root, room.shots(6))
    assert "4 classes seen" in dict(inspect(locus.load_scene(root)).facts())["labels"]


@pytest.mark.parametrize("frames", [0, 1, 2, 20, 21, 70, 1000])
def test_pairs_are_distinct_frames_near_and_far(frames):
    pairs = choose_pairs(frames, np.random.default_rng(0))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert len(pairs) <= 400
    if frames > 1:
        assert pairs.min() >= 0
        assert pairs.max() < frames
    if frames == 1000:
        assert {1, 64} <= set(np.abs(np.diff(pairs)).ravel().tolist())


def test_the_command_offers_every_field_of_the_convention(capsys):
    with pytest.raises(SystemExit):
        main(["inspect", "--help"])
    text = capsys.readouterr().out
    assert all(f"--{field.name.replace('_', '-')}" in text for field in fields(Convention))


def test_a_long_scene_is_sampled_and_that_is_said(tmp_path, monkeypatch):
    layouts.nerfstudio(tmp_path, room.shots(12))
    scene = locus.load_scene(tmp_path)
    monkeypatch.setattr("locus.scenes.inspection.MOST_READ", 5)
    inspection = inspect(scene)
    assert [summary.name for summary in inspection.summaries] == [scene[k].name for k in (0, 3, 6, 8, 11)]
    facts = dict(inspection.facts())
    assert "12 in the format nerfstudio, a sample of 5 looked at, evenly spread, 5 of them readable" in facts["frames"]
    assert "moves at least" in facts["extent"]
