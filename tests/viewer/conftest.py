"""A small room and its map: seen by a network without weights, and by features that know every point of it."""

import pytest

from locus.model import LoCUS
from locus.scenes import load_scene
from locus.viewer.viewed import ViewedScene
from tests.landmarks import places
from tests.scenes import layouts, room


@pytest.fixture(scope="session")
def room_folder(tmp_path_factory):
    return layouts.nerfstudio(tmp_path_factory.mktemp("viewer") / "room", room.shots(12))


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def model():
    return LoCUS("classic", head="identity", radii=(0.2,))


@pytest.fixture(scope="session")
def viewed(room_folder, model, cache):
    """A map of 11 of its 12 frames; treat it as read-only."""
    return ViewedScene.open(model, load_scene(room_folder), cache=cache)


@pytest.fixture(scope="session")
def known(cache):
    """The room with perfect features, also of images that come as files; any other image is of another environment."""
    shots = room.shots(12)
    model = places.model(radii=(0.2,))
    features = {shot.image.tobytes(): places.features(shot) for shot in shots}
    model.features = lambda image: features.get(image.tobytes(), places.features(shots[0], world=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("locus.viewer.viewed.scene_features", lambda model, scene, cache, progress: places.seen(scene))
        return ViewedScene.open(model, places.scene(shots), cache=cache)
