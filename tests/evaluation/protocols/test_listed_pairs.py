"""ScanNet-1500 and MegaDepth-1500 with a house inside."""

import json
import zipfile

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from locus.cli import main
from locus.errors import LocusError
from locus.evaluation.protocols.listed_pairs import MegaDepth1500, ScanNet1500
from locus.evaluation.scene_patches import EvaluationError
from locus.scenes import SceneReading
from tests.evaluation.protocols.published_layouts import PAIRS, glue_factory_list, loftr_archive, superglue_list
from tests.evaluation.protocols.test_split_localization import SHOTS, evaluated, kept  # noqa: F401  a fixture
from tests.evaluation.test_pose import superglue_auc
from tests.scenes import room

CHOSEN = [(k, (k + 1) % 12) for k in range(12)]


def predicted(path, scene, names, motions):
    lines = [
        {"scene": scene, "a": a, "b": b, "b_from_a": None if motion is None else motion.tolist()}
        for (a, b), motion in zip(names, motions, strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return f"predictions:{path}"


def motions():
    return [np.linalg.inv(SHOTS[b].world_from_camera) @ SHOTS[a].world_from_camera for a, b in CHOSEN]


@pytest.mark.parametrize("layout", PAIRS)
def test_the_truth_scores_all_chance_hardly_anything_and_known_errors_their_area(layout, tmp_path):
    protocol, write = PAIRS[layout]
    names = write(tmp_path, SHOTS, CHOSEN)
    random = np.random.default_rng(0)
    turned, degrees = [], np.linspace(1.1, 22.9, len(CHOSEN))
    for motion, angle in zip(motions(), degrees, strict=True):
        wrong = motion.copy()
        turn = Rotation.from_rotvec(np.radians(angle) * np.array([0.0, 1.0, 0.0])).as_matrix()
        wrong[:3, :3] = turn @ motion[:3, :3]
        # The camera stays where it is, seen from A.
        wrong[:3, 3] = turn @ motion[:3, 3]
        turned.append(wrong)
    guesses = []
    for _ in CHOSEN:
        guess = np.eye(4)
        guess[:3, :3], guess[:3, 3] = Rotation.random(random_state=random).as_matrix(), random.normal(size=3)
        guesses.append(guess)
    scene = tmp_path.name
    methods = [
        predicted(tmp_path / "truth.jsonl", scene, names, motions()),
        predicted(tmp_path / "turned.jsonl", scene, names, turned),
        predicted(tmp_path / "random.jsonl", scene, names, guesses),
        predicted(tmp_path / "none.jsonl", scene, names, [None] * len(names)),
    ]
    auc, errors = evaluated(tmp_path, protocol, tmp_path, "--methods", *methods)["tables"][:2]
    rows = {row["label"]: [cell["value"] for cell in row["cells"][:3]] for row in auc["rows"]}
    assert rows["truth"] == pytest.approx([1, 1, 1], abs=1e-3)
    assert rows["turned"] == pytest.approx([superglue_auc(degrees, limit) for limit in (5, 10, 20)], abs=1e-3)
    assert max(rows["random"]) < 0.1
    assert rows["none"] == [0, 0, 0]
    assert errors["rows"][1]["cells"][3]["value"] == pytest.approx(np.sort(degrees)[6], abs=1e-3)


@pytest.mark.parametrize("write", [superglue_list, loftr_archive])
def test_cameras_are_carried_to_the_size_that_every_method_sees(write, tmp_path):
    write(tmp_path, SHOTS, CHOSEN)
    scene = ScanNet1500().load(tmp_path, SceneReading())
    camera = scene[0].camera
    assert scene[0].image.shape == (480, 640, 3)
    assert camera.fx == pytest.approx(room.FX * 8)
    assert (camera.cx, camera.cy) == pytest.approx((room.CX * 8, room.CY * 8), abs=4)  # half a pixel of theirs
    for pair, truth in zip(scene.pairs, motions(), strict=True):
        assert np.allclose(pair.b_from_a, truth, atol=1e-9)


def test_principal_points_of_megadepth_are_colmaps_and_stay_as_they_are(tmp_path):
    glue_factory_list(tmp_path, SHOTS, CHOSEN)
    camera = MegaDepth1500().load(tmp_path, SceneReading())[0].camera
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (room.FX, room.FY, room.CX, room.CY)


def test_models_and_keypoints_are_asked(tmp_path):
    superglue_list(tmp_path, SHOTS, CHOSEN[:2])
    words = ["scannet1500", tmp_path, "--methods", "classic", "sift-ratio", "--rule", "mutual", "--fit", tmp_path]
    results = evaluated(tmp_path, *words)
    assert [len(part["measured"]["pairs"]) for part in results["parts"]] == [2, 2]
    assert {"matches", "errors"} <= set(results["parts"][0]["measured"]["pairs"][0])


def test_strange_archives_are_refused_in_one_sentence(tmp_path, capsys):
    loftr_archive(tmp_path, SHOTS, CHOSEN[:1])
    np.savez(tmp_path / "test.npz", name=np.array([{}], object))
    with pytest.raises(EvaluationError, match=r"not an archive of plain arrays; download it again$"):
        ScanNet1500().load(tmp_path, SceneReading())
    with zipfile.ZipFile(tmp_path / "test.npz", "w") as archive:
        archive.writestr("name", b"no array")
    with pytest.raises(EvaluationError, match=r"not an archive of plain arrays; download it again$"):
        ScanNet1500().load(tmp_path, SceneReading())
    np.savez(tmp_path / "test.npz", name=np.zeros((3, 2)))
    with pytest.raises(EvaluationError, match=r"whole numbers, \(pairs, 4\), not \(3, 2\)"):
        ScanNet1500().load(tmp_path, SceneReading())
    np.savez(tmp_path / "test.npz", name=np.array([[707, 0, 0, 15]]), more=np.zeros(2**24))
    with pytest.raises(EvaluationError, match="more than 64 MiB"):
        ScanNet1500().load(tmp_path, SceneReading())
    (tmp_path / "test.npz").write_bytes(b"PK\x03\x04 no archive")
    assert main(["eval", "protocol", "scannet1500", str(tmp_path), "--methods", "sift-ratio"]) == 1
    assert "not an archive of plain arrays" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("protocol", "write", "file"),
    [
        (ScanNet1500, superglue_list, "scannet_test_pairs_with_gt.txt"),
        (MegaDepth1500, glue_factory_list, "pairs_calibrated.txt"),
    ],
)
def test_a_list_cannot_name_files_elsewhere(protocol, write, file, tmp_path):
    (tmp_path / "data").mkdir()
    name = write(tmp_path / "data", SHOTS, CHOSEN)[0][0]
    listed = tmp_path / "data" / file
    listed.write_text(listed.read_text().replace(name, f"../../{name}"))
    with pytest.raises(LocusError, match="points outside"):
        protocol().load(tmp_path / "data", SceneReading())


def test_a_missing_image_is_an_error(tmp_path):
    superglue_list(tmp_path, SHOTS, CHOSEN)
    (tmp_path / "scene0707_00" / "color" / "0.jpg").unlink()
    with pytest.raises(EvaluationError, match=r"0\.jpg, an image of the list, is missing"):
        ScanNet1500().load(tmp_path, SceneReading())
