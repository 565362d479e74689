"""The paper's tables from a Matterport3D of tiny houses, and SparsePlanes' list."""

import json

import pytest

from locus.cli import main
from locus.evaluation.protocols.sparse_planes import FILE, SparsePlanes
from locus.evaluation.scene_patches import EvaluationError
from locus.scenes import SceneReading
from tests.evaluation.protocols.published_layouts import sparse_planes
from tests.evaluation.protocols.test_split_localization import SHOTS, kept  # noqa: F401  a fixture
from tests.scenes import layouts


@pytest.fixture
def matterport(tmp_path):
    """Three houses, one for each part of the split; every other image is level."""
    root = tmp_path / "matterport"
    for part, house in (("train", "first"), ("val", "second"), ("test", "third")):
        layouts.matterport(root / house, SHOTS)
        folder = root / house
        for file in [*(folder / "undistorted_camera_parameters").glob("*.conf")]:
            text = file.read_text()
            for k in range(len(SHOTS)):
                text = text.replace(f"pano_i{k}_0.jpg", f"pano{k}_i{k % 2}_0.jpg")
                image = folder / "undistorted_color_images" / f"pano_i{k}_0.jpg"
                image.rename(image.with_name(f"pano{k}_i{k % 2}_0.jpg"))
            file.write_text(text)
            file.rename(file.with_name(f"{house}.conf"))
        for file in (folder / "house_segmentations").iterdir():
            file.rename(file.with_name(f"{house}{file.suffix}"))
        (root / f"{part}_scenes.txt").write_text(f"{house}\n")
    sparse_planes(tmp_path / "pairs", SHOTS, [(0, 1), (2, 3)])
    return root


def test_one_command_makes_all_three_tables_with_their_deviations(matterport, tmp_path, capsys):
    words = ["eval", "paper", "--matterport", matterport, "--pairs", tmp_path / "pairs", "--batches", "1"]
    words += ["--methods", "classic", "sift-ratio", "--cache", tmp_path / "tokens", "--report", tmp_path / "report"]
    assert main([str(word) for word in words]) == 0
    printed = capsys.readouterr().out
    for title in ("Retrieval, radius 0.2 m", "Segmentation\n", "Relative pose\n"):
        assert title in printed
    assert all(f"Published: the paper's Table {number}" in printed for number in (1, 2, 3))
    assert printed.count("Deviates from the paper") == 8
    tables = {
        folder.name: json.loads((folder / "results.json").read_text()) for folder in (tmp_path / "report").iterdir()
    }
    assert set(tables) == {"retrieval", "segmentation", "sparseplanes"}
    assert {part["group"]: part["scene"] for part in tables["retrieval"]["parts"]} == {
        "training": "first",
        "unseen": "second",
    }
    assert [part["scene"] for part in tables["segmentation"]["parts"]] == ["third"]
    assert [part["method"] for part in tables["sparseplanes"]["parts"]] == ["classic 56-d", "SIFT, ratio 0.8"]


def test_a_house_that_is_missing_is_told(matterport, tmp_path, capsys):
    (matterport / "val_scenes.txt").write_text("second\nfourth\n")
    words = ["eval", "paper", "--matterport", str(matterport), "--pairs", str(tmp_path), "--methods", "classic"]
    assert main(words) == 2
    assert "names 2 houses, of which 1 are missing:" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda data: data[0]["1"]["camera"]["position"].__setitem__(0, 9.0),
            "pair 0: its two cameras and its rel_pose",
        ),
        (lambda data: data[0]["0"].pop("camera"), "not SparsePlanes' list of pairs"),
        (lambda data: data[0]["0"]["camera"].update(rotation=[0, 0, 0, 0]), "cached_set_test.json: "),
        (lambda data: data.clear(), "has no pair"),
    ],
)
def test_a_list_that_contradicts_itself_is_refused(change, sentence, tmp_path):
    sparse_planes(tmp_path, SHOTS, [(0, 1)])
    told = json.loads((tmp_path / FILE).read_text())
    change(told["data"])
    (tmp_path / FILE).write_text(json.dumps(told))
    with pytest.raises(EvaluationError, match=sentence):
        SparsePlanes().load(tmp_path, SceneReading())
