"""Record3D's `.r3d` and its EXR export, as the app writes them and as it does not."""

import contextlib
import json
import struct
import zipfile

import lzfse
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus
from locus.errors import FrameError, LocusError
from locus.scenes import inspect
from locus.scenes.unpacking import unpack_lzfse
from tests.scenes import phone_layouts, refusals, room
from tests.scenes.test_hostile_files import check_use, same_folder, values

SHOTS = room.shots(4)


@pytest.fixture
def r3d(tmp_path):
    phone_layouts.r3d(file := tmp_path / "walk.r3d", SHOTS)
    return file


def rewrite(file, changes: dict[str, bytes | None], compression=zipfile.ZIP_STORED) -> None:
    """The archive with some parts replaced or left out."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()} | changes
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in parts.items():
            if data is not None:
                archive.writestr(name, data)


def with_metadata(file, **changes) -> None:
    with zipfile.ZipFile(file) as archive:
        content = json.loads(archive.read("metadata"))
    rewrite(file, {"metadata": json.dumps(content | changes).encode()})


def test_r3d_is_read_exactly_and_low_confidence_is_unknown(r3d):
    scene = locus.load_scene(r3d)
    assert (scene.format, scene.name) == ("record3d", "walk")
    room.assert_shown(scene, phone_layouts.without_unsure(SHOTS), 1e-6, loss=8)


def test_r3d_is_sound(r3d):
    assert inspect(locus.load_scene(r3d)).sound


@pytest.mark.parametrize("inside", ["", "EXR_RGBD"])
def test_the_exr_export_is_read_exactly_from_either_folder(tmp_path, inside):
    phone_layouts.record3d_export(tmp_path / "walk", SHOTS)
    scene = locus.load_scene(tmp_path / "walk" / inside)
    assert (scene.format, scene.name) == ("record3d", "walk")
    room.assert_shown(scene, SHOTS, 1e-6, loss=8)


def test_a_frame_without_depth_still_has_its_image_and_pose(r3d):
    rewrite(r3d, {"rgbd/1.depth": None, "rgbd/2.conf": None})
    scene = locus.load_scene(r3d)
    assert [source.has_depth() for source in scene.sources] == [True, False, True, True]
    assert scene[1].image.shape == (room.HEIGHT, room.WIDTH, 3)
    with pytest.raises(FrameError, match=r"has no rgbd/1\.depth"):
        scene[1].depth  # noqa: B018
    assert scene[2].depth[phone_layouts.UNSURE].min() == 9  # nothing says that it is wrong


def test_a_depth_that_is_not_finite_is_unknown(r3d):
    depth = SHOTS[0].depth.astype("<f4")
    depth[0, :3] = np.nan, np.inf, -np.inf
    rewrite(r3d, {"rgbd/0.depth": lzfse.compress(depth.tobytes())})
    assert (locus.load_scene(r3d)[0].depth[0, :4] > 0).tolist() == [False, False, False, True]


def test_frames_without_a_pose_are_counted_and_poses_that_are_no_numbers_refused(r3d):
    poses = phone_layouts.record3d_metadata(SHOTS)["poses"]
    poses[1][0] = float("nan")
    with_metadata(r3d, poses=poses[:3])
    scene = locus.load_scene(r3d)
    assert scene.skipped == {"3": "the metadata have no pose for it"}
    with pytest.raises(FrameError, match="frame 1: the pose has values that are not finite"):
        scene[1].world_from_camera  # noqa: B018


def test_a_zip_bomb_is_refused_before_it_is_unpacked(r3d):
    rewrite(r3d, {"rgbd/0.jpg": bytes(2**26 + 1)}, zipfile.ZIP_DEFLATED)
    assert r3d.stat().st_size < 2**20
    with pytest.raises(FrameError, match="claims 67108865 bytes and is refused"):
        locus.load_scene(r3d)[0].image  # noqa: B018
    rewrite(r3d, {"metadata": b" " * (2**26 + 1)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(LocusError, match=r"metadata in .* claims"):
        locus.load_scene(r3d)


def test_an_lzfse_bomb_is_refused_before_it_is_unpacked(r3d, monkeypatch):
    bomb = lzfse.compress(bytes(20_000_000))
    rewrite(r3d, {"rgbd/0.depth": bomb})
    liar = bytearray(bomb)  # the decoder does not hold a block to the size that its header claims
    struct.pack_into("<I", liar, 4, room.WIDTH * room.HEIGHT * 4)
    rewrite(r3d, {"rgbd/1.depth": bytes(liar)})
    monkeypatch.setattr(lzfse, "decompress", lambda data: pytest.fail("was unpacked"))
    scene = locus.load_scene(r3d)
    for number in (0, 1):
        with pytest.raises(FrameError, match="bytes where 19200 are expected"):
            scene[number].depth  # noqa: B018


@given(st.binary(min_size=1, max_size=20_000), st.integers(1, 40), st.integers(1, 3))
def test_what_lzfse_packed_is_unpacked(data, times, step):
    data = (data * times)[::step]
    assert unpack_lzfse(lzfse.compress(data), len(data)) == data
    with pytest.raises(LocusError, match="are expected"):
        unpack_lzfse(lzfse.compress(data), len(data) + 1)


@given(st.binary(max_size=200), st.sampled_from([b"", b"bvx2", b"bvx-", b"bvxn", b"bvx1"]))
def test_any_bytes_as_lzfse(data, start):
    with contextlib.suppress(LocusError):
        assert len(unpack_lzfse(start + data, 64)) == 64


@same_folder
@given(st.sampled_from(["w", "h", "dw", "dh", "K", "poses", "perFrameIntrinsicCoeffs"]), values)
def test_any_value_in_the_metadata(tmp_path, key, value):
    phone_layouts.r3d(file := tmp_path / "walk.r3d", SHOTS[:1])
    with_metadata(file, **{key: value})
    check_use(file)


@same_folder
@given(st.binary(max_size=300))
def test_any_bytes_as_an_archive_its_metadata_or_an_exr(tmp_path, data):
    file = tmp_path / "walk.r3d"
    file.write_bytes(data)
    check_use(file)
    phone_layouts.r3d(file, SHOTS[:1])
    rewrite(file, {"metadata": data, "rgbd/0.jpg": data})
    check_use(file)
    phone_layouts.record3d_export(tmp_path / "export", SHOTS[:1])
    (tmp_path / "export/EXR_RGBD/depth/0.exr").write_bytes(data)
    check_use(tmp_path / "export")


def test_a_link_out_of_the_export_is_refused(tmp_path):
    phone_layouts.record3d_export(tmp_path / "walk", SHOTS[:1])
    refusals.assert_link_refused(tmp_path / "walk", tmp_path / "walk/EXR_RGBD/depth/0.exr")


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"not a zip at all"])
def test_the_command_line_says_what_is_wrong_and_writes_nothing(tmp_path, monkeypatch, capsys, damage):
    (tmp_path / "walk.r3d").write_bytes(damage)
    refusals.assert_said(tmp_path / "walk.r3d", "is not a recording that can be read", monkeypatch, capsys)
