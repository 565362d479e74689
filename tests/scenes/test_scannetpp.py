"""ScanNet++'s iPhone recordings, as the data set has them and as it does not."""

import json
import struct

import lz4.block
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus
from locus.errors import FrameError
from locus.scenes import inspect
from tests.scenes import phone_layouts, refusals, room
from tests.scenes.layouts import save, save_depth
from tests.scenes.test_hostile_files import check_use, same_folder, values

SHOTS = room.shots(4)
TABLE = "iphone/pose_intrinsic_imu.json"


@pytest.fixture
def scan(tmp_path):
    phone_layouts.scannetpp(tmp_path / "036bce3393", SHOTS)
    return tmp_path / "036bce3393"


def edit(scan, change) -> None:
    content = json.loads((scan / TABLE).read_text())
    change(content)
    (scan / TABLE).write_text(json.dumps(content))


@pytest.mark.parametrize("packed", ["lz4", "zlib"])
def test_it_is_read_exactly_from_both_kinds_of_depth(tmp_path, packed):
    """Depth maps of 256×192 are spread from the room's 80×60, so that each pixel's nearest is its own."""
    phone_layouts.scannetpp(tmp_path / "036bce3393", SHOTS, packed)
    scene = locus.load_scene(tmp_path / "036bce3393")
    assert (scene.format, scene.name) == ("scannet++", "036bce3393")
    room.assert_shown(scene, SHOTS, 0.5001e-3 if packed == "lz4" else 1e-6, loss=8)
    assert inspect(scene).sound


def test_it_is_the_same_from_the_folder_inside(scan):
    (scan / "iphone/rgb.mkv").rename(scan / "iphone/rgb.mp4")
    scene = locus.load_scene(scan / "iphone")
    assert scene.name == "036bce3393"
    room.assert_shown(scene, SHOTS, 0.5001e-3, loss=8)


def test_what_the_data_sets_tools_unpack_is_read_in_place_of_the_packed_files(scan):
    """They write every second frame here."""
    for number, shot in list(enumerate(SHOTS))[::2]:
        save(scan / f"iphone/rgb/frame_{number:06d}.jpg", shot.image)
        save_depth(scan / f"iphone/depth/frame_{number:06d}.png", shot.depth, 1000)
    (scan / "iphone/rgb.mkv").unlink()
    (scan / "iphone/depth.bin").write_bytes(b"all maps as one stream")
    scene = locus.load_scene(scan)
    room.assert_shown(scene, SHOTS[::2], 0.5001e-3, loss=8)
    refusals.assert_link_refused(scan, scan / "iphone/depth/frame_000002.png")


def test_frames_without_a_pose_are_counted_and_depth_may_be_missing(scan):
    def change(table):
        del table["frame_000000"]["aligned_pose"]
        table["frame_000001"]["intrinsic"] = [[1, 2], [3]]
        table["frame_000002"]["aligned_pose"][0][0] = float("nan")
        table["frame_000009"] = table["frame_000003"]

    edit(scan, change)
    scene = locus.load_scene(scan)
    assert list(scene.skipped) == ["frame_000000", "frame_000001"]
    for index, piece, sentence in ((0, "world_from_camera", "not finite"), (2, "depth", "no depth map of its number")):
        with pytest.raises(FrameError, match=sentence):
            getattr(scene[index], piece)
    (scan / "iphone/depth.bin").unlink()
    scene = locus.load_scene(scan)
    assert not any(source.has_depth() for source in scene.sources)
    np.testing.assert_allclose(scene[1].world_from_camera, SHOTS[3].world_from_camera)
    with pytest.raises(FrameError, match="no depth map"):
        scene[1].depth  # noqa: B018


def test_depth_that_is_not_finite_is_unknown_and_a_bomb_is_refused(tmp_path, monkeypatch):
    spread = [room.Shot(**vars(shot)) for shot in SHOTS[:2]]
    spread[0].depth = np.where(np.arange(room.WIDTH) < 10, np.nan, np.inf)[None].repeat(room.HEIGHT, axis=0)
    phone_layouts.scannetpp(tmp_path, spread, "zlib")
    assert locus.load_scene(tmp_path)[0].depth.max() == 0
    bomb = lz4.block.compress(bytes(10**7), store_size=False)
    (tmp_path / "iphone/depth.bin").write_bytes(struct.pack("<I", len(bomb)) + bomb)
    with pytest.raises(FrameError, match="compressed depth is damaged"):
        locus.load_scene(tmp_path)[0].depth  # noqa: B018
    (tmp_path / "iphone/depth.bin").write_bytes(struct.pack("<I", 10**6) + bytes(10**6))
    with pytest.raises(FrameError, match="claims 1000000 bytes"):
        locus.load_scene(tmp_path)[0].depth  # noqa: B018


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("rgb.mkv", b"", "not a video that OpenCV can read"),
        ("rgb.mkv", None, "has neither rgb.mkv nor rgb.mp4"),
        ("pose_intrinsic_imu.json", b"[1, 2]", "should be a table"),
        ("pose_intrinsic_imu.json", b"{", "not readable JSON"),
        ("pose_intrinsic_imu.json", b"{}", "has no frames"),
        ("depth.bin", b"\x05\0\0\0ab", "ends within depth map 0"),
        ("depth.bin", b"\0" * 1000, "ends within depth map 0"),
        ("depth.bin", b"\x01\0\0\0a\x02", "ends within depth map 1"),
    ],
)
def test_the_command_line_says_what_is_wrong_and_writes_nothing(scan, monkeypatch, capsys, file, content, sentence):
    if content is None:
        (scan / "iphone" / file).unlink()
    else:
        (scan / "iphone" / file).write_bytes(content)
    refusals.assert_said(scan, sentence, monkeypatch, capsys)


@pytest.mark.parametrize("name", ["rgb.mkv", "depth.bin"])
def test_links_out_of_the_folder_are_refused(scan, name):
    refusals.assert_link_refused(scan, scan / "iphone" / name)


@same_folder
@given(st.sampled_from(["aligned_pose", "intrinsic"]), values, st.binary(max_size=200))
def test_any_value_in_its_table_and_any_bytes_as_depth(tmp_path, key, value, data):
    phone_layouts.scannetpp(tmp_path, SHOTS[:1])
    (tmp_path / "iphone/depth.bin").write_bytes(struct.pack("<I", len(data)) + data)
    edit(tmp_path, lambda table: table["frame_000000"].update({key: value}))
    check_use(tmp_path)
    (tmp_path / TABLE).write_text(json.dumps({"frame_000000": value}))
    check_use(tmp_path)
