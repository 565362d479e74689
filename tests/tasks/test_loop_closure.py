"""Loop closures of a walk about a table, found by made-up keypoints; and `locus map --optimise`, as typed."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from locus.cli import main
from locus.geometry import invert, pose_error, transform
from locus.keypoints import Detector
from locus.landmarks import GrowingMap, LandmarkMap
from locus.scenes import patch_points
from locus.tasks import drift, loop_closure, placed_points
from locus.tasks.loop_closure import RECENT, LoopCloser, LoopClosure
from tests.landmarks import places
from tests.scenes import layouts, room
from tests.tasks.test_localize_points import Alike, _shown, seen_by
from tests.tasks.test_pose_graph import drifted, error

ROUND = 16


def walk():
    """Twice around the table, the second time a little beside the first."""
    first = room.shots(ROUND)
    beside = [replace(shot, world_from_camera=shot.world_from_camera.copy()) for shot in first]
    for shot in beside:
        shot.world_from_camera[:3, 3] += (0.05, -0.03, 0.04)
    return [room.shoot(f"{n:03d}", shot.world_from_camera) for n, shot in enumerate([*first, *beside])]


class Knowing(Detector):
    """Knows of each shot which spots of the room it shows."""

    name, fingerprint, dimension = "knowing", "knowing 1", 64

    def __init__(self, shots, spots):
        self.shots, self.spots = shots, spots

    def found(self, image):
        shot = min(self.shots, key=lambda each: np.abs(each.image.astype(float) - image).mean())
        placed, kept = seen_by(shot, self.spots)
        x, y = placed.keypoints.pixels.astype(int).T
        z = transform(invert(shot.world_from_camera), self.spots[kept])[:, 2]
        return placed[np.abs(shot.depth[y, x] - z) < 0.02].keypoints


@pytest.fixture(scope="module")
def detector():
    random = np.random.default_rng(0)
    return Knowing(walk(), np.concatenate([_shown(shot, random, 60) for shot in room.shots(ROUND)]))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch, detector):
    monkeypatch.setattr(loop_closure, "point_matcher", Alike)
    monkeypatch.setattr(drift, "point_detector", lambda: detector)
    monkeypatch.setattr(placed_points, "detector_or_reason", lambda: (None, ""))


@pytest.fixture(scope="module")
def truth():
    return np.stack([shot.world_from_camera for shot in walk()])


def closures_along(seen, odometry, detector):
    """The closer, and what it reported after each frame."""
    scene = seen.scene.moved(odometry)
    points = np.stack([patch_points(frame, places.GRID)[0] for frame in scene]).astype(np.float32)
    moved = replace(seen, scene=scene, points=points)
    growing = GrowingMap(LandmarkMap.empty(places.model(), "room"), places.model(), detector)
    closer, reported = LoopCloser(growing), []
    for row in range(len(moved)):
        growing.update(moved.take([row]))
        reported.append(closer.update())
    return closer, reported


def test_the_second_round_closes_the_loop_and_the_first_does_not(truth, detector):
    closer, reported = closures_along(places.seen(places.scene(walk())), drifted(truth, 0.02), detector)
    assert not any(reported[: RECENT + 1])
    assert list(chain(*reported)) == closer.closures
    assert len({each.later for each in closer.closures}) >= 6
    for closure in closer.closures:
        true = invert(truth[closure.later]) @ truth[closure.earlier]
        metres, degrees = pose_error(closure.later_from_earlier, true)
        assert metres < 0.1
        assert degrees < 5
        assert closure.earlier < closure.later - RECENT
        assert closure.probability >= loop_closure.LIKELY


def test_one_viewpoint_confirms_nothing(truth, detector):
    """The robot is carried to a spot it knows and stays there: nothing but this one view says where it is."""
    stay = [*walk()[:ROUND], *[replace(walk()[8], name=f"stay-{number}") for number in range(4)]]
    poses = np.stack([shot.world_from_camera for shot in stay])
    poses[ROUND:, 2, 3] += 2.0
    closer, _ = closures_along(places.seen(places.scene(stay)), poses, detector)
    assert {each.later for each in closer.unconfirmed} >= {ROUND, ROUND + 3}
    assert not any(each.later >= ROUND for each in closer.closures)


@pytest.mark.parametrize("degrees", [0, 180])
def test_a_wall_that_looks_the_same_closes_no_loop(truth, degrees):
    """Closures agree with each other, from all viewpoints, also if they are those of the opposite wall."""
    growing = GrowingMap.__new__(GrowingMap)
    growing.names, growing.poses = [], []
    closer, turned = LoopCloser(growing), np.eye(4)
    turned[:3, :3] = Rotation.from_euler("z", degrees, degrees=True).as_matrix()
    for row, pose in enumerate(drifted(truth, 0.02)):
        growing.names.append(str(row))
        growing.poses.append(pose)
        if row >= ROUND:
            motion = invert(truth[row]) @ turned @ truth[row - ROUND]
            closer.add([LoopClosure(row - ROUND, row, motion, 1e-4 * np.eye(6), 200)])
    assert len(closer.closures) == (ROUND if degrees == 0 else 0)


def test_a_map_without_points_closes_no_loop(truth):
    few = RECENT + 4
    closer, _ = closures_along(places.seen(places.scene(walk()[:few])), truth[:few], None)
    assert not closer.closures


def test_map_optimise_corrects_odometry(truth, tmp_path, capsys):
    odometry = drifted(truth, 0.03)
    (tmp_path / "room").mkdir()
    shots = [replace(shot, world_from_camera=pose) for shot, pose in zip(walk(), odometry, strict=True)]
    layouts.nerfstudio(tmp_path / "room", shots)
    words = ["map", "room", "--out", "map", "--optimise", "--trajectories", "poses", "--pose-graphs", "graphs"]
    words = [str(tmp_path / word) if word in ("room", "map", "poses", "graphs") else word for word in words]
    assert main(["map", *words[1:], "--model", "classic", "--cache", str(tmp_path / "cache")]) == 0
    said = capsys.readouterr().out
    assert "loop closures agree; frames were moved by up to" in said
    corrected = LandmarkMap.load(tmp_path / "map").frames.world_from_camera
    assert error(truth, corrected) < 0.5 * error(truth, odometry)
    written = np.loadtxt(tmp_path / "poses" / "room" / "room.txt")
    assert np.allclose(written[:, 1:4], corrected[:, :3, 3], atol=1e-5)
    assert "EDGE_SE3:QUAT" in (tmp_path / "graphs" / "room.g2o").read_text()
