"""ONNX files run by onnxruntime, folders for the hub, and torch.hub, against the model they were made from."""

import json
import sys
from pathlib import Path

import jaxtyping
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from locus.cli import main
from locus.model import LoCUS
from locus.model.export import ExportError, export_onnx
from tests import networks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dinov2")
    networks.save("dinov2", folder)
    return str(folder)


@pytest.fixture(scope="module")
def model(backbone):
    torch.manual_seed(0)
    return LoCUS(backbone, 1, dimension=6, radii=(0.2, 0.6), head="paper")


@pytest.fixture(scope="module")
def run(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)


@pytest.fixture
def unchecked(monkeypatch):
    """No checks of shapes: one asked of a size that is still open would fix it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def features(file, images):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["features"], {"image": images.numpy()})[0])


def test_a_file_for_any_size_computes_what_the_model_does(model, run, tmp_path, capsys, unchecked):
    file = tmp_path / "new" / "locus.onnx"
    assert main(["export", str(run), "--out", str(file)]) == 0
    assert "any size" in " ".join(capsys.readouterr().out.split())
    assert [each.name for each in file.parent.iterdir()] == ["locus.onnx"]
    for shape in [(1, 3, 56, 56), (3, 3, 42, 112), (1, 3, 14, 14)]:
        images = torch.rand(shape)
        torch.testing.assert_close(features(file, images), model(images).detach(), atol=1e-4, rtol=0)
    written = onnx.load(file)
    onnx.checker.check_model(written)
    told = {entry.key: entry.value for entry in written.metadata_props}
    assert json.loads(told["radii"]) == [0.2, 0.6]
    assert (told["patch_size"], told["model"], told["fingerprint"]) == ("14", model.name, model.fingerprint)
    assert [d.dim_param or d.dim_value for d in written.graph.input[0].type.tensor_type.shape.dim] == [
        "batch",
        3,
        "height",
        "width",
    ]


def test_a_file_for_one_size_computes_what_a_blocks_head_does(backbone, tmp_path):
    model = LoCUS(backbone, 1, dimension=6, head="blocks", blocks=1)
    file = export_onnx(model, tmp_path / "blocks.onnx", (56, 42))
    images = torch.rand(3, 3, 42, 56)
    torch.testing.assert_close(features(file, images), model(images).detach(), atol=1e-4, rtol=0)


def test_a_file_that_does_not_compute_the_same_is_not_written(tmp_path, monkeypatch):
    model = LoCUS("classic", head="linear", dimension=6)
    monkeypatch.setattr("locus.model.export.TOLERANCE", -1.0)
    with pytest.raises(ExportError, match="off what torch computes"):
        export_onnx(model, tmp_path / "locus.onnx", (42, 28))
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_is_no_whole_number_of_patches_is_refused(model, tmp_path):
    with pytest.raises(ExportError, match="50×42 is not a whole number of patches of 14"):
        export_onnx(model, tmp_path / "locus.onnx", (50, 42))


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_package_is_named_with_its_extra(package, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExportError, match=rf"{package} is needed .* pip install .*\[export\]"):
        export_onnx(model, tmp_path / "locus.onnx")


def test_a_folder_for_the_hub_loads_and_says_how(model, run, tmp_path, image, capsys):
    assert main(["export", str(run), "--hub", str(tmp_path / "hub")]) == 0
    assert "README.md" in capsys.readouterr().out
    assert torch.equal(LoCUS.from_pretrained(tmp_path / "hub").features(image), model.features(image))
    page = (tmp_path / "hub" / "README.md").read_text()
    for fact in ("0.2 m and 0.6 m", "LoCUS.from_pretrained(", "backbone=", "layer 1", "paper", "library_name: locus"):
        assert fact in page


def test_a_known_backbone_needs_no_place(tmp_path):
    LoCUS("classic", head="linear").save_pretrained(tmp_path)
    page = (tmp_path / "README.md").read_text()
    assert "`classic`" in page
    assert "backbone=" not in page


def test_nothing_to_write_is_an_error(run, capsys):
    assert main(["export", str(run)]) == 2
    assert "--out FILE.onnx, or --hub FOLDER" in capsys.readouterr().err


def test_torch_hub_loads_a_run(model, run, image):
    loaded = torch.hub.load(str(ROOT), "locus", source="local", path=str(run))
    assert torch.equal(loaded.features(image), model.features(image))
