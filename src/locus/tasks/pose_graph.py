"""The poses of a drifting odometry, corrected by loop closures: a pose graph, optimised by GTSAM (extra `optimise`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.spatial.transform import Rotation

from locus.errors import LocusError
from locus.files import atomic
from locus.geometry import invert, pose_error
from locus.tasks.loop_closure import LoopClosure

DRIFT = 0.1  # standard deviation of odometry, as a share of the distance and of the angle between two frames,
STILL = (0.2, 0.005)  # and that of a camera which does not move; of a closure, beside its covariance: degrees, metres
INSIDE = 0.999  # of the right closures, that may fall within what is taken for right

Edge = tuple[int, int, Float[ndarray, "4 4"], Float[ndarray, "6 6"]]
"""Frames i and j, `i_from_j`, and its covariance along j's axes, rotation first."""


@dataclass(frozen=True, eq=False)
class CorrectedPoses:
    """What the pose graph says."""

    poses: Float[ndarray, "n 4 4"]
    """`world_from_camera`; the first frame stays where it is."""
    agree: Bool[ndarray, " closures"]
    """Which closures are right: the others contradict odometry and the rest of them."""


def corrected_poses(poses: Float[ndarray, "n 4 4"], closures: Sequence[LoopClosure]) -> CorrectedPoses:
    """The poses that fit both odometry and closures best. Closures that do not fit in are left out.

    Least squares, with costs of closures that are truncated step by step (graduated non-convexity: Yang, Antonante,
    Tzoumas and Carlone, 2020): a wrong closure has no say, wherever odometry begins.
    """
    gtsam = optimiser()
    if not closures:
        return CorrectedPoses(poses.copy(), np.zeros(0, bool))
    graph, start = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for row, pose in enumerate(poses):
        start.insert(row, gtsam.Pose3(pose))
    graph.add(gtsam.PriorFactorPose3(0, gtsam.Pose3(poses[0]), gtsam.noiseModel.Isotropic.Sigma(6, 1e-6)))
    odometry = odometry_edges(poses)
    for i, j, i_from_j, covariance in [*odometry, *map(closure_edge, closures)]:
        noise = gtsam.noiseModel.Gaussian.Covariance(covariance)
        graph.add(gtsam.BetweenFactorPose3(i, j, gtsam.Pose3(i_from_j), noise))
    settings = gtsam.GncLMParams()
    settings.setLossType(gtsam.GncLossType.TLS)
    settings.setKnownInliers(list(range(1 + len(odometry))))
    optimizer = gtsam.GncLMOptimizer(graph, start, settings)
    optimizer.setInlierCostThresholdsAtProbability(INSIDE)
    found = optimizer.optimize()
    agree = optimizer.getWeights()[1 + len(odometry) :] > 0.5
    return CorrectedPoses(np.stack([found.atPose3(row).matrix() for row in range(len(poses))]), agree)


def optimiser() -> ModuleType:
    """GTSAM, or a sentence about where it comes from."""
    try:
        import gtsam
    except ImportError:
        raise LocusError(
            "correcting drift needs GTSAM: pip install 'locus-features[optimise]', and try again"
        ) from None
    return gtsam


def odometry_edges(poses: Float[ndarray, "n 4 4"]) -> list[Edge]:
    """What odometry says about each two frames that follow one another."""
    edges = []
    for row in range(len(poses) - 1):
        step = invert(poses[row]) @ poses[row + 1]
        metres, degrees = pose_error(np.eye(4), step)
        edges.append((row, row + 1, step, _still(DRIFT * degrees, DRIFT * metres)))
    return edges


def closure_edge(closure: LoopClosure) -> Edge:
    return closure.later, closure.earlier, closure.later_from_earlier, closure.covariance + _still(0, 0)


def _still(degrees: float, metres: float) -> Float[ndarray, "6 6"]:
    """The covariance of a motion whose errors are so large, beside those of standing still."""
    deviations = np.repeat([np.radians(np.hypot(STILL[0], degrees)), np.hypot(STILL[1], metres)], 3)
    return np.diag(deviations**2)


def write_g2o(path: Path, poses: Float[ndarray, "n 4 4"], closures: Sequence[LoopClosure]) -> None:
    """The pose graph as g2o, GTSAM and Ceres read it; a comment before each closure has its probability."""
    lines = [f"VERTEX_SE3:QUAT {row} {_numbers(pose)}" for row, pose in enumerate(poses)]
    lines += map(_line, odometry_edges(poses))
    for closure in closures:
        lines += [f"# a loop closure of probability {closure.probability:.4f}", _line(closure_edge(closure))]
    with atomic(path) as file:
        file.write_text("\n".join(lines) + "\n")


def _line(edge: Edge) -> str:
    i, j, i_from_j, covariance = edge
    order = [3, 4, 5, 0, 1, 2]  # g2o has the translation first
    information = np.linalg.inv(covariance)[np.ix_(order, order)][np.triu_indices(6)]
    return f"EDGE_SE3:QUAT {i} {j} {_numbers(i_from_j)} {' '.join(f'{value:.9g}' for value in information)}"


def _numbers(pose: Float[ndarray, "4 4"]) -> str:
    values = (*pose[:3, 3], *Rotation.from_matrix(pose[:3, :3]).as_quat())
    return " ".join(f"{value:.9g}" for value in values)
