import json
import threading
import time
from pathlib import Path

import pytest
import torch

from locus.backbones import sources as weights
from locus.backbones.sources import available, fetch, import_file, locate
from locus.backbones.store import store, stored
from locus.cli import main
from locus.errors import WeightsError


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
