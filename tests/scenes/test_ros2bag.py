"""A scene as a ROS 2 bag: what rosbags finds in it, and what is read back."""

from pathlib import Path

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.interfaces import QosDurability
from scipy.spatial.transform import Rotation

import locus
from locus.errors import LocusError, SceneError
from locus.scenes import inspect
from locus.scenes.writers.ros2bag import write
from tests.scenes import layouts, room


@pytest.fixture(scope="module")
def shots() -> list[room.Shot]:
    return room.shots()


@pytest.fixture
def scene(tmp_path, shots):
    (tmp_path / "room").mkdir()
    layouts.nerfstudio(tmp_path / "room", shots)
    return locus.load_scene(tmp_path / "room")


def matrix(transform) -> np.ndarray:
    pose = np.eye(4)
    q, t = transform.rotation, transform.translation
    pose[:3, :3], pose[:3, 3] = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix(), (t.x, t.y, t.z)
    return pose


def test_rosbags_finds_what_was_written(scene, tmp_path, shots):
    path = write(scene, tmp_path / "out" / "walk")
    assert sorted(file.name for file in path.iterdir()) == ["checksums.json", "metadata.yaml", "walk.db3"]
    found: dict[str, list] = {}
    with AnyReader([path]) as reader:
        for connection, time, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            found.setdefault(connection.topic, []).append(message)
            if hasattr(message, "header"):
                assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == time
        (latched,) = [c.ext.offered_qos_profiles for c in reader.connections if c.topic == "/tf_static"]
        assert latched[0].durability == QosDurability.TRANSIENT_LOCAL
    depth_topic = "/camera/aligned_depth_to_color"
    names = ("/camera/color/image_raw", "/camera/color/camera_info", f"{depth_topic}/image_raw")
    assert {topic: len(messages) for topic, messages in found.items()} == {
        **dict.fromkeys((*names, f"{depth_topic}/camera_info", "/tf"), len(shots)),
        "/tf_static": 1,
    }
    ((fixed,),) = (message.transforms for message in found["/tf_static"])
    assert (fixed.header.frame_id, fixed.child_frame_id) == ("camera_link", "camera_color_optical_frame")
    for colour, info, depth, tf, shot in zip(*(found[name] for name in (*names, "/tf")), shots, strict=True):
        assert colour.header.frame_id == depth.header.frame_id == info.header.frame_id == fixed.child_frame_id
        np.testing.assert_array_equal(colour.data.reshape(room.HEIGHT, room.WIDTH, 3), shot.image)
        metres = depth.data.view(np.float32).reshape(room.HEIGHT, room.WIDTH)
        np.testing.assert_allclose(metres, np.rint(shot.depth * 1000) / 1000, rtol=1e-6)
        np.testing.assert_allclose(info.k, layouts.INTRINSICS.ravel())
        np.testing.assert_allclose(info.p.reshape(3, 4)[:, :3], layouts.INTRINSICS)
        (edge,) = tf.transforms
        assert (edge.header.frame_id, edge.child_frame_id) == ("map", "camera_link")
        pose = matrix(edge.transform) @ matrix(fixed.transform)
        np.testing.assert_allclose(pose, shot.world_from_camera, atol=1e-12)
        # The link looks along its x, and its z is up in the image.
        np.testing.assert_allclose(matrix(edge.transform)[:3, 0], shot.world_from_camera[:3, 2], atol=1e-12)
        np.testing.assert_allclose(matrix(edge.transform)[:3, 2], -shot.world_from_camera[:3, 1], atol=1e-12)


def test_what_was_written_is_read_back(scene, tmp_path):
    again = locus.load_scene(write(scene, tmp_path / "walk"))
    assert (again.name, again.format, again.skipped) == ("walk", "rosbag", {})
    for frame, own in zip(again, scene, strict=True):
        np.testing.assert_array_equal(frame.image, own.image)
        np.testing.assert_array_equal(frame.depth, own.depth)
        np.testing.assert_allclose(frame.world_from_camera, own.world_from_camera, atol=1e-12)
        assert frame.camera == own.camera
    assert inspect(again).sound


def test_names_that_are_times_stay(tmp_path, shots):
    root = tmp_path / "freiburg3_room"
    root.mkdir()
    layouts.tum(root, shots)
    scene = locus.load_scene(root)
    assert scene[0].name == "1000.000000"
    again = locus.load_scene(write(scene, tmp_path / "walk"))
    assert [float(frame.name) for frame in again] == [float(frame.name) for frame in scene]
    np.testing.assert_array_equal(again[3].depth, scene[3].depth)


def test_nothing_is_left_where_writing_fails(scene, tmp_path):
    layouts.edit(tmp_path / "room", lambda content: content["frames"][3].update(fl_x=70.0))
    out = tmp_path / "out"
    with pytest.raises(SceneError, match="has another camera than the first"):
        write(locus.load_scene(tmp_path / "room"), out / "walk")
    assert list(out.iterdir()) == []
    (out / "walk").mkdir()
    with pytest.raises(LocusError, match="exists already"):
        write(scene, out / "walk")


def test_frames_that_cannot_be_read_are_left_out_and_named(scene, tmp_path):
    for image in sorted(Path(tmp_path / "room").rglob("*.png"))[:1]:
        image.write_bytes(b"no image")
    with pytest.warns(UserWarning, match="1 frames cannot be read and were left out"):
        path = write(scene, tmp_path / "walk")
    assert len(locus.load_scene(path)) == len(scene) - 1
