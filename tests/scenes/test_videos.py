"""A video beside the trajectory of its camera."""

import struct
import time

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation, Slerp

import locus
from locus.cli import main
from locus.errors import FrameError, LocusError, SceneError
from locus.features.images import sources
from locus.scenes.video import Video
from tests.scenes import phone_layouts, refusals, room
from tests.scenes.test_hostile_files import check_use, lines, same_folder

SHOTS = room.shots(4)


@pytest.fixture
def clip(tmp_path):
    phone_layouts.video(file := tmp_path / "clip.mp4", SHOTS)
    return file


def assert_shown(scene) -> None:
    assert (scene.format, scene.name) == ("video", "clip")
    assert not any(source.has_depth() for source in scene.sources)
    assert [frame.name for frame in scene] == ["000000", "000010", "000020", "000030"]
    for frame, shot in zip(scene, SHOTS, strict=True):
        np.testing.assert_allclose(frame.world_from_camera, shot.world_from_camera, atol=1e-9)
        assert np.abs(frame.image.astype(int) - shot.image).mean() < 8
        camera = frame.camera
        assert (camera.width, camera.height) == (room.WIDTH, room.HEIGHT)
        assert (camera.fx, camera.fy, camera.cx, camera.cy) == (room.FX, room.FY, room.CX, room.CY)
        with pytest.raises(FrameError, match="no depth"):
            frame.depth  # noqa: B018


def test_times_are_seconds_from_the_first_frame(clip):
    assert_shown(locus.load_scene(clip))


def test_whole_numbers_are_the_frames_numbers(tmp_path):
    """What programs write that know no times, whatever the notation, and also where there are gaps."""
    phone_layouts.video(file := tmp_path / "clip.mov", SHOTS, ["0.0", "1e1", "20", "30.000000"])
    assert_shown(locus.load_scene(file))


def test_a_frame_between_two_poses_has_the_pose_between(tmp_path):
    """The second pose is taken 12 ms after the ninth frame of a video of 25 frames a second."""
    phone_layouts.video(file := tmp_path / "clip.mp4", SHOTS[:3], ["0.21", "0.372", "0.5"], rate=25.0)
    scene = locus.load_scene(file)
    assert [frame.name for frame in scene] == ["000005", "000009", "000012"]
    a, b = SHOTS[0].world_from_camera, SHOTS[1].world_from_camera
    share = (0.36 - 0.21) / (0.372 - 0.21)
    rotation = Slerp([0, 1], Rotation.from_matrix([a[:3, :3], b[:3, :3]]))(share).as_matrix()
    np.testing.assert_allclose(scene[1].world_from_camera[:3, :3], rotation, atol=1e-9)
    np.testing.assert_allclose(scene[1].world_from_camera[:3, 3], (1 - share) * a[:3, 3] + share * b[:3, 3], atol=1e-9)


def test_one_calibration_serves_all_videos_of_a_folder_and_distortion_is_undone(clip):
    plain = locus.load_scene(clip)[0].image
    four = clip.with_suffix(".calibration.txt").read_text().strip()
    clip.with_suffix(".calibration.txt").unlink()
    clip.with_name("calibration.txt").write_text(f"{four} 0.2 0 0 0 0")
    bent = locus.load_scene(clip)[0].image
    y, x = int(room.CY), int(room.CX)
    assert np.abs(plain[y, x].astype(int) - bent[y, x]).max() < 12
    assert np.abs(plain.astype(int) - bent)[:5].mean() > 5


def test_without_its_files_it_is_a_video_like_any_other_and_says_what_it_needs(clip):
    clip.with_suffix(".calibration.txt").unlink()
    with pytest.raises(SceneError, match="none of the known formats"):
        locus.load_scene(clip)
    with pytest.raises(SceneError, match=r"clip\.calibration\.txt with 'fx fy cx cy'"):
        locus.load_scene(clip, format="video")


def test_times_that_the_video_does_not_have_are_skipped_and_said(tmp_path, capsys):
    phone_layouts.video(file := tmp_path / "clip.mp4", SHOTS, ["-0.5", "0.5", "1700000000.25", "0.6"])
    scene = locus.load_scene(file)
    assert [frame.name for frame in scene] == ["000015", "000018"]
    assert list(scene.skipped) == ["frame at -0.5 s", "frame at 1.7e+09 s"]
    assert "the video has 40 frames at 30 a second" in scene.skipped["frame at -0.5 s"]
    assert main(["convert", str(file), "--out", str(tmp_path / "written")]) == 0
    assert "2 frames of clip were left out; the first, frame at -0.5 s: " in capsys.readouterr().out


def test_a_video_that_claims_billions_of_frames_has_those_that_are_there(clip):
    """The count stands in the file's own table, which can say anything."""
    assert Video(clip).count() == 40
    file = clip.with_suffix(".avi")
    phone_layouts.save_video(file, SHOTS[:1])
    data = bytearray(file.read_bytes())
    struct.pack_into("<I", data, data.index(b"avih") + 8 + 16, 2**31 - 1)
    struct.pack_into("<I", data, data.index(b"strh") + 8 + 32, 2**31 - 1)
    file.write_bytes(data)
    assert [image.read().shape for image in sources(file)] == [SHOTS[0].image.shape]
    scene = locus.load_scene(file)
    assert len(scene) == 1
    assert len(scene.skipped) == len(SHOTS) - 1


@pytest.mark.parametrize(
    ("suffix", "content", "sentence"),
    [
        (".mp4", b"", "not a video that OpenCV can read"),
        (".txt", b"", "has no frames"),
        (".txt", b"1 2 3\n", "expected a time and 7 more columns"),
        (".txt", b"1 a b c d e f g\n", "all numbers"),
        (".txt", b"1e300 0 0 0 0 0 0 1\n", "has no frames; frame number"),
        (".calibration.txt", b"1 2", "should hold 'fx fy cx cy'"),
    ],
)
def test_the_command_line_says_what_is_wrong_and_writes_nothing(clip, monkeypatch, capsys, suffix, content, sentence):
    clip.with_suffix(suffix).write_bytes(content)
    refusals.assert_said(clip, sentence, monkeypatch, capsys)


@same_folder
@given(lines)
def test_any_text_as_a_trajectory_or_a_calibration(tmp_path, text):
    for suffix in (".txt", ".calibration.txt"):
        phone_layouts.video(file := tmp_path / "clip.mp4", SHOTS[:2])
        file.with_suffix(suffix).write_text(text)
        check_use(file)


def test_a_link_out_of_the_folder_is_refused(clip, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "poses.txt"
    clip.with_suffix(".txt").rename(outside)
    clip.with_suffix(".txt").symlink_to(outside)
    with pytest.raises(SceneError, match="points outside"):
        locus.load_scene(clip)


@pytest.mark.parametrize("at", ["end", "middle"])
@pytest.mark.parametrize("name", ["clip.avi", "clip.mpg", "clip.mkv"])
def test_a_video_that_is_mostly_a_hole_is_refused_and_not_searched(tmp_path, name, at):
    """FFmpeg looked for the next frame in all of three gigabytes, for minutes."""
    file = tmp_path / name
    phone_layouts.save_video(file, SHOTS)
    content = file.read_bytes()
    with file.open("r+b") as opened:
        opened.truncate(3 * 2**30)
        if at == "middle":
            opened.seek(0, 2)
            opened.write(content)
    began = time.process_time()
    with pytest.raises(LocusError, match="long stretch without content, so it is not whole; copy it again"):
        Video(file).count()
    assert time.process_time() - began < 1
