"""Training the matcher: the truth about matches against geometry, the loss against its definition, a short run."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from locus.cli import main
from locus.errors import LocusError
from locus.geometry import Camera, invert
from locus.keypoints import Keypoints
from locus.keypoints.detection import Detector
from locus.keypoints.fusion import PlacedKeypoints
from locus.keypoints.place_glue import PlaceGlue, PlaceGlueNetwork
from locus.model import LoCUS
from locus.scenes import load_scene
from locus.training import glue_pairs, glue_run
from locus.training.glue_pairs import NONE, UNKNOWN, GluePair, PlacedFrame, true_matches
from locus.training.glue_run import GlueSettings, loss_of, train_glue
from tests.scenes import room

SIZE = (room.WIDTH, room.HEIGHT)
CAMERA = Camera(*SIZE, room.FX, room.FY, room.CX, room.CY)


def placed(pixels):
    count = len(pixels)
    keypoints = Keypoints(pixels, np.ones(count), F.normalize(torch.ones(count, 64), dim=-1), SIZE)
    return PlacedKeypoints(keypoints, torch.ones(1, count, 1))


def shot_of(taken, pixels):
    """A shot of the room with keypoints at these pixels, whose points are met by rays, not read from the depth map."""
    depth = taken.depth[pixels[:, 1].astype(int), pixels[:, 0].astype(int)]
    return PlacedFrame(
        placed(pixels), CAMERA.unproject(pixels, depth), taken.depth.astype(np.float32), CAMERA, taken.world_from_camera
    )


@pytest.fixture(scope="module")
def views():
    return room.shoot("a", room.look((-1.5, 1.0, 1.4), (0.5, -0.5, 0.6))), room.shoot(
        "b", room.look((-1.2, 0.9, 1.5), (0.6, -0.5, 0.6))
    )


def test_true_matches_are_where_the_geometry_puts_them(views):
    a, b = views
    random = np.random.default_rng(0)
    pixels_a = random.uniform((2, 2), (room.WIDTH - 2, room.HEIGHT - 2), (60, 2)).astype(int) + 0.5
    first = shot_of(a, pixels_a)
    carried = first.points @ (invert(b.world_from_camera) @ a.world_from_camera)[:3, :3].T
    carried += (invert(b.world_from_camera) @ a.world_from_camera)[:3, 3]
    pixels_b = carried[:, :2] / carried[:, 2:] * (room.FX, room.FY) + (room.CX, room.CY)
    inside = ((pixels_b > 1) & (pixels_b < (room.WIDTH - 1, room.HEIGHT - 1))).all(axis=1) & (carried[:, 2] > 0)
    shown = np.zeros(60, bool)
    x, y = pixels_b[inside].astype(int).T
    shown[inside] = np.abs(b.depth[y, x] - carried[inside, 2]) < 0.02
    assert 20 < shown.sum() < 60
    # Keypoints of B: exactly where those of A are seen, in another order, and one in a far corner.
    order = np.random.default_rng(1).permutation(np.flatnonzero(shown))
    of_a, of_b = true_matches(first, shot_of(b, pixels_b[order]))
    told = np.flatnonzero(of_a >= 0)
    assert len(told) > 0.8 * shown.sum()  # but for those that another keypoint is as close to
    off = np.linalg.norm(pixels_b[told] - pixels_b[order][of_a[told]], axis=1)
    assert off.max() <= 3 * room.HEIGHT / 480
    assert (of_b[of_a[told]] == told).all()
    assert set(of_a[~shown & ~inside].tolist()) <= {NONE, UNKNOWN}
    assert (of_a[~inside] == NONE).all()


def test_a_keypoint_without_depth_is_unknown(views):
    a, b = views
    first = shot_of(a, np.array([[40.5, 30.5], [10.5, 10.5]]))
    first.points[0] = np.nan
    of_a, _ = true_matches(first, shot_of(b, np.array([[1.5, 1.5]])))
    assert of_a.tolist() == [UNKNOWN, NONE]


def test_the_loss_is_the_mean_logarithm_of_what_is_true():
    scores = torch.log_softmax(torch.randn(4, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    pair = GluePair(
        placed(np.ones((3, 2))),
        placed(np.ones((4, 2))),
        np.array([2, NONE, UNKNOWN]),
        np.array([NONE, NONE, 0, UNKNOWN]),
    )
    values = scores.numpy()
    expected = -(values[0, 2] / 2 + values[1, 4] / 4 + (values[3, 0] + values[3, 1]) / 2 / 4)
    assert float(loss_of(scores, pair)) == pytest.approx(expected, rel=1e-6)


class Corners(Detector):
    """Keypoints on a grid, with colours around them for descriptors: quick, and good enough to learn from."""

    name, fingerprint, count, dimension = "corners", "corners 1", 400, 64

    def found(self, image):
        height, width = image.shape[:2]
        y, x = (each.ravel() for each in np.mgrid[4 : height - 4 : 3, 4 : width - 4 : 3])
        around = np.stack([image[y + dy, x + dx].mean(axis=-1) for dy in range(-4, 4) for dx in range(-4, 4)], axis=1)
        descriptors = F.normalize(torch.from_numpy(around - around.mean(axis=1, keepdims=True)).float() + 1e-3, dim=-1)
        return Keypoints(np.stack([x, y], axis=1) + 0.5, np.ones(len(x)), descriptors, (width, height))


@pytest.fixture
def quick(monkeypatch):
    """Training without downloads: keypoints on a grid, random weights."""
    monkeypatch.setattr(glue_run, "detector", lambda name, count: Corners())
    monkeypatch.setattr(glue_pairs, "SAME", 24.0)  # the grid is coarse
    monkeypatch.setattr(glue_pairs, "OTHER", 48.0)
    torch.manual_seed(0)
    start = PlaceGlueNetwork().state_dict()

    def untrained(cls):
        network = PlaceGlueNetwork()
        network.load_state_dict(start)
        return network

    monkeypatch.setattr(PlaceGlueNetwork, "untrained", classmethod(untrained))


def test_a_short_run_learns_and_can_be_repeated(quick, rooms, tiny, tmp_path):
    model = LoCUS(str(tiny), head="identity", resolution=56)
    scenes = [load_scene(folder) for folder in (rooms / "first", rooms / "second")]
    settings = GlueSettings(steps=12, keypoints=80, learning_rate=1e-3)
    files = [tmp_path / f"{name}.safetensors" for name in "ab"]
    summaries = [train_glue(scenes, model, file, settings) for file in files]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert summaries[0].loss[1] < summaries[0].loss[0]
    assert PlaceGlue(files[0]).network.glue.training is False


def test_scenes_without_overlap_are_refused(quick, rooms, tiny, tmp_path):
    model = LoCUS(str(tiny), head="identity", resolution=56)
    with pytest.raises(LocusError, match="no two frames of any scene overlap"):
        train_glue([load_scene(rooms / "first")[:1]], model, tmp_path / "a.safetensors")


def test_weights_go_to_safetensors(capsys, tmp_path):
    assert main(["train-glue", str(tmp_path), "--out", str(tmp_path / "glue.pt")]) == 2
    assert "the weights are written as .safetensors" in " ".join(capsys.readouterr().err.split())
