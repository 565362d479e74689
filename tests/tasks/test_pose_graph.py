"""Drift taken out of odometry by loop closures, with evo as the judge."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from evo.core.metrics import APE, PoseRelation, StatisticsType
from evo.core.trajectory import PosePath3D
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from locus.errors import LocusError
from locus.geometry import invert, pose_error
from locus.tasks.loop_closure import LoopClosure
from locus.tasks.pose_graph import corrected_poses, odometry_edges, write_g2o
from tests.scenes import room

gtsam = pytest.importorskip("gtsam")
FRAMES = 40


@pytest.fixture(scope="module")
def truth():
    """Two rounds about a table."""
    return np.stack([shot.world_from_camera for shot in room.shots(FRAMES // 2)] * 2)


def drifted(truth, share, seed=0):
    random, poses = np.random.default_rng(seed), [truth[0]]
    for before, after in pairwise(truth):
        step = invert(before) @ after
        metres, degrees = pose_error(np.eye(4), step)
        off = share * np.radians(degrees) * (1 + random.normal(size=3))
        step[:3, :3] = step[:3, :3] @ Rotation.from_rotvec(off).as_matrix()
        step[:3, 3] += share * metres * (1 + random.normal(size=3))
        poses.append(poses[-1] @ step)
    return np.stack(poses)


def closure(truth, earlier, later, off=None, keypoints=200):
    motion = invert(truth[later]) @ truth[earlier] @ (np.eye(4) if off is None else off)
    covariance = np.diag([np.radians(0.3) ** 2] * 3 + [0.01**2] * 3)
    return LoopClosure(earlier, later, motion, covariance, keypoints)


def error(truth, poses):
    """Absolute trajectory error, root mean square after rigid alignment."""
    reference, estimate = PosePath3D(poses_se3=list(truth)), PosePath3D(poses_se3=list(poses))
    estimate.align(reference)
    judged = APE(PoseRelation.translation_part)
    judged.process_data((reference, estimate))
    return judged.get_statistic(StatisticsType.rmse)


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_closures_take_the_drift_out(truth, share):
    odometry = drifted(truth, share)
    closures = [closure(truth, row, row + FRAMES // 2) for row in range(0, FRAMES // 2, 3)]
    found = corrected_poses(odometry, closures)
    assert found.agree.all()
    assert np.allclose(found.poses[0], truth[0], atol=1e-4)
    assert error(truth, found.poses) < 0.5 * error(truth, odometry)


def test_wrong_closures_have_no_say(truth):
    odometry = drifted(truth, 0.03)
    right = [closure(truth, row, row + FRAMES // 2) for row in range(0, FRAMES // 2, 2)]
    aside = np.eye(4)
    aside[:3, 3] = 0.0, 0.0, 1.5
    wrong = [closure(truth, 2, 30, aside), closure(truth, 5, 21, aside), closure(truth, 11, 38, invert(aside))]
    found, without = corrected_poses(odometry, [*right, *wrong]), corrected_poses(odometry, right)
    assert found.agree.tolist() == [True] * len(right) + [False] * len(wrong)
    assert np.allclose(found.poses, without.poses, atol=0.01)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(16, 39)), min_size=0, max_size=5))
def test_odometry_without_drift_stays_as_it_is(pairs):
    truth = np.stack([shot.world_from_camera for shot in room.shots(8)] * 5)
    found = corrected_poses(truth, [closure(truth, *pair) for pair in pairs])
    assert np.allclose(found.poses, truth, atol=1e-5)
    assert found.agree.all()


def test_gtsam_reads_the_graph(truth, tmp_path):
    odometry, closures = drifted(truth, 0.05), [closure(truth, 3, 25), closure(truth, 8, 31, keypoints=60)]
    write_g2o(tmp_path / "walk.g2o", odometry, closures)
    graph, poses = gtsam.readG2o(str(tmp_path / "walk.g2o"), True)
    assert graph.size() == FRAMES - 1 + 2
    assert all(np.allclose(poses.atPose3(row).matrix(), odometry[row], atol=1e-6) for row in range(FRAMES))
    last = graph.at(graph.size() - 1)
    assert list(last.keys()) == [31, 8]
    assert np.allclose(last.measured().matrix(), closures[1].later_from_earlier, atol=1e-6)
    first = graph.at(0).noiseModel().covariance()
    assert np.allclose(first, odometry_edges(odometry)[0][3], rtol=1e-4, atol=1e-9)
    assert f"probability {closures[1].probability:.4f}" in (tmp_path / "walk.g2o").read_text()


def test_without_gtsam_one_sentence_says_what_to_do(truth, monkeypatch):
    monkeypatch.setitem(sys.modules, "gtsam", None)
    with pytest.raises(LocusError, match=r"correcting drift needs GTSAM: pip install 'locus-features\[optimise\]'"):
        corrected_poses(truth, [])
