"""Probe3D's correspondence with a house inside: the truth finds every point, chance hardly any."""

import json

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from locus.evaluation.protocols import dense_correspondence
from locus.evaluation.protocols.dense_correspondence import least_ambiguous, sampled
from locus.evaluation.protocols.dense_layouts import Navi, Probe3D
from locus.evaluation.scene_patches import EvaluationError
from locus.scenes import SceneReading
from tests.evaluation.protocols.published_layouts import loftr_archive
from tests.evaluation.protocols.test_split_localization import SHOTS, evaluated, kept  # noqa: F401  a fixture
from tests.scenes.layouts import save, save_depth
from tests.scenes.room import FX, HEIGHT, WIDTH


def scannet(root):
    loftr_archive(root, SHOTS, [(0, 1), (3, 4), (6, 7)])
    for k, shot in enumerate(SHOTS):
        save_depth(root / "scene0707_00" / "depth" / f"{15 * k}.png", shot.depth, 1000)


def navi(root):
    """Millimetres, from the object to the camera, the quaternion's w first."""
    said = []
    for k, shot in enumerate(SHOTS):
        save(root / "wild_set" / "images" / f"{k:03d}.jpg", shot.image)
        save_depth(root / "wild_set" / "depth" / f"{k:03d}.png", shot.depth, 1000)
        pose = np.linalg.inv(shot.world_from_camera)
        x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
        camera = {"q": [w, x, y, z], "t": (1000 * pose[:3, 3]).tolist(), "focal_length": FX}
        said.append({"filename": f"{k:03d}.jpg", "camera": camera, "image_size": [HEIGHT, WIDTH], "split": "val"})
    (root / "wild_set" / "annotations.json").write_text(json.dumps(said))


@pytest.mark.parametrize(("name", "write", "limit"), [("probe3d", scannet, "10 px"), ("navi", navi, "25 px")])
def test_the_truth_finds_points_that_chance_does_not(name, write, limit, tmp_path, monkeypatch):
    monkeypatch.setattr(dense_correspondence, "STEP", 16 if name == "probe3d" else 2)
    monkeypatch.setattr(dense_correspondence, "KEPT", 100)
    write(tmp_path)
    results = evaluated(tmp_path, name, tmp_path, "--methods", "truth", "random", "classic")
    columns = results["tables"][0]["columns"]
    rows = {row["label"]: [cell["value"] for cell in row["cells"]] for row in results["tables"][0]["rows"]}
    at = columns.index(limit)
    assert rows["ground truth"][at] > 0.95
    assert rows["random"][at] < 0.4
    assert rows["random"] == sorted(rows["random"]) or name == "navi"
    assert rows["classic 56-d"][at] > 0
    ranges = {part["turn"] for part in results["parts"][0]["measured"]["pairs"]}
    assert ranges
    assert results["tables"][1]["columns"][0] == ("0–15°" if name == "probe3d" else "0–30°")


def test_the_least_ambiguous_are_those_of_a_full_table(monkeypatch):
    monkeypatch.setattr(dense_correspondence, "KEPT", 5)
    monkeypatch.setattr(dense_correspondence, "AT_ONCE", 3)
    random = np.random.default_rng(0)
    a, b = (random.normal(size=(count, 4)) for count in (8, 9))
    for each in (a, b):
        each /= np.linalg.norm(each, axis=1, keepdims=True)
    distance = 1 - a @ b.T
    two = np.sort(distance, axis=1)[:, :2]
    expected = np.argsort(two[:, 0] / two[:, 1])[:5]
    first, second = least_ambiguous(torch.from_numpy(a), torch.from_numpy(b))
    assert first.tolist() == expected.tolist()
    assert second.tolist() == distance.argmin(axis=1)[expected].tolist()


def test_features_are_blended_between_the_centres_of_patches():
    features = torch.tensor([[[0.0], [1.0]]])  # one row of two patches, whose centres are at 1/4 and 3/4
    found = sampled(features, np.array([[0.25, 0.5], [0.5, 0.5], [0.75, 0.1], [1.0, 0.5]]))
    assert found[:, 0].tolist() == pytest.approx([0.0, 0.5, 1.0, 1.0])


def test_true_motions_are_those_of_the_annotations(tmp_path):
    navi(tmp_path)
    scene = Navi().load(tmp_path, SceneReading())
    for pair in scene.pairs:
        a, b = (SHOTS[int(name)].world_from_camera for name in (pair.a, pair.b))
        assert np.allclose(pair.b_from_a, np.linalg.inv(b) @ a, atol=1e-9)
    assert len(scene.pairs) == 3
    (tmp_path / "wild_set" / "annotations.json").write_text('[{"filename": "000.jpg"}]')
    with pytest.raises(EvaluationError, match="is not NAVI's"):
        Navi().load(tmp_path, SceneReading())
    with pytest.raises(EvaluationError, match=r"test\.npz is missing"):
        Probe3D().load(tmp_path, SceneReading())
