"""The authors' checkpoints: written in their layout, read into ours, and never run."""

import pickle

import numpy as np
import pytest
import torch

from locus import backbones
from locus.errors import LocusError
from locus.model import LoCUS
from locus.model.heads import Head
from tests import networks


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dinov2")
    networks.save("dinov2", folder)
    return backbones.load(folder, 2)


def authors_file(path, head, outer="", wrapper=None):
    """A checkpoint as the authors write it: a sequence of four modules beside the frozen network."""
    places = {"enter": "0", "blocks.0": "1", "blocks.1": "2", "project": "3"}
    stored = {f"{outer}dino_model.blocks.0.norm1.weight": torch.ones(4), f"{outer}dino_model.cls_token": torch.ones(4)}
    for name, weight in head.state_dict().items():
        ours = next(place for place in places if name.startswith(place + "."))
        stored[f"{outer}trainable_head.{places[ours]}{name[len(ours) :]}"] = weight
    torch.save({wrapper: stored, "epoch": 20} if wrapper else stored, path)


@pytest.mark.parametrize(("outer", "wrapper"), [("", None), ("model.", "state_dict"), ("module.", None)])
def test_the_authors_checkpoint_is_their_head_with_their_attention_scale(outer, wrapper, tmp_path, backbone):
    torch.manual_seed(5)
    head = Head(32, 64, attention_scale=0.125)
    authors_file(tmp_path / "theirs.pth", head, outer, wrapper)
    model = LoCUS.from_authors(tmp_path / "theirs.pth", backbone, radius=0.6)
    image = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    with torch.no_grad():
        tokens, grid = backbone(model.prepare(image)[None])
        expected = torch.nn.functional.normalize(head(tokens, grid), dim=-1).unflatten(1, grid)
    assert torch.equal(model.features(image), expected)
    assert model.radii == (0.6,)


def test_an_authors_checkpoint_that_does_not_fit_is_refused_by_key(tmp_path, backbone):
    authors_file(tmp_path / "wide.pth", Head(48, 64))
    with pytest.raises(LocusError, match=r"enter.weight is 128×48, not 128×32"):
        LoCUS.from_authors(tmp_path / "wide.pth", backbone)
    torch.save({"trainable_head.0.weight": torch.ones(1), "decoder.gamma": torch.ones(1)}, tmp_path / "stranger.pth")
    with pytest.raises(LocusError, match=r"decoder\.gamma"):
        LoCUS.from_authors(tmp_path / "stranger.pth", backbone)
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(LocusError, match="a list, not a dictionary"):
        LoCUS.from_authors(tmp_path / "list.pth", backbone)


def test_keys_that_are_no_names_are_refused(tmp_path, backbone):
    torch.save({7: torch.ones(2)}, tmp_path / "it.pth")
    with pytest.raises(LocusError, match="not one of the authors' checkpoints: 7"):
        LoCUS.from_authors(tmp_path / "it.pth", backbone)


class Runs:
    """Unpickled, it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("write", [torch.save, lambda what, file: file.write_bytes(pickle.dumps(what))])
def test_a_pickle_that_runs_code_is_refused_and_does_not_run(write, tmp_path, backbone):
    write({"trainable_head.0.weight": Runs(tmp_path / "ran")}, tmp_path / "evil.pth")
    with pytest.raises(LocusError, match="not a checkpoint that can be read safely") as error:
        LoCUS.from_authors(tmp_path / "evil.pth", backbone)
    assert not (tmp_path / "ran").exists()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", [None, b"", b"not a checkpoint", b"\x80\x02}q", b"\x80\x02X\x01\x00\x00\x00\xff", b"\x80\x02h\xf6"]
)
def test_a_file_that_is_no_checkpoint_is_one_sentence(content, tmp_path, backbone):
    if content is not None:
        (tmp_path / "it.pth").write_bytes(content)
    with pytest.raises(LocusError, match=r"it\.pth") as error:
        LoCUS.from_authors(tmp_path / "it.pth", backbone)
    assert "\n" not in str(error.value)
