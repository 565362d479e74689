"""ScanNet's `.sens` files, as the data set has them and as it does not."""

import os
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus
from locus.errors import FrameError, SceneError
from locus.scenes import inspect
from tests.scenes import phone_layouts, refusals, room
from tests.scenes.test_hostile_files import check_use, same_folder

SHOTS = room.shots(4)
NAME = 12  # where the sensor's name begins, which has 15 letters,
MATRICES = NAME + 15  # after which come four matrices,
KINDS = MATRICES + 256  # two kinds of compression, four sizes, the depth's unit,
COUNT = KINDS + 28  # and the number of frames
FRAMES = COUNT + 8


@pytest.fixture
def scan(tmp_path):
    phone_layouts.sens(file := tmp_path / "scene0000_00.sens", SHOTS)
    return file


def patch(file, at: int, layout: str, *values) -> None:
    data = bytearray(file.read_bytes())
    struct.pack_into(layout, data, at, *values)
    file.write_bytes(data)


def test_it_is_read_exactly(scan):
    scene = locus.load_scene(scan)
    assert (scene.format, scene.name) == ("sens", "scene0000_00")
    assert [frame.name for frame in scene] == ["0", "1", "2", "3"]
    room.assert_shown(scene, SHOTS, 0.5001e-3, loss=8, pose_tolerance=1e-6)  # poses have 32 bits
    assert inspect(scene).sound


def test_depth_with_its_own_intrinsics_lies_under_the_right_pixels(tmp_path):
    """The depth camera sees the same 3 pixels further to the right; a ramp tells which column a pixel took."""
    ramp = [room.Shot(**vars(shot)) for shot in SHOTS[:1]]
    ramp[0].depth = np.tile(np.arange(1, room.WIDTH + 1) / 10, (room.HEIGHT, 1))
    phone_layouts.sens(file := tmp_path / "a.sens", ramp)
    patch(file, MATRICES + 2 * 64 + 2 * 4, "<f", room.CX - 0.5 + 3)
    depth = locus.load_scene(file)[0].depth
    np.testing.assert_allclose(depth[30, :-3], np.arange(4, room.WIDTH + 1) / 10, atol=1e-6)
    np.testing.assert_array_equal(depth[30, -3:], 0)


def test_a_large_file_is_opened_without_reading_its_images(tmp_path):
    """Fifty frames of 200 MB each, which are holes: opening takes no time, and no memory."""
    phone_layouts.sens(file := tmp_path / "large.sens", SHOTS[:1], frames=51)
    with file.open("rb+") as stream:
        stream.seek(-8, os.SEEK_END)
        for _ in range(50):
            stream.write(struct.pack("<16f4Q", *np.eye(4).ravel(), 0, 0, 10**8, 10**8))
            stream.seek(2 * 10**8, os.SEEK_CUR)
        stream.truncate()
    assert file.stat().st_size > 10**10
    scene = locus.load_scene(file)
    assert len(scene) == 51
    np.testing.assert_allclose(scene[0].depth, SHOTS[0].depth, atol=0.5001e-3)
    np.testing.assert_array_equal(scene[50].world_from_camera, np.eye(4))


def test_a_pose_where_tracking_was_lost_is_an_error_of_its_frame(scan):
    patch(scan, FRAMES, "<16f", *[-np.inf] * 16)
    scene = locus.load_scene(scan)
    with pytest.raises(FrameError, match="frame 0: the pose has values that are not finite"):
        scene[0].world_from_camera  # noqa: B018
    np.testing.assert_allclose(scene[1].world_from_camera, SHOTS[1].world_from_camera, atol=1e-6)


def test_a_depth_map_that_unpacks_to_more_than_its_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(phone_layouts.zlib, "compress", lambda data, pack=zlib.compress: pack(bytes(10**8)))
    phone_layouts.sens(file := tmp_path / "bomb.sens", SHOTS[:1])
    with pytest.raises(FrameError, match="does not hold the 9600 bytes"):
        locus.load_scene(file)[0].depth  # noqa: B018


@pytest.mark.parametrize(
    ("at", "layout", "values", "sentence"),
    [
        (0, "<I", [3], "is of version 3"),
        (4, "<Q", [2**63], "cut short in its header"),
        (MATRICES, "<f", [np.nan], "stand apart"),
        (MATRICES, "<f", [-1.0], "focal length must be positive"),
        (MATRICES + 64 + 12, "<f", [0.1], "stand apart"),
        (KINDS, "<i", [0], "compresses colour by 0"),
        (KINDS + 4, "<i", [2], "depth by 2"),
        (KINDS + 8, "<2I", [2**20, 2**20], "more than 100 million pixels"),
        (KINDS + 16, "<2I", [0, 0], "outside the 0×0 image"),
        (KINDS + 24, "<f", [0.0], "depth scale must be positive"),
        (COUNT, "<Q", [2**40], "ends within frame 4 of 1099511627776"),
        (COUNT, "<Q", [0], "has no frames"),
        (FRAMES + 80, "<Q", [2**63], "ends within frame 0 of 4"),
        (FRAMES + 80, "<Q", [0], "has no colour for frame 0"),
    ],
)
def test_the_command_line_says_what_is_wrong_and_writes_nothing(
    scan, monkeypatch, capsys, at, layout, values, sentence
):
    patch(scan, at, layout, *values)
    refusals.assert_said(scan, sentence, monkeypatch, capsys)


@pytest.mark.parametrize("length", [0, 11, 40, COUNT + 3, FRAMES + 50, FRAMES + 2000])
def test_a_file_cut_short_is_refused(scan, length):
    scan.write_bytes(scan.read_bytes()[:length])
    with pytest.raises(SceneError, match=r"cut short|ends within frame 0"):
        locus.load_scene(scan)


@same_folder
@given(st.integers(0, FRAMES + 96), st.binary(min_size=1, max_size=40))
def test_any_bytes_in_its_headers(tmp_path, at, data):
    phone_layouts.sens(file := tmp_path / "a.sens", SHOTS[:1])
    patch(file, at, f"{len(data)}s", data)
    check_use(file)
