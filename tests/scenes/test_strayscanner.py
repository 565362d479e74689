"""Stray Scanner's folders, as the app writes them and as it does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus
from locus.errors import FrameError, LocusError
from locus.scenes import inspect
from tests.scenes import layouts, phone_layouts, refusals, room
from tests.scenes.test_hostile_files import check_use, lines, same_folder

SHOTS = room.shots(4)


@pytest.fixture
def recording(tmp_path):
    phone_layouts.strayscanner(tmp_path / "71de12f9", SHOTS)
    return tmp_path / "71de12f9"


@pytest.mark.parametrize("per_frame", [True, False], ids=["newer", "older"])
def test_it_is_read_exactly_and_low_confidence_is_unknown(tmp_path, per_frame):
    phone_layouts.strayscanner(tmp_path / "room", SHOTS, per_frame)
    scene = locus.load_scene(tmp_path / "room")
    assert scene.format == "strayscanner"
    room.assert_shown(scene, phone_layouts.without_unsure(SHOTS), 0.5001e-3, loss=8)
    assert inspect(scene).sound


def test_lines_are_frames_by_their_number_in_whatever_order(recording):
    table = recording / "odometry.csv"
    header, *rows = table.read_text().splitlines()
    table.write_text("\n".join([header, rows[3], rows[1]]) + "\n")
    scene = locus.load_scene(recording)
    assert [frame.name for frame in scene] == ["000003", "000001"]
    for frame, shot in zip(scene, (SHOTS[3], SHOTS[1]), strict=True):
        np.testing.assert_allclose(frame.world_from_camera, shot.world_from_camera, atol=1e-9)
        assert np.abs(frame.image.astype(int) - shot.image).mean() < 8


def test_a_frame_that_the_video_does_not_have_or_without_depth_is_an_error_of_that_frame(recording):
    (recording / "depth/000001.png").unlink()
    (recording / "confidence/000002.png").unlink()
    layouts.save(recording / "confidence/000003.png", np.zeros((3, 4), np.uint8))
    with (recording / "odometry.csv").open("a") as file:
        file.write("9001, 7, 0, 0, 0, 0, 0, 0, 1, 60, 60, 40, 30\n9001, 8, nan, 0, 0, 0, 0, 0, 0, 60, 60, 40, 30\n")
    scene = locus.load_scene(recording)
    assert [source.has_depth() for source in scene.sources] == [True, False, True, True, False, False]
    for number, piece, sentence in (
        (1, "depth", "has no depth for it"),
        (3, "depth", "same size, not 4×3 and 80×60"),
        (4, "image", "ends or is damaged before its frame 7"),
        (5, "world_from_camera", "not finite"),
    ):
        with pytest.raises(FrameError, match=sentence):
            getattr(scene[number], piece)
    assert scene[2].depth[phone_layouts.UNSURE].min() == 9


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("rgb.mp4", b"", "not a video that OpenCV can read"),
        ("odometry.csv", b"", "not a table of numbers"),
        ("odometry.csv", b"timestamp, frame, x\n1, 2\n", "not a table of numbers"),
        ("odometry.csv", b"timestamp, frame, x\n1, 2, 3\n", "has no column y or z"),
        ("odometry.csv", b"frame, x, y, z, qx, qy, qz, qw\n1e30, 0, 0, 0, 0, 0, 0, 1\n", "numbers of frames"),
        ("odometry.csv", b"frame, x, y, z, qx, qy, qz, qw\n", "has no frames"),
    ],
)
def test_the_command_line_says_what_is_wrong_and_writes_nothing(
    recording, monkeypatch, capsys, file, content, sentence
):
    (recording / file).write_bytes(content)
    refusals.assert_said(recording, sentence, monkeypatch, capsys)


@pytest.mark.parametrize("name", ["rgb.mp4", "depth/000000.png", "confidence/000000.png"])
def test_links_out_of_the_folder_are_refused(recording, name):
    refusals.assert_link_refused(recording, recording / name)


@same_folder
@given(st.sampled_from(["odometry.csv", "camera_matrix.csv"]), lines)
def test_any_text_in_its_tables(tmp_path, name, text):
    root = tmp_path / "room"
    phone_layouts.strayscanner(root, SHOTS[:1], per_frame=False)
    (root / name).write_text(text)
    check_use(root)
    if name == "odometry.csv":
        (root / name).write_text("timestamp, frame, x, y, z, qx, qy, qz, qw\n" + text)
        check_use(root)


def test_a_folder_without_intrinsics_says_which_file_is_missing(tmp_path):
    phone_layouts.strayscanner(tmp_path, SHOTS[:1], per_frame=False)
    (tmp_path / "camera_matrix.csv").unlink()
    with pytest.raises(LocusError, match=r"camera_matrix\.csv is missing"):
        locus.load_scene(tmp_path)
