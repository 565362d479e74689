import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from locus.scenes.trajectory import write_trajectory


def pose(seed):
    random = np.random.default_rng(seed)
    world_from_camera = np.eye(4)
    world_from_camera[:3, :3] = Rotation.random(random_state=seed).as_matrix()
    world_from_camera[:3, 3] = random.normal(size=3)
    return world_from_camera


@given(st.integers(0, 2**31))
def test_poses_come_back(tmp_path_factory, seed):
    path = tmp_path_factory.getbasetemp() / "poses.txt"
    write_trajectory(path, {"1305031102.17": pose(seed), "1305031102.5": np.eye(4)})
    table = np.loadtxt(path)  # a foreign reader; # begins a comment
    assert table[:, 0].tolist() == [1305031102.17, 1305031102.5]
    assert np.allclose(table[0, 1:4], pose(seed)[:3, 3], atol=1e-6)
    assert np.allclose(Rotation.from_quat(table[0, 4:]).as_matrix(), pose(seed)[:3, :3], atol=1e-5)


def test_names_that_are_no_times_are_numbered_and_told(tmp_path):
    write_trajectory(tmp_path / "poses.txt", {"a/left": np.eye(4), "a\nright": np.eye(4)})
    assert np.loadtxt(tmp_path / "poses.txt")[:, 0].tolist() == [0, 1]
    text = (tmp_path / "poses.txt").read_text()
    assert "# 0 is a/left" in text
    assert "# 1 is a right" in text


def test_nothing_found_is_an_empty_trajectory(tmp_path):
    write_trajectory(tmp_path / "poses.txt", {})
    assert (tmp_path / "poses.txt").read_text() == "# time tx ty tz qx qy qz qw\n"
