"""RTAB-Map databases: the room comes back, whatever version wrote it; damage is one sentence."""

import hashlib
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import locus
from locus.cli import main
from locus.errors import FrameError, LocusError, SceneError
from locus.scenes import inspect
from locus.scenes.formats.rtabmap_blobs import unpack_calibration
from locus.scenes.rvl import decompress_rvl
from tests.scenes import room
from tests.scenes import rtabmap_layout as layout
from tests.scenes.test_hostile_files import check_use

ENCODINGS = {"png": layout.depth_in_png, "floats": layout.depth_in_floats, "rvl": layout.depth_in_rvl}


@pytest.fixture
def database(tmp_path, shots):
    layout.rtabmap(tmp_path / "walk.db", shots)
    return tmp_path / "walk.db"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("version", ["headers", "floats"])
def test_the_room_comes_back(tmp_path, shots, encoding, version):
    path = tmp_path / "walk.db"
    layout.rtabmap(path, shots, ENCODINGS[encoding], layout.floats() if version == "floats" else None)
    scene = locus.load_scene(path)
    assert (scene.name, scene.format, scene.skipped) == ("walk", "rtabmap", {})
    assert [frame.name for frame in scene] == [str(k) for k in range(1, len(shots) + 1)]
    for frame, shot in zip(scene, shots, strict=True):
        np.testing.assert_allclose(frame.world_from_camera, layout.in_floats(shot.world_from_camera), atol=3e-7)
        np.testing.assert_array_equal(frame.image, shot.image)
        camera = frame.camera
        assert (camera.width, camera.height) == (room.WIDTH, room.HEIGHT)
        assert (camera.fx, camera.fy, camera.cx, camera.cy) == (room.FX, room.FY, room.CX, room.CY)
        np.testing.assert_allclose(frame.depth, shot.depth, atol=1e-6 if encoding == "floats" else 5.01e-4)
    assert inspect(scene).sound


def test_nothing_is_written_and_nothing_changes(database):
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    scene = locus.load_scene(database)
    for frame in scene:
        assert frame.depth.any()
    assert [file.name for file in database.parent.iterdir()] == ["walk.db"]
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before


def test_depth_may_be_smaller_than_the_image(tmp_path, shots):
    layout.rtabmap(tmp_path / "walk.db", shots, lambda depth: layout.depth_in_png(depth[1::2, 1::2]))
    frame = locus.load_scene(tmp_path / "walk.db")[0]
    assert frame.depth.shape == shots[0].depth.shape
    np.testing.assert_allclose(frame.depth[1::2, 1::2], shots[0].depth[1::2, 1::2], atol=5.01e-4)


def test_cameras_side_by_side_are_frames_of_their_own(tmp_path, shots):
    """Node k shows shots 2k and 2k + 1: the second camera stands anywhere, seen from the first."""
    nodes, data, poses = [], [], []
    for k, (a, b) in enumerate(zip(shots[::2], shots[1::2], strict=True), 1):
        base = a.world_from_camera @ np.linalg.inv(layout.BASE_FROM_CAMERA)
        nodes.append((k, 0, None))
        poses.append(base[:3])
        image, depth = np.hstack([a.image, b.image]), np.hstack([a.depth, b.depth])
        calibration = layout.mono() + layout.mono(np.linalg.inv(base) @ b.world_from_camera)
        data.append((k, layout.png(image), layout.depth_in_png(depth), calibration))
    layout.write(tmp_path / "walk.db", nodes, data, np.arange(1, 5), np.array(poses))
    scene = locus.load_scene(tmp_path / "walk.db")
    assert [frame.name for frame in scene] == ["1-0", "1-1", "2-0", "2-1", "3-0", "3-1", "4-0", "4-1"]
    for frame, shot in zip(scene, shots, strict=True):
        np.testing.assert_allclose(frame.world_from_camera, shot.world_from_camera, atol=1e-6)
        np.testing.assert_array_equal(frame.image, shot.image)
        np.testing.assert_allclose(frame.depth, shot.depth, atol=5.01e-4)
    assert inspect(scene).sound
    assert len({frame.image_state() for frame in scene}) == len({frame.geometry_state() for frame in scene}) == 8


def test_without_an_optimised_graph_odometry_of_the_longest_session_is_used_and_said(database, shots):
    layout.edit(database, "UPDATE Admin SET opt_ids = NULL, opt_poses = NULL")
    layout.edit(database, "UPDATE Node SET map_id = 1 WHERE id > 6")
    layout.edit(database, "UPDATE Node SET pose = ? WHERE id = 2", np.full(12, np.nan, "<f4").tobytes())
    layout.edit(database, "UPDATE Node SET pose = ? WHERE id = 3", bytes(48))
    with pytest.warns(UserWarning, match="has no optimised graph; its odometry is used"):
        scene = locus.load_scene(database)
    assert [frame.name for frame in scene] == ["1", "4", "5", "6"]
    assert {name: reason[:15] for name, reason in scene.skipped.items()} == {
        "2": "no pose",
        "3": "no pose",
        "7": "of another sess",
        "8": "of another sess",
    }
    drifted = shots[0].world_from_camera.copy()
    drifted[0, 3] += 0.5
    np.testing.assert_allclose(scene[0].world_from_camera, drifted, atol=1e-6)


def test_nodes_outside_the_graph_or_without_an_image_are_counted_skips(database, shots):
    layout.edit(database, "INSERT INTO Node (id, map_id) VALUES (20, 0)")
    layout.edit(database, "INSERT INTO Data (id, image) VALUES (20, ?)", layout.png(shots[0].image))
    layout.edit(database, "UPDATE Data SET image = NULL WHERE id = 3")
    scene = locus.load_scene(database)
    assert len(scene) == 7
    assert scene.skipped == {"3": "no image", "20": "not in the optimised graph"}


def test_a_stereo_camera_gives_images_and_poses_but_no_depth(tmp_path, shots):
    right_images = layout.png(shots[1].image)
    layout.rtabmap(tmp_path / "walk.db", shots, lambda depth: right_images, layout.stereo())
    frame = locus.load_scene(tmp_path / "walk.db")[0]
    assert frame.camera.fx == room.FX
    np.testing.assert_array_equal(frame.image, shots[0].image)
    np.testing.assert_allclose(frame.world_from_camera, shots[0].world_from_camera, atol=1e-6)
    assert not frame.has_depth
    with pytest.raises(FrameError, match="of a stereo camera RTAB-Map keeps the right image"):
        frame.depth  # noqa: B018


BOMB = zlib.compress(bytes(10**7)) + struct.pack("<iii", 1, 8, 4)
CLAIM = zlib.compress(bytes(100)) + struct.pack("<iii", 2**15, 2**15, 4)


@pytest.mark.parametrize(
    ("statement", "values", "sentence"),
    [
        ("DROP TABLE Data", (), "SQLite database but not RTAB-Map's of version 0.11 or later: it has no table Data"),
        ("ALTER TABLE Node RENAME COLUMN pose TO place", (), "no table Node with id, map_id, pose"),
        ("UPDATE Admin SET opt_ids = ?", (BOMB,), "does not hold the 1×8 numbers it claims"),
        ("UPDATE Admin SET opt_ids = ?", (CLAIM,), "claims 32768×32768 numbers"),
        ("UPDATE Admin SET opt_ids = ?", (b"\x78\x9c",), "a matrix is cut short"),
        ("UPDATE Admin SET opt_ids = ?", (bytes(40),), "the optimised graph cannot be read"),
        ("UPDATE Admin SET opt_poses = opt_ids", (), "OpenCV's type 4"),
        ("UPDATE Data SET calibration = substr(calibration, 1, 200)", (), "calibration is cut short or damaged"),
        ("UPDATE Data SET calibration = zeroblob(100000)", (), "calibration of 100000 bytes is refused"),
        ("DELETE FROM Node", (), "has no frames"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence_and_exit_code_2(database, capsys, tmp_path, statement, values, sentence):
    layout.edit(database, statement, *values)
    out = tmp_path / "out"
    assert main(["convert", str(database), "--out", str(out)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert sentence in said[-1]
    assert all("warning" in line for line in said[:-1])
    assert not out.exists()


def test_a_database_of_another_program_is_refused_and_its_views_are_not_run(tmp_path, database):
    layout.edit(tmp_path / "colmap.db", "CREATE TABLE cameras (id INTEGER)")
    with pytest.raises(SceneError, match="not RTAB-Map's"):
        locus.load_scene(tmp_path / "colmap.db")
    layout.edit(database, "DROP TABLE Node")
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 0 AS map_id, 0 AS pose FROM n"
    )
    layout.edit(database, f"CREATE VIEW Node AS {endless}")
    with pytest.raises(SceneError, match="no table Node"):
        locus.load_scene(database)


def test_a_file_cut_short_or_no_database_at_all_is_refused(tmp_path, database):
    data = database.read_bytes()
    for length in (100, 5000, len(data) // 2):
        (tmp_path / "cut.db").write_bytes(data[:length])
        check_use(tmp_path / "cut.db")
    (tmp_path / "text.db").write_text("not a database")
    with pytest.raises(SceneError, match="none of the known formats"):
        locus.load_scene(tmp_path / "text.db")
    with pytest.raises(SceneError, match=r"text\.db cannot be read as an RTAB-Map database"):
        locus.load_scene(tmp_path / "text.db", "rtabmap")


def test_one_damaged_node_leaves_the_others(database, shots):
    layout.edit(database, "UPDATE Data SET image = substr(image, 1, 3000) WHERE id = 1")
    layout.edit(database, "UPDATE Data SET depth = substr(depth, 1, 500) WHERE id = 2")
    layout.edit(database, "UPDATE Data SET calibration = NULL WHERE id = 3")
    layout.edit(database, "UPDATE Data SET depth = NULL WHERE id = 4")
    layout.edit(database, "UPDATE Data SET depth = image WHERE id = 5")
    layout.edit(database, "UPDATE Data SET calibration = ? WHERE id = 6", 2 * layout.mono())
    frames = list(locus.load_scene(database))
    broken = {
        1: ("image", "damaged or cut short"),
        2: ("depth", "damaged or cut short"),
        3: ("camera", "no calibration"),
    }
    broken |= {4: ("depth", "no depth"), 5: ("depth", "not a depth map"), 6: ("camera", "2 cameras")}
    for node, (piece, reason) in broken.items():
        with pytest.raises(FrameError, match=f"frame {node}: .*{reason}"):
            getattr(frames[node - 1], piece)
    np.testing.assert_allclose(frames[7].depth, shots[7].depth, atol=5.01e-4)


same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@same_folder
@given(
    st.sampled_from(["image", "depth", "calibration"]),
    st.binary(max_size=80) | st.text(max_size=5) | st.integers(0, 2**63 - 1),
)
def test_any_value_in_a_column_of_data(database, column, value):
    layout.edit(database, f"UPDATE Data SET {column} = ? WHERE id = 1", value)
    check_use(database)


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_as_a_calibration(data, length):
    for blob in (data, layout.mono()[:length] + data, layout.stereo()[:length] + data, layout.floats() + data):
        try:
            cameras = unpack_calibration(blob)
        except LocusError:
            continue
        assert all(len(camera.intrinsics) == 4 for camera in cameras)


@given(arrays(np.uint16, st.integers(1, 300), elements=st.integers(0, 3) | st.integers(0, 65535)))
def test_rvl_gives_back_what_its_coder_was_given(depth):
    np.testing.assert_array_equal(decompress_rvl(layout.rvl(depth.tolist()), len(depth)), depth)


@given(st.binary(max_size=200), st.integers(1, 500))
def test_any_bytes_as_rvl(data, pixels):
    with suppress(LocusError):
        assert decompress_rvl(data, pixels).shape == (pixels,)
