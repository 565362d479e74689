"""The labelled room, written once for all tests of tasks; treat it as read-only."""

import pytest

import locus
from tests.tasks import labelled_room


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return labelled_room.write(tmp_path_factory.mktemp("tasks") / "room")


@pytest.fixture(scope="session")
def scene(folder):
    return locus.load_scene(folder)
