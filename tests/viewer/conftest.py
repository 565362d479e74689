"""A small room, a network without weights, and its map."""

import pytest

from locus.model import LoCUS
from locus.scenes import load_scene
from locus.viewer.place import Place
from tests.scenes import layouts, room


@pytest.fixture(scope="session")
def room_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("viewer") / "room"
    folder.mkdir()
    layouts.nerfstudio(folder, room.shots(12))
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def model():
    return LoCUS("classic", head="identity", radii=(0.2,))


@pytest.fixture(scope="session")
def place(room_folder, model, cache):
    """A map of 11 of its 12 frames; treat it as read-only."""
    return Place.open(model, load_scene(room_folder), cache=cache)
