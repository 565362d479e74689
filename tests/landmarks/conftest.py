"""One room and its map, made once."""

import pytest

from locus.landmarks import LandmarkMap
from tests.landmarks import places
from tests.scenes import room


@pytest.fixture(scope="session")
def model():
    return places.model()


@pytest.fixture(scope="session")
def seen():
    """The room in sixteen views."""
    return places.seen(places.scene(room.shots(16)))


@pytest.fixture(scope="session")
def world(model, seen):
    return LandmarkMap.build(model, seen)
