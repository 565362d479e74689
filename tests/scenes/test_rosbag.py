"""Bags of every kind give back the room that was written to them."""

import numpy as np
import pytest
from ruamel.yaml import YAML

import locus
from locus.scenes import inspect
from tests.scenes import bags, room


@pytest.fixture(scope="module")
def shots() -> list[room.Shot]:
    return room.shots(6)


def check(scene, shots, depth_error=0.0005 + 1e-6, pose_error=1e-9):
    assert scene.format == "rosbag"
    assert len(scene) == len(shots)
    for frame, shot in zip(scene, shots, strict=True):
        np.testing.assert_array_equal(frame.image, shot.image)
        np.testing.assert_allclose(frame.world_from_camera, shot.world_from_camera, atol=pose_error)
        np.testing.assert_allclose(frame.depth, shot.depth, atol=depth_error)
        camera = frame.camera
        np.testing.assert_allclose(
            [camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy],
            [room.WIDTH, room.HEIGHT, room.FX, room.FY, room.CX, room.CY],
            atol=1e-9,
        )


@pytest.mark.parametrize("kind", bags.KINDS)
def test_reads_poses_depth_and_cameras_exactly(kind, tmp_path, shots):
    scene = locus.load_scene(bags.walk(tmp_path, kind, shots))
    assert scene.name == "walk"
    assert scene.skipped == {}
    assert scene[0].name == "1700000000.123456789"
    check(scene, shots)


def test_what_was_read_is_consistent(tmp_path):
    assert inspect(locus.load_scene(bags.walk(tmp_path, "mcap", room.shots()))).sound


@pytest.mark.parametrize("kind", ["sqlite3", "mcap"])
def test_a_recording_that_was_split_into_files_is_one_scene(kind, tmp_path, shots):
    """Each file as the recorder writes it, and metadata that name both."""
    parts = []
    for number, half in enumerate((shots[:3], shots[3:])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with bags.BagFile(folder, kind) as bag:
            bags.colour(bag, half, first=3 * number)
            bags.depth(bag, half, first=3 * number)
            bags.tree(bag, half, first=3 * number)
        parts.append(bag.path)
    (second,) = (file for file in parts[1].iterdir() if file.suffix != ".yaml")
    second.rename(parts[0] / f"more{second.suffix}")
    metadata = parts[0] / "metadata.yaml"
    yaml = YAML(typ="safe")
    content = yaml.load(metadata.read_text())
    content["rosbag2_bagfile_information"]["relative_file_paths"].append(f"more{second.suffix}")
    with metadata.open("w") as file:
        yaml.dump(content, file)
    check(locus.load_scene(parts[0]), shots)
